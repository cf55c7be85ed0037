package import MillraceQueues
import Postgres

extension Client {
    /// Makes the queue's schema, or brings it up to this version, as the role that owns it. It may be called again, by many programs at once,
    /// and while workers run. A schema that has rooms, such as mail, is left as it is if it has this version, and else refused: `millrace migrate`
    /// brings the rooms up, too. In a process that is rehearsed it does nothing: that has no database.
    public func migrate() async throws(QueueError) {
        guard !Worker.isRehearsed else { return }
        try await migrate(by: Migrator(), leavesRooms: true)
    }

    /// - Parameter leavesRooms: where the schema has rooms and this version, there is nothing to do, as under `millrace dev`.
    package func migrate(by migrator: Migrator, leavesRooms: Bool = false) async throws(QueueError) {
        do {
            _ = try await pool.withConnection { connection in try await migrator.migrate(on: connection) }
        } catch let failure as Migrator.Failure {
            if leavesRooms, case .unknownRooms = failure, try await hasThisVersion() { return }
            throw QueueError(failure)
        } catch let error as PostgresError {
            throw QueueError(error)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }

    private func hasThisVersion() async throws(QueueError) -> Bool {
        let state = try await using { connection throws(PostgresError) in
            try await Queue.schemaState(on: connection)
        }
        return state.version == Queue.schemaVersion
    }
}
