import Postgres
import Telemetry

/// Sessions that people have signed out of. A cookie of one opens nothing more, at this console at once and at every other of the database
/// within a second.
actor EndedSessions {
    private let pool: Pool
    private let roles: ConsoleRoles
    private let log: Log
    /// Until when their cookies would have been good.
    private var ended: [[UInt8]: Int] = [:]
    /// When the database last said that a session goes on.
    private var open: [[UInt8]: ContinuousClock.Instant] = [:]

    /// So long counts what the database said, for a page and for a live page.
    static let patience = Duration.seconds(1)
    static let livePatience = Duration.seconds(10)
    private static let mostOpen = 10_000

    init(pool: Pool, roles: ConsoleRoles, log: Log) {
        (self.pool, self.roles, self.log) = (pool, roles, log)
    }

    func isOver(
        _ session: ConsoleSession, of visitor: Visitor, within patience: Duration = EndedSessions.patience
    ) async throws -> Bool {
        if ended[session.mark] != nil { return true }
        if let known = open[session.mark], known.duration(to: .now) < patience { return false }
        let isOver = try await ask("select millrace.console_signed_out($1)", [.bytea(session.mark)], as: visitor)
        // Somebody may have signed out meanwhile.
        guard ended[session.mark] == nil, !isOver else { return true }
        if open.count >= Self.mostOpen { open = [:] }
        open[session.mark] = .now
        return false
    }

    /// Whether somebody has signed out of it here; the database is not asked.
    func hasEnded(_ session: ConsoleSession) -> Bool { ended[session.mark] != nil }

    func forget(_ session: ConsoleSession, at now: Int) {
        ended = ended.filter { $0.value > now }
        ended[session.mark] = session.until
        open[session.mark] = nil
    }

    /// The database has it for the other consoles.
    func tell(_ session: ConsoleSession, of visitor: Visitor) async {
        do {
            _ = try await ask(
                "select millrace.console_sign_out($1, to_timestamp($2))",
                [.bytea(session.mark), .float8(Double(session.until))], as: visitor)
        } catch {
            log.warning("other consoles could not be informed that somebody signed out", [("error", "\(error)")])
        }
    }

    private func ask(_ sql: SQL, _ parameters: [Parameter], as visitor: Visitor) async throws -> Bool {
        try await ConsoleReader(pool: pool, roles: roles, visitor: visitor).transaction {
            connection throws(PostgresError) in
            try await connection.query(sql, parameters, deadline: ConsoleReader.patience) {
                row throws(PostgresError) in try row.bool(0)
            }.first ?? false
        }
    }
}
