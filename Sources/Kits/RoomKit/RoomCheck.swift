package import CommandKit
package import Postgres

/// One thing that `doctor` asks of a room. deploy/guides/operating.md has a heading for each of Millrace's own.
public struct RoomCheck: Sendable {
    package let subject: String
    /// false: it asks this machine and not the database, so it is asked whatever the schema is.
    package let needsSchema: Bool
    /// A subject that cannot be asked is a warning, and does not stop the others.
    package let ask: @Sendable (Invocation, Connection) async throws(PostgresError) -> Check.Result

    package init(
        _ subject: String, needsSchema: Bool = true,
        ask: @escaping @Sendable (Invocation, Connection) async throws(PostgresError) -> Check.Result
    ) {
        self.subject = subject
        self.needsSchema = needsSchema
        self.ask = ask
    }

    /// A check of a room of another package.
    /// - Parameters:
    ///   - subject: What is looked at, in a word or two.
    ///   - ask: Looks, and says how it is.
    public init(_ subject: String, ask: @escaping @Sendable (RoomDatabase) async throws -> Check.Result) {
        self.init(subject) { (invocation, connection) async throws(PostgresError) in
            do {
                return try await ask(RoomDatabase(connection, settings: invocation.settings))
            } catch let error as PostgresError {
                throw error
            } catch {
                return .warning("its state cannot be read: \(error)", advice: "ask those who wrote the room")
            }
        }
    }
}
