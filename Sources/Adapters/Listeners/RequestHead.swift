/// All that came before the body.
struct RequestHead: Sendable {
    let method: String
    /// Path and query, as they were sent.
    let target: String
    let version: String
    let headers: [Header]
    let peer: String
    /// It was understood byte for byte as it was sent: no folded line, no line end but CR LF, no zero byte.
    let isExact: Bool

    var path: Substring { target.prefix { $0 != "?" } }
    var query: Substring { target.drop { $0 != "?" }.dropFirst() }

    /// nil: as long as it takes, in pieces, or none.
    var length: Int? { headers["Content-Length"].flatMap { Int($0) } }
    var isChunked: Bool { headers["Transfer-Encoding"] != nil }
    var hasBody: Bool { isChunked || (length ?? 0) > 0 }
    /// So little that reading it is cheaper than cutting the connection.
    var hasLittleBody: Bool { !isChunked && (length ?? 0) <= 65_536 }
}
