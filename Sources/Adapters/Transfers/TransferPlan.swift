import CCurl

/// A request after its checks, ready to be set on a handle.
struct TransferPlan: Sendable {
    let target: Target
    let method: String
    let headers: TextList
    let userAgent: String?
    let body: HTTPRequest.Body
    let version: HTTPRequest.Version
    let limits: TransferLimits
    let decompresses: Bool
    let mayRepeat: Bool
    let isFresh: Bool
    let policy: TargetPolicy

    init(_ request: HTTPRequest, to target: Target, by client: HTTPClient.Configuration) throws(TransferError) {
        guard (1...64).contains(request.method.utf8.count), request.method.utf8.allSatisfy(isTokenByte) else {
            throw TransferError(.invalid, .unsent, "the method is not a token")
        }
        if let complaint = request.headers.complaint { throw TransferError(.invalid, .unsent, complaint) }
        try client.policy.check(target)
        self.target = target
        method = request.method
        let names = request.headers.pairs
        var lines: [String] = []
        lines.reserveCapacity(names.count + 2)
        // A name with nothing after its colon tells libcurl to leave the field out; with a semicolon it is sent empty.
        for (name, value) in names { lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)") }
        if !request.headers.contains("Expect") { lines.append("Expect:") }
        if !request.headers.contains("Content-Type") { lines.append("Content-Type:") }
        headers = TextList(lines)
        userAgent = request.headers.contains("User-Agent") ? nil : client.userAgent
        body = request.body
        version = request.version
        limits = request.limits
        decompresses = request.decompresses
        mayRepeat = request.mayRepeat
        isFresh = request.wantsFreshConnection
        policy = client.policy
    }

    /// - Parameter remaining: what is left of the whole time.
    func set(on easy: CurlHandle, remaining: Duration) {
        easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
        easy.set(CURLOPT_FOLLOWLOCATION, false)
        easy.set(CURLOPT_URL, target.text)
        easy.set(CURLOPT_HTTPHEADER, headers)
        if isFresh { easy.set(CURLOPT_FRESH_CONNECT, true) }
        if let userAgent { easy.set(CURLOPT_USERAGENT, userAgent) }
        if decompresses { easy.set(CURLOPT_ACCEPT_ENCODING, "") }
        easy.set(CURLOPT_HTTP_VERSION, httpVersion)
        if httpVersion == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE, Self.breaksPlainConnections {
            easy.set(CURLOPT_FRESH_CONNECT, true)
            easy.set(CURLOPT_FORBID_REUSE, true)
        } else if httpVersion != CURL_HTTP_VERSION_1_1 {
            // A stream on a connection that is being opened is better than another connection.
            easy.set(CURLOPT_PIPEWAIT, true)
        }
        easy.set(CURLOPT_TIMEOUT_MS, max(1, remaining.milliseconds))
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, limits.connect.milliseconds))
        if let stall = limits.stall {
            easy.set(CURLOPT_LOW_SPEED_LIMIT, max(1, limits.leastBytes))
            easy.set(CURLOPT_LOW_SPEED_TIME, max(1, (stall.milliseconds + 999) / 1000))
        }
        setMethod(on: easy)
    }

    /// libcurl 7.88 cannot send a second request over a connection that speaks HTTP/2 without TLS (curl's pull request 10643, in 8.0).
    static let breaksPlainConnections: Bool = {
        guard let version = curl_version_info(CURLVERSION_FIRST)?.pointee.version_num else { return true }
        return (0x07_58_00..<0x08_00_00).contains(version)
    }()

    private var httpVersion: Int {
        switch version {
        case .automatic: CURL_HTTP_VERSION_2TLS
        case .http1: CURL_HTTP_VERSION_1_1
        case .http2: target.scheme == "http" ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS
        }
    }

    private func setMethod(on easy: CurlHandle) {
        switch body {
        case .none:
            if method == "HEAD" {
                easy.set(CURLOPT_NOBODY, true)
            } else if ["POST", "PUT", "PATCH"].contains(method) {
                setBytes([], on: easy)
            } else if method != "GET" {
                easy.set(CURLOPT_CUSTOMREQUEST, method)
            }
        case .bytes(let bytes): setBytes(bytes, on: easy)
        case .stream(let length, _):
            easy.set(CURLOPT_UPLOAD, true)
            easy.set(CURLOPT_CUSTOMREQUEST, method)
            easy.set(CURLOPT_INFILESIZE_LARGE, offset: length ?? -1)
        }
    }

    private func setBytes(_ bytes: [UInt8], on easy: CurlHandle) {
        easy.set(CURLOPT_POST, true)
        if method != "POST" { easy.set(CURLOPT_CUSTOMREQUEST, method) }
        easy.set(CURLOPT_POSTFIELDSIZE_LARGE, offset: bytes.count)
        bytes.withUnsafeBytes {
            easy.set(CURLOPT_COPYPOSTFIELDS, pointer: $0.baseAddress ?? UnsafeRawPointer(bitPattern: 1))
        }
    }
}

extension Duration {
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return seconds > 1_000_000_000
            ? 1_000_000_000_000 : Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }
}
