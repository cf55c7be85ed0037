/// All that came before the body.
struct Head: Sendable {
    let method: String
    /// Path and query, as they were sent.
    let target: String
    let version: String
    let headers: [Header]
    let peer: String

    var path: Substring { target.prefix { $0 != "?" } }
    var query: Substring { target.drop { $0 != "?" }.dropFirst() }

    /// nil: as long as it takes, in pieces, or none.
    var length: Int? { headers["Content-Length"].flatMap { Int($0) } }
    var hasBody: Bool { headers["Transfer-Encoding"] != nil || (length ?? 0) > 0 }
    /// So little that reading it is cheaper than cutting the connection.
    var hasLittleBody: Bool { headers["Transfer-Encoding"] == nil && (length ?? 0) <= 65_536 }
}
