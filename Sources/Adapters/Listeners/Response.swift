package struct Response: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// A part of an open file, closed when it was sent.
        case file(descriptor: Int32, offset: Int64, count: Int64)
        /// As long as the closure writes. If it throws, the connection is cut, so that no client takes a part for the whole.
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

    /// Strict defaults for pages: a handler that needs more sets headers of the same names.
    static let careful = [
        Header("Cache-Control", "no-store"),
        Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        Header("Cross-Origin-Resource-Policy", "same-origin"),
        Header("Referrer-Policy", "no-referrer"),
        Header("X-Content-Type-Options", "nosniff"),
        Header("X-Frame-Options", "DENY"),
    ]

    /// Head and body of an answer that goes around the library; its headers say that the connection closes.
    var wholeMessage: [UInt8] {
        guard case .bytes(let bytes) = body else { return [] }
        let lines =
            ["HTTP/1.1 \(status) Refused", "Content-Length: \(bytes.count)"]
            + allHeaders.map { "\($0.name): \($0.value)" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + bytes
    }

    var allHeaders: [Header] { headers + Self.careful.filter { headers[$0.name] == nil } }
}

/// Writes the body of a streamed answer.
package struct BodyWriter: Sendable {
    let exchange: Exchange

    /// Waits while the client does not read. Throws `CancellationError` when it has gone.
    package func write(_ bytes: [UInt8]) async throws { try await exchange.write(bytes) }

    /// Takes the piece at once, without a copy, or refuses it: more than `pieces` or `bytes` would wait for the client, or it has gone.
    /// For those who write to many clients, while the body's closure waits for the end.
    package func push(_ piece: [UInt8], pieces: Int, bytes: Int) -> Bool {
        exchange.push(piece, pieces: pieces, bytes: bytes)
    }

    /// Closes the connection at once, and drops what waits for the client.
    package func cut() { exchange.cut() }

    /// Called once when the listener closes: an answer without an end should end then, or it is cut after the grace.
    package func whenClosing(_ body: @escaping @Sendable () -> Void) { exchange.whenClosing(body) }
}
