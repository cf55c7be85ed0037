public import Millrace
import MillraceQueues
import RoomSchemas

extension TestBench {
    /// Makes or updates the schema with the room mail, as a ``MailCatcher`` needs it, and with a clock that can be moved. Only ever on a test database.
    public func prepare(for mails: MailCatcher) async throws(QueueError) {
        try await prepare(by: Migrator(rooms: RoomSchemas.all, adding: ["mail"], testClock: true))
    }
}
