import Glibc
import MillraceQueues
import Postgres
import RoomSchemas
import Synchronization
import TestSupport
import Testing

/// A database that has the core alone, and programs that have every room.
@Suite struct CoreAloneTests {
    private final class Flag: Sendable {
        let isSet = Mutex(false)
    }

    private static func run(_ arguments: [String], _ database: TestDatabase) async throws -> (code: Int32, text: String)
    {
        let process = try MillraceProcess(arguments, database: database.url)
        let code = try await process.ended()
        return (code, process.output)
    }

    @Test func `a worker does the queue's jobs, and the commands keep to what is there`() async throws {
        try await withDatabase(.empty) { database in
            let migrated = try await Self.run(["migrate"], database)
            #expect(migrated.code == 0 && migrated.text.contains("--rooms mail,documents"), "\(migrated.text)")
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("core", database: database.url, [])
            let id = try await connection.int("select millrace.enqueue('practice.sleep', '{\"ms\": 1}')")
            try await eventually("it is done") {
                try await connection.bool("select state = 'succeeded' from millrace.jobs where id = \(id)")
            }
            #expect(worker.output.contains("rooms that are not installed are not served"))
            // What status counts of long queues is the core's own.
            #expect(try await Queue.readyEstimates(on: connection).values.allSatisfy { $0 == 0 })
            let status = try await Self.run(["status", "--json"], database)
            #expect(status.code == 0, "\(status.text)")
            let doctor = try await Self.run(["doctor"], database)
            #expect(
                doctor.text.contains("rooms: each is as this program has it"), "\(doctor.text)")
            #expect(!doctor.text.contains("check-ins:"))
            for line in [
                ["mail", "list"], ["documents", "list"], ["checkins", "list"], ["ai", "list"], ["events", "list"],
                ["blobs", "list"],
            ] {
                let outcome = try await Self.run(line, database)
                #expect(
                    outcome.code == 6 && outcome.text.contains("the room \(line[0]) is not installed")
                        && outcome.text.contains("millrace rooms add \(line[0])"), "\(outcome.text)")
            }
            for line in [
                ["jobs", "list"], ["queues", "list"], ["rooms", "list"], ["rooms", "check"], ["workers", "list"],
            ] {
                let outcome = try await Self.run(line, database)
                #expect(outcome.code == 0, "\(line): \(outcome.text)")
            }
            // A job of a room that is not there waits, and is told.
            try await connection.run("select millrace.enqueue('mail.send', '{}')")
            let check = try await Self.run(["rooms", "check"], database)
            #expect(check.code == 10 && check.text.contains("millrace rooms add mail"), "\(check.text)")
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            #expect(!worker.output.contains("does not exist"), "\(worker.output)")
            await connection.close()
        }
    }

    @Test func `a console or a gateway that is asked for, and is not there, is named`() async throws {
        try await withDatabase(.empty) { database in
            #expect(try await Self.run(["migrate"], database).code == 0)
            for room in ["console", "gateway"] {
                let outcome = try await Self.run([room, "--listen", "127.0.0.1:\(try freePort())"], database)
                #expect(outcome.code == 6 && outcome.text.contains("millrace rooms add \(room)"), "\(outcome.text)")
            }
            let worker = try MillraceProcess(
                ["worker", "--practice"], database: database.url,
                environment: ["MILLRACE_CONSOLE": "on", "MILLRACE_LISTEN": "127.0.0.1:\(try freePort())"])
            #expect(try await worker.ended() == 6)
            #expect(worker.output.contains("millrace rooms add console"), "\(worker.output)")
        }
    }

    /// Rooms come and go while jobs are enqueued and done; the workers are those that were there before.
    @Test func `rooms are added and taken away under load, and no job is lost`() async throws {
        try await withDatabase(.empty) { database in
            #expect(try await Self.run(["migrate"], database).code == 0)
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("core", database: database.url, [])
            let flag = Flag()
            async let enqueued = {
                let producer = try await database.connect()
                var count = 0
                while !flag.isSet.withLock({ $0 }) {
                    try await producer.run(
                        "select millrace.enqueue('practice.nothing') from generate_series(1, 5)")
                    count += 5
                }
                await producer.close()
                return count
            }()
            for line in [
                ["rooms", "add", "mail"], ["rooms", "add", "chat"], ["rooms", "remove", "chat"],
                ["rooms", "remove", "mail", "checkins", "quests", "notices"], ["rooms", "add", "all"],
            ] {
                let outcome = try await Self.run(line, database)
                #expect(outcome.code == 0, "\(line): \(outcome.text)")
            }
            flag.isSet.withLock { $0 = true }
            let total = try await enqueued
            #expect(total > 0)
            try await eventually("all are done", within: .seconds(120)) {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == total
            }
            #expect(try await Queue.installedRooms(on: connection).count == RoomSchemas.names.count)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}
