import Synchronization

/// An S3 on this machine, with the parts that are used: objects, ranges, multipart uploads, copies, lists. It checks every signature
/// itself, from the received bytes.
package final class FakeS3: Sendable {
    package static let accessKey = "AKIAFAKE"
    package static let secretKey = "secret/+of=fakes"
    package static let region = "eu-test-1"

    struct State {
        var objects: [String: [UInt8]] = [:]
        var uploads: [String: (key: String, parts: [Int: [UInt8]])] = [:]
        var next = 0
        var requests: [String] = []
        var failing = 0
        var denied = 0
        /// The date of everything in lists.
        var date = "2020-01-01T00:00:00.000Z"
    }

    let state = Mutex(State())
    private let server = Mutex<RawServer?>(nil)
    package let port: Int

    package init() throws {
        let relay = Relay()
        let made = try RawServer { relay.fake?.serve($0) }
        port = made.port
        relay.set(self)
        server.withLock { $0 = made }
    }

    private final class Relay: Sendable {
        private let kept = Mutex<FakeS3?>(nil)
        var fake: FakeS3? { kept.withLock { $0 } }
        func set(_ fake: FakeS3) { kept.withLock { $0 = fake } }
    }

    package var endpoint: String { "http://127.0.0.1:\(port)" }
    package var keys: [String] { state.withLock { $0.objects.keys.sorted() } }
    package var openUploads: Int { state.withLock { $0.uploads.count } }
    /// Method, path and query of each.
    package var requests: [String] { state.withLock { $0.requests } }
    package var denied: Int { state.withLock { $0.denied } }
    package func object(_ key: String) -> [UInt8]? { state.withLock { $0.objects[key] } }
    package func spoil(_ key: String, _ bytes: [UInt8]) { state.withLock { $0.objects[key] = bytes } }
    /// Answers the next `count` requests with “busy”.
    package func fail(_ count: Int) { state.withLock { $0.failing = count } }
    package func stop() { server.withLock { $0 }?.stop() }

    private func serve(_ connection: RawConnection) {
        while let head = connection.readHead(), let request = S3Request(head) {
            guard let body = connection.read(exactly: request.length) else { return }
            state.withLock { $0.requests.append("\(request.method) \(request.target)") }
            let isBusy = state.withLock { state in
                state.failing -= 1
                return state.failing >= 0
            }
            let answer =
                isBusy
                ? S3Answer(503, xml: "<Error><Code>SlowDown</Code></Error>")
                : request.isSigned(body: body, key: Self.secretKey, access: Self.accessKey, region: Self.region)
                    ? answer(request, body) : S3Answer(403, xml: "<Error><Code>SignatureDoesNotMatch</Code></Error>")
            if answer.status == 403 { state.withLock { $0.denied += 1 } }
            var text = "HTTP/1.1 \(answer.status) Said\r\nContent-Length: \(answer.body.count)\r\n"
            for (name, value) in answer.headers { text += "\(name): \(value)\r\n" }
            guard connection.write(text + "\r\n"), request.method == "HEAD" || connection.write(answer.body) else {
                return
            }
        }
    }

    private func answer(_ request: S3Request, _ body: [UInt8]) -> S3Answer {
        state.withLock { state in
            let key = request.key
            let upload = request.query["uploadId"]
            switch request.method {
            case "GET" where key.isEmpty: return list(request, state)
            case "GET":
                guard let object = state.objects[key] else { return .missing }
                guard
                    let range = request["range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap({ Int($0) }
                    ),
                    range.count == 2
                else { return S3Answer(200, body: object) }
                guard range[0] < object.count else { return S3Answer(416, xml: "<Error/>") }
                return S3Answer(206, body: Array(object[range[0]...min(range[1], object.count - 1)]))
            case "PUT":
                if let upload, let part = request.query["partNumber"].flatMap({ Int($0) }) {
                    guard state.uploads[upload]?.key == key else { return .missing }
                    state.uploads[upload]?.parts[part] = body
                    return S3Answer(200, headers: [("ETag", "\"part\(part)\"")])
                }
                if let source = request["x-amz-copy-source"] {
                    let path = S3Request.decoded(source).drop { $0 == "/" }.split(separator: "/", maxSplits: 1)
                    guard path.count == 2, let object = state.objects[String(path[1])] else { return .missing }
                    state.objects[key] = object
                    return S3Answer(200, xml: "<CopyObjectResult><ETag>\"copy\"</ETag></CopyObjectResult>")
                }
                state.objects[key] = body
                return S3Answer(200, headers: [("ETag", "\"whole\"")])
            case "POST":
                if request.query["uploads"] != nil {
                    state.next += 1
                    state.uploads["u\(state.next)"] = (key, [:])
                    return S3Answer(
                        200,
                        xml:
                            "<InitiateMultipartUploadResult><UploadId>u\(state.next)</UploadId></InitiateMultipartUploadResult>"
                    )
                }
                guard let upload, let found = state.uploads.removeValue(forKey: upload), found.key == key else {
                    return .missing
                }
                // As in S3: each part but the last has at least 5 MiB, unless a test has made parts smaller.
                let order = found.parts.keys.sorted()
                guard order == Array(1...max(1, order.count)) else {
                    return S3Answer(400, xml: "<Error><Code>InvalidPart</Code></Error>")
                }
                state.objects[key] = order.flatMap { found.parts[$0] ?? [] }
                return S3Answer(
                    200, xml: "<CompleteMultipartUploadResult><ETag>\"all\"</ETag></CompleteMultipartUploadResult>")
            case "DELETE":
                if let upload { state.uploads[upload] = nil } else { state.objects[key] = nil }
                return S3Answer(204)
            default: return S3Answer(405, xml: "<Error/>")
            }
        }
    }

    private func list(_ request: S3Request, _ state: State) -> S3Answer {
        let prefix = request.query["prefix"] ?? ""
        if request.query["uploads"] != nil {
            let found = state.uploads.filter { $0.value.key.hasPrefix(prefix) }.map { id, upload in
                "<Upload><Key>\(upload.key)</Key><UploadId>\(id)</UploadId><Initiated>\(state.date)</Initiated></Upload>"
            }
            return S3Answer(200, xml: "<ListMultipartUploadsResult>\(found.joined())</ListMultipartUploadsResult>")
        }
        let found = state.objects.keys.filter { $0.hasPrefix(prefix) }.sorted().map {
            "<Contents><Key>\($0)</Key><LastModified>\(state.date)</LastModified></Contents>"
        }
        return S3Answer(200, xml: "<ListBucketResult>\(found.joined())</ListBucketResult>")
    }
}

struct S3Answer {
    var status: Int
    var headers: [(String, String)] = []
    var body: [UInt8] = []

    init(_ status: Int, headers: [(String, String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    init(_ status: Int, xml: String) {
        self.init(status, headers: [("Content-Type", "application/xml")], body: Array(xml.utf8))
    }

    static let missing = S3Answer(404, xml: "<Error><Code>NoSuchKey</Code></Error>")
}
