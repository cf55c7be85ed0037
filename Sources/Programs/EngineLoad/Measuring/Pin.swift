import CommandKit
import LoadKit
import Postgres

/// A repeatable-read transaction that stays open: rows that were visible when it began cannot be cleaned up.
struct Pin: Sendable {
    private let connection: Connection
    private let snapshot: String

    init(_ options: ConnectionOptions) async throws {
        connection = try await Connection.open(options, name: "load-pin")
        try await connection.execute("select set_config('idle_in_transaction_session_timeout', '0', false)")
        try await connection.execute("begin isolation level repeatable read")
        snapshot = try await Self.snapshot(on: connection)
    }

    /// Ends it; throws if it had not stood open until now.
    func release() async throws {
        let now = try await Self.snapshot(on: connection)
        try await connection.execute("commit")
        await connection.close()
        guard now == snapshot else { throw Failure("the transaction that was to stay open has not kept its snapshot") }
    }

    private static func snapshot(on connection: Connection) async throws(PostgresError) -> String {
        try await connection.text("select pg_current_snapshot()::text")
    }
}
