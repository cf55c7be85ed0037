import Foundation
import Glibc
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A measurement gives no jobs to real workers, and leaves nothing.
@Suite struct LoadGroundTests {
    private func made(by process: MillraceProcess, _ connection: Connection) async throws -> [String] {
        try await connection.column(
            "select datname from pg_database where starts_with(datname, 'millrace_load_\(process.pid)_')")
    }

    /// The rows that a measurement could add to, or take from.
    private func held(_ connection: Connection) async throws -> [String] {
        try await connection.column(
            """
            select row(j.id, j.kind, j.queue)::text from millrace.job j union all select row(r.*)::text from millrace.ready r
            union all select row(q.*)::text from millrace.queue q union all select row(k.*)::text from millrace.kind k
            union all select row(s.*)::text from millrace.setting s where s.name <> 'lock_secret' order by 1
            """)
    }

    @Test func `beside other people's jobs it makes a database of its own, and drops it`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.enqueue('practice.mark', '{\"n\": 1}')")
            let before = try await held(connection)
            let process = try MillraceProcess(["load", "latency", "--tries", "2"], database: database.url)
            #expect(try await process.ended() == 0, "\(process.output)")
            #expect(process.output.contains("measuring in a database made for this"), "\(process.output)")
            #expect(try await held(connection) == before)
            #expect(try await made(by: process, connection).isEmpty)
            await connection.close()
        }
    }

    @Test func `stopped with Ctrl-C it leaves neither database nor worker nor directory`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.enqueue('practice.mark', '{\"n\": 1}')")
            let directory = FileManager.default.temporaryDirectory.appending(path: "ground-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
            let process = try MillraceProcess(
                ["load", "latency", "--tries", "100000"], database: database.url,
                environment: ["TMPDIR": directory.path])
            try await eventually("its database is used; it says: \(process.output)") {
                try await connection.int(
                    "select count(*) from pg_stat_activity where starts_with(datname, 'millrace_load_\(process.pid)_')")
                    > 2 || !process.isRunning
            }
            process.signal(SIGINT)
            #expect(try await process.ended() == 1, "\(process.output)")
            #expect(try await made(by: process, connection).isEmpty)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
            try FileManager.default.removeItem(at: directory)
            await connection.close()
        }
    }

    @Test func `without the right to make a database it refuses, and says what to do`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("load")
        try await office.run("create role \(role) login nosuperuser nocreatedb")
        try await withDatabase(.empty, owner: role) { database in
            let owner = try await database.connect(as: role)
            _ = try await Migrator.ofAllRooms().migrate(on: owner)
            try await owner.run("select millrace.enqueue('practice.mark', '{\"n\": 1}')")
            let before = try await held(owner)
            let url = database.url + (database.url.contains("?") ? "&" : "?") + "user=\(role)"
            let process = try MillraceProcess(["load", "latency", "--tries", "2", "--json"], database: url)
            #expect(try await process.ended() == 4, "\(process.output)")
            #expect(process.output.contains("\"class\":\"conflict\"") && process.output.contains("create databases"))
            #expect(try await held(owner) == before)
            await owner.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `an empty database is measured in, and again later`() async throws {
        try await withDatabase { database in
            for _ in 1...2 {
                let process = try MillraceProcess(["load", "latency", "--tries", "2"], database: database.url)
                #expect(try await process.ended() == 0, "\(process.output)")
                #expect(!process.output.contains("made for this"), "\(process.output)")
            }
        }
    }
}
