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
    /// Whose share of connections and live pages this is. Where several have one name, those of an address are one.
    let holder: String
    /// Came with a session cookie of ours, which a form may end.
    var session: ConsoleSession?

    init(name: String, role: ConsoleRole, holder: String? = nil, session: ConsoleSession? = nil) {
        (self.name, self.role, self.session) = (name, role, session)
        self.holder = holder ?? name
    }
}
