package struct Response: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// A part of an open file, closed when it was sent.
        case file(descriptor: Int32, offset: Int64, count: Int64)
        /// As long as the closure writes. When it throws, the connection is cut, so that nobody takes the part for the whole.
        case stream(@Sendable (BodyWriter) async throws -> Void)
    }

    package var status: Int
    package var headers: [Header]
    package var body: Body

    package init(status: Int = 200, headers: [Header] = [], body: Body = .bytes([])) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    package static func text(_ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8") -> Response
    {
        Response(status: status, headers: [Header("Content-Type", type)], body: .bytes(Array(text.utf8)))
    }

    package static func json(_ text: String, status: Int = 200) -> Response {
        .text(text, status: status, type: "application/json")
    }

    /// For a page that shows nothing of its own accord: a handler that needs more says so in headers of the same names.
    static let careful = [
        Header("Cache-Control", "no-store"),
        Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        Header("Cross-Origin-Resource-Policy", "same-origin"),
        Header("Referrer-Policy", "no-referrer"),
        Header("X-Content-Type-Options", "nosniff"),
        Header("X-Frame-Options", "DENY"),
    ]

    var allHeaders: [Header] { headers + Self.careful.filter { headers[$0.name] == nil } }
}

/// Where the body of a streamed answer goes.
package struct BodyWriter: Sendable {
    let exchange: Exchange

    /// Waits while the client does not read. Throws `CancellationError` when it has gone.
    package func write(_ bytes: [UInt8]) async throws { try await exchange.write(bytes) }
}
