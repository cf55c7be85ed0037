import FoundationEssentials
import Transfers

/// A bucket, and where in it blobs lie: `s3://bucket/folder`.
package struct S3Place: Sendable, Equatable {
    package var bucket: String
    /// Without a slash at its ends; empty for none.
    package var folder: String

    package init?(_ text: String) {
        guard text.hasPrefix("s3://") else { return nil }
        let parts = text.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        bucket = String(parts[0])
        folder = parts.count > 1 ? String(parts[1]) : ""
        while folder.hasSuffix("/") { folder.removeLast() }
        func isPlain(_ byte: UInt8, _ more: String) -> Bool {
            (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || more.utf8.contains(byte)
        }
        guard (3...63).contains(bucket.utf8.count), bucket.utf8.allSatisfy({ isPlain($0, ".-") }),
            folder.utf8.count <= 512, !folder.hasPrefix("/"), !folder.contains("//"),
            !folder.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }),
            folder.utf8.allSatisfy({ isPlain($0, "/.-_") || (0x41...0x5A).contains($0) })
        else { return nil }
    }
}

/// The address and credentials of an S3.
package struct S3Options: Sendable {
    /// nil: Amazon's own, where each bucket has a host.
    package var endpoint: String?
    package var region: String
    package var accessKey: String
    package var secretKey: String
    package var token: String?
    /// The time limit of one request.
    package var timeout = Duration.seconds(120)
    /// Larger blobs are put in parts of this size.
    package var part = 8 << 20

    package init(endpoint: String? = nil, region: String, accessKey: String, secretKey: String, token: String? = nil) {
        self.endpoint = endpoint
        self.region = region
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.token = token
    }
}

/// Requests to a bucket, signed. Idempotent ones are made again when the other side is busy.
struct S3Bucket: Sendable {
    let client: HTTPClient
    let options: S3Options
    let signer: SigV4
    private let name: String
    private let base: String
    private let host: String
    private let prefix: String

    init(_ bucket: String, _ options: S3Options, client: HTTPClient) {
        self.client = client
        self.options = options
        name = bucket
        signer = SigV4(
            accessKey: options.accessKey, secretKey: options.secretKey, token: options.token, region: options.region)
        if var endpoint = options.endpoint {
            while endpoint.hasSuffix("/") { endpoint.removeLast() }
            base = endpoint
            host = String(endpoint.drop { $0 != ":" }.drop { $0 == ":" || $0 == "/" })
            prefix = "/" + bucket
        } else {
            host = "\(bucket).s3.\(options.region).amazonaws.com"
            base = "https://" + host
            prefix = ""
        }
    }

    func path(_ key: String) -> String { prefix + "/" + SigV4.encoded(key, keepingSlashes: true) }

    /// The name of a copy's source.
    func source(_ key: String) -> String { "/\(name)/\(SigV4.encoded(key, keepingSlashes: true))" }

    func request(
        _ method: String, _ key: String, query: [SigV4.Field] = [], headers: [SigV4.Field] = [], body: [UInt8] = [],
        at date: Date = Date()
    ) -> HTTPRequest {
        let path = path(key)
        let added = signer.sign(
            method, host: host, path: path, query: query, headers: headers, payload: SigV4.hash(body), at: date)
        var request = HTTPRequest(
            method, base + path + (query.isEmpty ? "" : "?" + SigV4.text(query)))
        for field in headers + added { request.headers.add(field.name, field.value) }
        if !body.isEmpty || method == "PUT" || method == "POST" { request.body = .bytes(body) }
        request.limits.total = options.timeout
        request.isRepeatable = true
        return request
    }

    /// A signed address for a client without a key.
    func address(_ method: String, _ key: String, headers: [SigV4.Field], for span: Duration, at date: Date) -> String {
        let path = path(key)
        return base + path + "?"
            + signer.presign(method, host: host, path: path, headers: headers, for: span, at: date)
    }

    /// Everything we ask may be asked twice.
    func send(_ make: () -> HTTPRequest) async throws -> HTTPResponse {
        var pause = Duration.milliseconds(200)
        for attempt in 1... {
            do throws(TransferError) {
                let response = try await client.send(make())
                let isBusy = response.status == 429 || response.status >= 500
                if !isBusy || attempt == 4 { return response }
            } catch {
                guard attempt < 4, error.kind != .cancelled, error.kind != .closed, error.kind != .invalid else {
                    throw BlobError.away(error.sentence)
                }
            }
            try await Task.sleep(for: pause)
            pause *= 3
        }
        throw BlobError.away("no answer")
    }

    /// S3's code of the error; never its message, which may contain keys.
    static func complaint(_ response: HTTPResponse, _ deed: String) -> BlobError {
        let code = XMLText(response.text).first("Code").map { $0.filter { $0.isLetter || $0.isNumber } } ?? ""
        return .away("\(deed): S3 answered \(response.status)\(code.isEmpty ? "" : " \(code)")")
    }
}

/// The little that has to be found in S3's answers.
struct XMLText {
    let text: String

    init(_ text: String) { self.text = text }

    func first(_ name: String) -> String? { all(name).first }

    /// The texts of the elements with that name, which never nest.
    func all(_ name: String) -> [String] {
        var found: [String] = []
        var rest = text[...]
        while let open = rest.firstRange(of: "<\(name)>"),
            let close = rest[open.upperBound...].firstRange(of: "</\(name)>")
        {
            found.append(Self.plain(rest[open.upperBound..<close.lowerBound]))
            rest = rest[close.upperBound...]
        }
        return found
    }

    private static func plain(_ text: Substring) -> String {
        String(text).replacing("&quot;", with: "\"").replacing("&lt;", with: "<").replacing("&gt;", with: ">")
            .replacing("&amp;", with: "&")
    }
}
