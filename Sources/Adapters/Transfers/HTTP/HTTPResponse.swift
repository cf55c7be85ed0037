/// An answer's head.
package struct HTTPHead: Sendable {
    /// 200 to 599 as a rule; informational ones are not shown.
    package var status: Int
    package var headers: HTTPHeaders
    /// 1.0, 1.1 or 2.
    package var version: String
    /// Taken over from an earlier transfer.
    package var wasReused: Bool
}

/// A whole answer.
package struct HTTPResponse: Sendable {
    package var head: HTTPHead
    package var body: [UInt8]
    package var trailers: HTTPHeaders

    package var status: Int { head.status }
    package var headers: HTTPHeaders { head.headers }
    package var text: String { String(decoding: body, as: UTF8.self) }
}
