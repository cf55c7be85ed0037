/// What a visitor of the console may do. The database decides: each role has its own role in Postgres, with its own grants.
package enum ConsoleRole: String, Sendable, CaseIterable, Comparable {
    /// Reads; arguments are redacted, addresses masked.
    case viewer
    /// Also acts: retries, cancels, pauses, limits.
    case `operator`
    /// Also deletes for good and changes what others may do.
    case admin

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .operator: 1
        case .admin: 2
        }
    }
}

/// Who looks at a page.
struct Visitor: Sendable, Equatable {
    let name: String
    let role: ConsoleRole
    /// Came with a session cookie of ours, which a form may end.
    var hasSession = false
}
