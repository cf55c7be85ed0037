/// One request, checked when it is sent.
package struct HTTPRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// Pieces, asked for one after the other as the other side takes them; nil ends it. An empty piece is skipped.
        case stream(length: Int?, next: @Sendable () async throws -> [UInt8]?)
    }

    package enum Version: Sendable {
        /// HTTP/2 where TLS agrees on it, otherwise HTTP/1.1.
        case automatic
        case http1
        /// HTTP/2 from the first byte, without TLS too; there libcurl 7.88 makes a connection for each request.
        case http2
    }

    package enum Redirects: Sendable {
        /// A 3xx is an answer like any other.
        case answered
        /// At most `most` redirects; never from https to http, and without credentials once the origin is another.
        case followed(most: Int)
    }

    package var method: String
    package var url: String
    package var headers: HTTPHeaders
    package var body: Body
    package var version = Version.automatic
    package var redirects = Redirects.answered
    package var limits = TransferLimits()
    /// Decodes gzip, deflate and br; the size limit counts the decoded bytes.
    package var decompresses = false
    /// Whether it may be sent again on a new connection when a kept one turns out to be dead. nil: yes for idempotent methods and for
    /// requests with an Idempotency-Key. Otherwise the outcome is reported as unknown.
    package var isRepeatable: Bool?
    /// Uses a new connection, which the other side cannot have closed meanwhile.
    package var wantsFreshConnection = false

    package init(_ method: String, _ url: String, headers: HTTPHeaders = [:], body: Body = .none) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    var mayRepeat: Bool {
        if let isRepeatable { return isRepeatable }
        if case .stream = body { return false }
        return ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"].contains(method) || headers.contains("Idempotency-Key")
    }
}

/// Neither the address nor a header is printed: both may hold secrets.
extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "a \(method.utf8.allSatisfy(isTokenByte) ? method : "malformed") request" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// How long a transfer may take, and how large it may grow.
package struct TransferLimits: Sendable {
    /// From the call to the last byte, waiting in our own line included.
    package var total: Duration = .seconds(30)
    /// Finding the address, connecting and agreeing on TLS.
    package var connect: Duration = .seconds(5)
    /// Ends a transfer that moves fewer than `leastBytes` a second for so long, counted in whole seconds. An answer that waits
    /// for its own reader does not count as slow; a body that waits for its source does.
    package var stall: Duration? = .seconds(20)
    package var leastBytes = 1
    /// The most bytes of the answer's body, decompressed.
    package var bodyBytes = 8 << 20
    /// The most bytes of all heads of the answer: informational ones, the final one and trailers.
    package var headBytes = 64 << 10

    package init() {}
}
