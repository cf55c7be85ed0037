import Clusters
import Foundation
import Glibc
import MillraceQueues
import Postgres
import RoomSchemas
import TestSupport
import Testing

/// A backup by Postgres' own programs, and what a worker makes of the copy; see deploy/guides/backup.md.
@Suite struct BackupTests {
    /// What each job of the test was, and how it ends in the copy.
    private struct Expected {
        let name: String
        let id: Int
        var state = "succeeded"
    }

    private static let file = FileManager.default.temporaryDirectory

    @Test(arguments: [false, true])
    func `a dump that is restored has every row, and a worker ends each job once`(hasRooms: Bool) async throws {
        let dump = Self.file.appending(path: "millrace-\(UUID().uuidString).dump").path
        defer { try? FileManager.default.removeItem(atPath: dump) }
        var jobs: [Expected] = []
        var before: [String] = []
        var complaints: [String] = []
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            _ = try await Migrator(rooms: RoomSchemas.all, adding: hasRooms ? RoomSchemas.names : [])
                .migrate(on: connection)
            (jobs, complaints) = try await Self.work(on: connection, database)
            if hasRooms {
                try await connection.run(
                    """
                    select millrace.family_create('f', 'Europe/Vienna'), millrace.family_join('f', 'ann', 'parent');
                    select millrace.event_publish('a.b', '/t', '{"n": 1}');
                    select millrace.mail_send(array['ann@example.com'], 'Your report', 'The text')
                    """)
            }
            before = try await Self.rows(on: connection)
            await connection.close()
            try await Program.check(Self.program("pg_dump"), ["--format=custom", "--file=\(dump)", database.url])
        }
        try await withDatabase(.empty) { database in
            try await Program.check(
                Self.program("pg_restore"), ["--exit-on-error", "--dbname=\(database.url)", dump])
            let connection = try await database.connect()
            #expect(try await Self.rows(on: connection) == before)
            let worker = try await MillraceProcess.worker("second", database: database.url)
            #expect(try await Self.living(on: connection) >= jobs.count - 3)
            try await connection.run("select millrace.resume('held'), millrace.signal('paid', payload => '7')")
            try await eventually("each job has ended: \(worker.output.suffix(2000))", within: .seconds(300)) {
                try await Self.living(on: connection) == 0
            }
            for job in jobs {
                let ends = try await connection.column(
                    "select outcome from millrace.history where id = \(job.id) and outcome in (1, 2, 3)")
                #expect(ends.count == 1, "\(job.name): \(ends)")
                let state = try await connection.value("select state from millrace.jobs where id = \(job.id)")
                #expect(state == job.state, "\(job.name)")
            }
            // The order failed in the copy, and each of its charges was given back.
            #expect(
                try await connection.value(
                    "select count(*) || ' ' || count(given_back) from public.practice_charge") == "5 5")
            if hasRooms {
                try await eventually("the mail is sent") {
                    try await connection.column("select status from millrace.mail") == ["accepted"]
                }
            }
            #expect(try await Self.complaints(database) == complaints)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    /// Brings jobs into the states that a worker can be in the middle of, and kills it there.
    private static func work(on connection: Connection, _ database: TestDatabase) async throws -> (
        jobs: [Expected], complaints: [String]
    ) {
        try await connection.run(
            """
            create table public.practice_charge (key text primary key, job bigint, number int, charged timestamptz, given_back timestamptz);
            select millrace.limit_set('key', 'one', '{"concurrency": 1}');
            select millrace.enqueue('practice.nothing', queue => 'held');
            select millrace.pause('held')
            """)
        var jobs: [Expected] = []
        func enqueue(_ name: String, _ call: String, ends state: String = "succeeded") async throws -> Int {
            let id = try await connection.int("select millrace.enqueue(\(call))")
            jobs.append(Expected(name: name, id: id, state: state))
            return id
        }
        func stands(_ id: Int, _ state: String) async throws -> Bool {
            try await connection.bool("select state = '\(state)' from millrace.jobs where id = \(id)")
        }
        let worker = try await MillraceProcess.worker("first", database: database.url)
        let done = try await enqueue("succeeded", "'practice.nothing'")
        let dead = try await enqueue("dead", #"'practice.fail', '{"times": 9}', max_attempts => 1"#, ends: "dead")
        let cancelled = try await enqueue(
            "cancelled", "'practice.nothing', run_at => now() + interval '1 day'", ends: "cancelled")
        try await connection.run("select millrace.cancel(\(cancelled))")
        let long = #"'practice.sleep', '{"ms": 15000}'"#
        let running = try await enqueue("running", "\(long), unique_key => 'k', limit_key => 'one'")
        try await eventually("it runs") { try await stands(running, "running") }
        _ = try await enqueue("parked", "'practice.nothing', limit_key => 'one'")
        _ = try await enqueue("follower", "'practice.nothing', unique_key => 'k', on_conflict => 'replace'")
        _ = try await enqueue("after", #"'practice.nothing', options => '{"after": {"jobs": [\#(running)]}}'"#)
        _ = try await enqueue("sleeping", #"'practice.wait', '{"n": 1, "seconds": 15}'"#)
        _ = try await enqueue("waits for a signal", #"'practice.wait', '{"n": 2, "name": "paid"}'"#)
        let order = try await enqueue(
            "undoable", #"'practice.order', '{"fails": true, "pause": 15}'"#, ends: "dead")
        for number in 1...5 { _ = try await enqueue("retrying \(number)", #"'practice.fail', '{"times": 5}'"#) }
        try await eventually("all are in the midst of it: \(worker.output)") {
            let (isDone, isDead) = (try await stands(done, "succeeded"), try await stands(dead, "dead"))
            let waits = try await connection.column("select what from millrace.wait order by 1")
            let places = try await connection.bool(
                """
                select exists (select from millrace.parked) and exists (select from millrace.blocked where starts = 4)
                   and exists (select from millrace.timer where attempt > 0)
                """)
            return isDone && isDead && places && waits == ["1", "1", "2"]
        }
        let complaints = try await Self.complaints(database)
        worker.signal(SIGKILL)
        _ = try await worker.ended()
        #expect(try await stands(running, "running"))
        #expect(try await connection.int("select count(*) from millrace.undo where job = \(order)") == 2)
        _ = try await enqueue("ready", "'practice.nothing'")
        _ = try await enqueue("scheduled", "'practice.nothing', run_at => now() + interval '2 seconds'")
        return (jobs, complaints)
    }

    /// Jobs that have not ended, and steps that are still to be undone.
    private static func living(on connection: Connection) async throws -> Int {
        try await connection.int(
            """
            select (select count(*) from millrace.jobs where kind like 'practice.%' and state not in ('succeeded', 'cancelled', 'dead'))
                 + (select count(*) from millrace.undo)
            """)
    }

    /// A line for each table of the schema, with what its rows come to.
    private static func rows(on connection: Connection) async throws -> [String] {
        let tables = try await connection.column(
            "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind = 'r' order by 1")
        var lines: [String] = []
        for table in tables {
            let content = try await connection.value(
                "select count(*) || ' ' || coalesce(md5(string_agg(t::text, ',' order by t::text collate \"C\")), '-') from millrace.\(table) t"
            )
            lines.append("\(table) \(content ?? "")")
        }
        return lines
    }

    /// What `doctor` warns of, without what it counts.
    private static func complaints(_ database: TestDatabase) async throws -> [String] {
        let doctor = try MillraceProcess(["doctor"], database: database.url)
        _ = try await doctor.ended()
        return doctor.output.split(separator: "\n").filter { $0.hasPrefix("warning") || $0.hasPrefix("problem") }
            .map { String($0.prefix { $0 != ":" }) }
    }

    private static func program(_ name: String) throws -> String {
        "\(try Cluster.Binaries.locate(environment: [:]).directory)/\(name)"
    }
}
