import FoundationEssentials
import Glibc
import MillraceQueues
import Postgres
import RoomSchemas
import Schema
import TestSupport
import Testing

@Suite struct MigrateTests {
    private static let all = [Schema.core] + RoomSchemas.all

    @Test func `twenty migrations at once, by somebody without rights, all succeed, and so do more`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("plain")
        let lines = [Schema.core] + Template.rooms
        try await office.run("create role \(role) login nosuperuser nocreatedb nocreaterole")
        try await withDatabase(.empty, owner: role) { database in
            for (turn, count) in [(1, 20), (2, 3)] {
                let reports = try await withThrowingTaskGroup(of: Migrator.Report.self) { group in
                    for _ in 0..<count {
                        group.addTask {
                            let connection = try await database.connect(as: role)
                            let report = try await Migrator.asTested().migrate(on: connection)
                            await connection.close()
                            return report
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(reports.count == count && reports.allSatisfy { $0.version == Schema.version && $0.refreshed })
                let applied = reports.filter { !$0.applied.isEmpty }
                #expect(applied.map(\.applied) == (turn == 1 ? [lines.flatMap(\.migrations).map(\.name)] : []))
            }
            let connection = try await database.connect(as: role)
            let id = try await connection.enqueue()
            #expect(try await connection.state(id) == "ready")
            #expect(
                try await connection.column("select line from millrace.migration group by 1 order by 1")
                    == lines.map(\.name).sorted())
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `a schema from the future is refused, and left as it is`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "insert into millrace.migration (number, name) values (\(Schema.version + 1), 'future')")
            do throws(Migrator.Failure) {
                _ = try await Migrator.asTested().migrate(on: connection)
                Issue.record("it was accepted")
            } catch {
                guard case .newerSchema(let found, let known, "core") = error else {
                    Issue.record(error)
                    return
                }
                #expect(found == Schema.version + 1 && known == Schema.version)
                #expect(error.description.contains("newer millrace"))
            }
        }
    }

    @Test func `a migration waits for a long reader, and works under live jobs`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            _ = try await Migrator.asTested().migrate(on: connection)
            #expect(try await connection.state(id) == "running")
            #expect(try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1]) == [9])
        }
    }

    /// 1. A caller's transaction has used one table that the migration changes. 2. The migration waits for it. 3. The caller uses another table, which
    /// the migration has locked by now.
    @Test func `a migration gives way to a caller whom it would deadlock with`() async throws {
        try await withDatabase { database in
            let (caller, connection) = (try await database.connect(), try await database.connect())
            let process = try await connection.process()
            var rooms = RoomSchemas.all
            // The tables in both orders.
            for (first, second) in [("wait", "signal"), ("signal", "wait")] {
                let script = """
                    alter table millrace.wait add column \(first)_extra int;
                    create index signal_\(first)_extra on millrace.signal (seq)
                    """
                let extra = RoomSchema(
                    name: "extra_\(first)", purpose: "", migrations: [Script("001_\(first)", Array(script.utf8))],
                    functions: [])
                rooms.append(extra)
                try await caller.run("begin; select count(*) from millrace.\(second)")
                let migrator = Migrator(rooms: rooms, adding: [extra.name])
                async let migrated = migrator.migrate(on: connection)
                try await waitUntilBlocked(process, seenBy: database.connect())
                #expect(try await caller.int("select count(*) from millrace.\(first)") == 0)
                try await caller.run("commit")
                #expect(try await migrated.applied == ["001_\(first)"])
            }
            for connection in [caller, connection] { await connection.close() }
        }
    }

    @Test func `what is embedded is what the folders hold, and the migrations of a line are in order`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let paths = try FileManager.default.subpathsOfDirectory(atPath: "\(root)/sql").filter { $0.hasSuffix(".sql") }
        let files = Dictionary(grouping: paths) { String($0.split(separator: "/").last?.dropLast(4) ?? "") }
        let scripts =
            Self.all.flatMap { $0.migrations + $0.functions } + RoomSchemas.adoption.scripts
            + [Schema.testClock, Schema.grants]
        #expect(files.keys.sorted() == scripts.map(\.name).sorted())
        for script in scripts {
            let paths = files[script.name] ?? []
            #expect(paths.count == 1, "\(paths)")
            let text = FileManager.default.contents(atPath: "\(root)/sql/\(paths.first ?? "")")
            let isSame = text.map(Array.init) == script.bytes
            #expect(isSame, "\(script.name)")
        }
        for line in Self.all.map(\.migrations) + [RoomSchemas.adoption.scripts] {
            #expect(line.map(\.number) == line.map(\.number).sorted() && Set(line.map(\.number)).count == line.count)
        }
        for room in Self.all {
            let folder = room.name == "core" ? "core/" : "\(room.name)/"
            for script in room.migrations + room.functions {
                #expect(files[script.name]?.allSatisfy { $0.hasPrefix(folder) } == true, "\(script.name)")
            }
        }
    }

    @Test func `history has its leaves ahead, and a run without one goes to the default and moves in later`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            func leaves() async throws -> [String] {
                try await connection.column(
                    "select relname from pg_class where relname ~ '^history_standard_\\d+$' order by 1")
            }
            #expect(try await leaves().count == 6)
            try await connection.run("select millrace.test_clock_advance('10 days')")
            let id = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1])
            #expect(try await connection.int("select count(*) from only millrace.history_standard_default") == 1)
            #expect(try await connection.state(id) == "succeeded")
            #expect(try await connection.int("select made from millrace.maintain()") > 0)
            #expect(try await connection.int("select count(*) from only millrace.history_standard_default") == 0)
            #expect(try await connection.state(id) == "succeeded")
        }
    }

    @Test func `what has outlived its stay is dropped, and what lives on is kept`() async throws {
        try await withConnection(.movableClock) { connection in
            let ended = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish([.init(id: ended, outcome: 1)], complete: [9: 1])
            try await connection.run("select millrace.test_clock_advance('1 day'); select millrace.maintain()")
            // Two in one lease: the first end is older than its stay when the second comes.
            let first = try await connection.enqueue()
            let running = try await connection.enqueue()
            let waiting = try await connection.enqueue()
            try await connection.claim(number: 16, wanted: 2)
            _ = try await connection.finish([.init(id: first, outcome: 1, number: 17)], partial: [17])
            for _ in 0..<16 {
                try await connection.run("select millrace.test_clock_advance('1 day'); select millrace.maintain()")
            }
            #expect(try await connection.state(ended) == nil)
            #expect(try await connection.int("select count(*) from millrace.job where id = \(ended)") == 0)
            #expect(try await connection.state(running) == "running")
            #expect(try await connection.state(waiting) == "ready")
            // The whole range of ids is deleted, except for living jobs.
            try await connection.run("select setval('millrace.seq', 20000000); select millrace.job_ahead()")
            let young = try await connection.enqueue()
            for _ in 0..<40 {
                try await connection.run("select millrace.test_clock_advance('1 day'); select millrace.maintain()")
            }
            #expect(try await connection.value("select to_regclass('millrace.job_0')") == nil)
            #expect(
                try await connection.column("select id from only millrace.job_default order by 1") == [
                    "\(first)", "\(running)", "\(waiting)",
                ])
            #expect(try await connection.state(running) == "running")
            #expect(try await connection.state(waiting) == "ready")
            #expect(try await connection.state(young) == "ready")
            #expect(
                try await connection.finish([.init(id: running, outcome: 1, number: 17)], complete: [17: 1]) == [17])
        }
    }
}
