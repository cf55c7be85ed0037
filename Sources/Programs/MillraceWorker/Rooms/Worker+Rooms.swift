import Composition
import Encryption
public import Millrace
import MillraceQueues
import Postgres
public import RoomKit

extension Worker {
    /// A worker of the jobs of these rooms, which are yours: for a small program, or for tests. Rooms of Millrace's need a ``CompleteWorker``.
    public convenience init(
        rooms: Set<Room>, database: Database = .environment, slots: Int = 100, queues: [String: Int?] = [:],
        drainTimeout: Duration = .seconds(30), keys: EncryptionKeys = .environment, log: LogLevel = .info
    ) throws(QueueError) {
        self.init(
            database: database, slots: slots, queues: queues, drainTimeout: drainTimeout, keys: keys, log: log)
        let shared = RoomDatabase(try database.pool(size: 4))
        for room in rooms.sorted(by: { $0.name < $1.name }) {
            guard let jobs = room.jobs else {
                throw QueueError(
                    .misconfigured, "The room \(room.name) is one of Millrace's, and needs a CompleteWorker.")
            }
            let found: RoomJobs
            do {
                found = try jobs(shared, keys.ring())
            } catch let error as QueueError {
                throw error
            } catch {
                throw QueueError(.misconfigured, "\(error)")
            }
            handle(found.handlers)
            schedule(found.schedules)
        }
    }
}

extension TestBench {
    /// Makes or updates the core, these rooms and what they need, with a clock that can be moved. Only ever on a test database.
    public func prepare(rooms: Set<Room>) async throws(QueueError) {
        let names = rooms.map(\.name).sorted()
        do {
            let known = try Rooms.with(Array(rooms))
            try await prepare(by: Migrator(rooms: known.schemas, adding: names, testClock: true))
        } catch let error as QueueError {
            throw error
        } catch {
            throw QueueError(.misconfigured, "\(error)")
        }
    }
}

extension RoomDatabase {
    /// The database of a test, or of a program that calls its room's functions. It opens four connections at most.
    public init(_ database: Database) throws(QueueError) {
        self.init(try database.pool(size: 4))
    }
}
