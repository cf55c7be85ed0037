import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct NotificationHubTests {
    /// What one room was told, in order.
    private final class Room: Sendable {
        private let news = Mutex<[NotificationHub.News]>([])

        init(_ channels: Set<String>, _ hearing: NotificationHub) {
            hearing.heed(channels) { one in self.news.withLock { $0.append(one) } }
        }

        var heard: [NotificationHub.News] { news.withLock { $0 } }
    }

    private static let listening =
        "from pg_stat_activity where datname = current_database() and query ilike 'listen %'"

    @Test func `rooms hear what is said on their channels, all by one connection`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let hearing = NotificationHub(database.options)
            let (one, two) = (Room(["a", "b"], hearing), Room(["c"], hearing))
            #expect(!hearing.isOpen)
            let runs = (1...3).map { _ in Task { await hearing.run() } }
            try await eventually("it hears") { hearing.isOpen }
            for channel in ["a", "c", "b", "d"] { try await connection.run("notify \(channel), 'to \(channel)'") }
            try await eventually("both have heard") { one.heard.count == 3 && two.heard.count == 2 }
            #expect(one.heard == [.began, .said("to a"), .said("to b")])
            #expect(two.heard == [.began, .said("to c")])
            #expect(try await connection.int("select count(*) \(Self.listening)") == 1)
            for run in runs {
                run.cancel()
                await run.value
            }
            #expect(one.heard.last == .ended && !hearing.isOpen)
            await connection.close()
        }
    }

    @Test func `a connection that is lost is told of, and so is the next`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let hearing = NotificationHub(database.options)
            let room = Room(["a"], hearing)
            let run = Task { await hearing.run() }
            try await eventually("it hears") { hearing.isOpen }
            try await connection.run("select pg_terminate_backend(pid) \(Self.listening)")
            try await eventually("it hears again") { room.heard == [.began, .ended, .began] }
            try await connection.run("notify a, 'once more'")
            try await eventually("what is said then is heard") { room.heard.last == .said("once more") }
            run.cancel()
            await run.value
            await connection.close()
        }
    }

    @Test(.enabled(if: TestPooler.program != nil, "pgbouncer is not installed: apt-get install pgbouncer"))
    func `behind a transaction pooler nobody waits for what is never heard`() async throws {
        try await withDatabase(.empty) { database in
            try await withPooler(to: database) { options in
                let hearing = NotificationHub(options)
                let room = Room(["a"], hearing)
                await hearing.run()
                #expect(room.heard.isEmpty && !hearing.isOpen)
            }
        }
    }

    @Test func `who has a connection anyway hears for the others`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let speaker = try await database.connect()
            let hearing = NotificationHub(database.options)
            let room = Room(["a"], hearing)
            #expect(hearing.host() && !hearing.host())
            await hearing.run()  // ends at once: it has a host
            #expect(room.heard.isEmpty)
            try await hearing.begin(on: connection)
            try await speaker.run("notify a, 'x'")
            try await hearing.hear(on: connection)
            hearing.end()
            hearing.end()
            #expect(room.heard == [.began, .said("x"), .ended])
            await connection.close()
            await speaker.close()
        }
    }
}
