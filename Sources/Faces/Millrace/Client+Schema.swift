package import MillraceQueues
import Postgres

extension Client {
    /// Makes the queue's schema, or brings it up to this version, as the role that owns it. It may be called again, by many programs at once,
    /// and while workers run. A schema that has rooms, such as mail, is refused: `millrace migrate` brings those up, too. In a process that is
    /// rehearsed it does nothing: that has no database.
    public func migrate() async throws(QueueError) {
        guard !Worker.isRehearsed else { return }
        try await migrate(by: Migrator())
    }

    package func migrate(by migrator: Migrator) async throws(QueueError) {
        do {
            _ = try await pool.withConnection { connection in try await migrator.migrate(on: connection) }
        } catch let failure as Migrator.Failure {
            throw QueueError(failure)
        } catch let error as PostgresError {
            throw QueueError(error)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }
}
