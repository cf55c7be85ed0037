package import CommandKit
package import Postgres

/// One thing that `doctor` asks of a room. deploy/guides/operating.md has a heading for each.
package struct RoomCheck: Sendable {
    package let subject: String
    /// A subject that cannot be asked is a warning, and does not stop the others.
    package let ask: @Sendable (Invocation, Connection) async throws(PostgresError) -> Check.Result

    package init(
        _ subject: String,
        ask: @escaping @Sendable (Invocation, Connection) async throws(PostgresError) -> Check.Result
    ) {
        self.subject = subject
        self.ask = ask
    }
}
