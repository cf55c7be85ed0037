import FoundationEssentials
import Glibc
import Postgres
import Queues
import Schema
import TestSupport
import Testing

@Suite struct MigrateTests {
    @Test func `twenty migrations at once, by somebody without rights, all succeed, twice`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("plain")
        try await office.run("create role \(role) login nosuperuser nocreatedb nocreaterole")
        try await withDatabase(.empty, owner: role) { database in
            for turn in 1...2 {
                let reports = try await withThrowingTaskGroup(of: Migrator.Report.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            let connection = try await database.connect(as: role)
                            let report = try await Migrator().migrate(on: connection)
                            await connection.close()
                            return report
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(reports.count == 20 && reports.allSatisfy { $0.version == Schema.version && $0.refreshed })
                let applied = reports.filter { !$0.applied.isEmpty }
                #expect(applied.map(\.applied) == (turn == 1 ? [Schema.migrations.map(\.name)] : []))
            }
            let connection = try await database.connect(as: role)
            let id = try await connection.enqueue()
            #expect(try await connection.state(id) == "ready")
            #expect(try await connection.int("select count(*) from millrace.migration") == Schema.version)
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `a schema from the future is refused, and left as it is`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "insert into millrace.migration (number, name) values (\(Schema.version + 1), 'future')")
            do throws(Migrator.Failure) {
                _ = try await Migrator().migrate(on: connection)
                Issue.record("it was accepted")
            } catch {
                guard case .newerSchema(let found, let known) = error else {
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
            _ = try await Migrator().migrate(on: connection)
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
            // The tables in both orders.
            for (first, second) in [("wait", "signal"), ("signal", "wait")] {
                // As if the last migrations were still to come.
                try await connection.run(
                    """
                    alter table millrace.wait drop column look_at;
                    alter table millrace.signal drop column look_at;
                    alter table millrace.ending drop column look_at;
                    create index signal_fresh on millrace.signal (seq) where state = 0;
                    alter table millrace.beat drop column ahead cascade;
                    alter table millrace.chat_member drop column passed cascade;
                    alter table millrace.chat_member add column unread int not null default 0;
                    alter table millrace.feed drop column thread cascade, drop column n cascade, drop column xid cascade,
                        drop column counted_to cascade, drop column counted_open cascade, drop column counted_at cascade;
                    alter table millrace.feed add constraint a_change_concerns_somebody check (person is not null or tenant is not null);
                    drop table millrace.hook, millrace.hook_failure;
                    delete from millrace.migration m
                     where m.number >= (select x.number from millrace.migration x where x.name like '%looked_at_again')
                    """)
                try await caller.run("begin; select count(*) from millrace.\(second)")
                async let migrated = Migrator().migrate(on: connection)
                try await waitUntilBlocked(process, seenBy: database.connect())
                #expect(try await caller.int("select count(*) from millrace.\(first)") == 0)
                try await caller.run("commit")
                #expect(try await migrated.refreshed)
            }
            #expect(try await connection.int("select count(*) from millrace.migration") == Schema.version)
            for connection in [caller, connection] { await connection.close() }
        }
    }

    @Test func `what is embedded is what the folder holds, in its order`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let paths = try FileManager.default.subpathsOfDirectory(atPath: "\(root)/sql").filter { $0.hasSuffix(".sql") }
        /// Paths of migrations, or of functions, by name.
        func files(ofMigrations: Bool) -> [String: String] {
            Dictionary(
                uniqueKeysWithValues: paths.filter { $0.hasPrefix("migrations/") == ofMigrations }.map { path in
                    (String(path.split(separator: "/").last?.dropLast(4) ?? ""), "\(root)/sql/\(path)")
                })
        }
        #expect(Schema.migrations.map(\.name) == files(ofMigrations: true).keys.sorted())
        for (ofMigrations, scripts) in [(true, Schema.migrations), (false, Schema.functions + [Schema.testClock])] {
            let files = files(ofMigrations: ofMigrations)
            #expect(scripts.map(\.name).sorted() == files.keys.sorted())
            for script in scripts {
                let text = files[script.name].flatMap { FileManager.default.contents(atPath: $0) }
                let isSame = text.map(Array.init) == script.bytes
                #expect(isSame, "\(script.name)")
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
