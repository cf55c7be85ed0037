import MillraceQueues
package import Postgres

/// What a name on the command line refers to.
package enum Named: String, Sendable {
    case queue, kind, provider, flag, schedule
}

extension CommandFlag {
    /// For verbs that would otherwise create what they cannot find.
    package static func create(_ what: Named) -> CommandFlag {
        .toggle("create", environment: .none, help: "Create the \(what.rawValue) if it does not exist yet.")
    }
}

extension Invocation {
    /// Acts on names in one transaction, after all of them were found there. With `--create` an unknown one is made.
    package func acting<Value: Sendable>(
        on what: Named, _ names: [String], isMade: Bool = false,
        _ act: @Sendable (Connection) async throws(PostgresError) -> Value
    ) async throws -> Value {
        try await withSchema { connection in
            let answer: Result<Value, Failure> = try await connection.transaction { connection throws(PostgresError) in
                if !isMade, let unknown = try await Self.unknown(what, names, on: connection) {
                    return .failure(unknown)
                }
                return .success(try await act(connection))
            }
            return try answer.get()
        }
    }

    /// Whether the verb has `--create`, and it was given.
    package var creates: Bool { parsed.command.flag(named: "create") != nil && parsed.isOn("create") }

    /// The failure for the first unknown name, with the name that was probably meant.
    package static func unknown(
        _ what: Named, _ names: [String], on connection: Connection
    ) async throws(PostgresError) -> Failure? {
        guard !names.isEmpty else { return nil }
        let known = try await Queue.names(of: what.rawValue, on: connection)
        guard let name = names.first(where: { !known.contains($0) }) else { return nil }
        let isLane = what == .queue && Named.lanes.contains(name.filter(\.isLetter).lowercased())
        return Failure(
            .notFound, unknownSentence(what, name, known: known), hint: isLane ? Named.aboutLanes : what.listing)
    }

    package static func unknownSentence(_ what: Named, _ name: String, known: [String]) -> String {
        let near = Suggestions.closest(to: name, among: known).map { "; did you mean \($0)?" } ?? ""
        return "there is no \(what.rawValue) \(name)\(near)"
    }
}

extension Named {
    /// Rooms whose work is not jobs, because somebody might take them for queues.
    fileprivate static let lanes: Set = ["notices", "notice", "webhooks", "webhook", "checkins", "checkin", "alarms"]

    package static let aboutLanes =
        "notices, webhooks and check-ins are not jobs: no queue's pause reaches them; millrace providers block stops the calls to a provider"

    fileprivate var listing: String {
        switch self {
        case .queue: "millrace queues list shows them all"
        case .kind: "a kind is known once a worker has registered it, or a job of it was enqueued"
        case .provider: "millrace providers list shows those that workers have called; --create names another"
        case .flag: "millrace flags list shows them all; --create makes another"
        case .schedule: "millrace schedules list shows them all"
        }
    }
}
