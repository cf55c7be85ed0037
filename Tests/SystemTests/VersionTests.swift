import Foundation
import MillraceJobs
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

private struct Order: Job {
    static let kind = "order"
    static let retries = RetryPolicy(attempts: 1000, base: .milliseconds(1), cap: .milliseconds(2))
    var n: Int
}

private struct Broken: Error {}

/// Pinned workers of several builds in one process.
@Suite struct VersionTests {
    /// What the handlers did, each with the build that did it.
    private final class Ledger: Sendable {
        let lines = Locked<[String]>([])
        func write(_ line: String) { lines.withLock { $0.append(line) } }
        func count(_ line: String) -> Int { lines.value.count { $0 == line } }
    }

    private func worker(
        _ build: String, isPinned: Bool = true, accepts: ClosedRange<Int> = 0...0, _ database: TestDatabase,
        _ handle: @escaping @Sendable (Order, Context) async throws -> Verdict
    ) -> (worker: JobWorker, running: Task<JobWorker.Report, any Error>) {
        var options = JobWorker.Options(database: database.options, name: "\(build)-\(isPinned)")
        options.build = build
        options.isPinned = isPinned
        var handler = Handler(Order.self, body: handle)
        handler.accepts = accepts
        let worker = JobWorker(options: options, handlers: [handler], log: .silent)
        return (worker, Task { try await worker.run() })
    }

    private func stop(_ workers: (worker: JobWorker, running: Task<JobWorker.Report, any Error>)...) async throws {
        for one in workers { one.worker.drain() }
        for one in workers { _ = try await one.running.value }
    }

    private func enqueue(_ jobs: ClosedRange<Int>, on connection: Connection) async throws {
        try await connection.run(
            "select count(millrace.enqueue('order', jsonb_build_object('n', n))) from generate_series(\(jobs.lowerBound), \(jobs.upperBound)) n"
        )
    }

    private func ended(_ count: Int, on connection: Connection) async throws {
        try await eventually("\(count) have ended") {
            try await connection.int("select count(*) from millrace.history where outcome = 1") == count
        }
    }

    /// 1. Jobs of build a wait in the middle. 2. b is promoted, and has new jobs. 3. They go on, with a. 4. b is rolled back.
    @Test func `new jobs go to the promoted build, and those under way stay with theirs`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let ledger = Ledger()
            @Sendable func handler(_ build: String) -> @Sendable (Order, Context) async throws -> Verdict {
                { order, context in
                    if order.n <= 5 {
                        _ = try await context.event("go", key: "\(order.n)", as: Bool.self)
                        ledger.write("\(build) went on")
                    } else {
                        ledger.write("\(build) \(order.n)")
                    }
                    return .done
                }
            }
            let a = worker("a", database, handler("a"))
            await a.worker.hasStarted()
            try await connection.run("select millrace.versions_promote('a')")
            try await enqueue(1...5, on: connection)
            try await eventually("they wait") { try await connection.int("select count(*) from millrace.wait") == 5 }
            let b = worker("b", database, handler("b"))
            await b.worker.hasStarted()
            try await connection.run("select millrace.versions_promote('b')")
            try await eventually("a takes none") { try await Self.takesNew("a", on: connection) == false }
            try await heeded(on: connection)
            try await enqueue(6...20, on: connection)
            try await ended(15, on: connection)
            #expect((6...20).allSatisfy { ledger.count("b \($0)") == 1 })
            try await connection.run(
                "select millrace.signal('go', n::text, 'true') from generate_series(1, 5) n")
            try await ended(20, on: connection)
            #expect(ledger.count("a went on") == 5)
            #expect(
                try await connection.column(
                    "select distinct k.line from millrace.job j join millrace.kind k on k.id = j.kind order by 1")
                    == ["", "@a"])
            #expect(
                try await connection.value(
                    "select (array_agg(build))[1] from millrace.runs((select min(id) from millrace.job))")
                    == "a")
            #expect(try await connection.value("select bad || ' ' || good from millrace.versions_rollback()") == "b a")
            try await heeded(on: connection)
            try await enqueue(21...30, on: connection)
            try await ended(30, on: connection)
            #expect((21...30).allSatisfy { ledger.count("a \($0)") == 1 })
            try await stop(a, b)
            await connection.close()
        }
    }

    private static func takesNew(_ build: String, on connection: Connection) async throws -> Bool {
        try await connection.bool(
            """
            select exists (select from millrace.session s cross join lateral millrace.session_kinds(s.id) t join millrace.kind k on k.id = t.id
                            where s.pin = '\(build)' and k.line = '')
            """)
    }

    /// Each has looked at the builds since.
    private func heeded(on connection: Connection) async throws {
        try await connection.run(
            "drop table if exists before; create temporary table before as select session, beat from millrace.beat")
        try await eventually("they have looked") {
            try await connection.bool(
                "select bool_and(b.beat >= o.beat + 2) from before o join millrace.beat b using (session)")
        }
    }

    /// 1. A build's only worker is gone, and a job waits for it. 2. It is said. 3. The build is released.
    @Test func `a job whose build is gone waits, says so, and goes on with the build that it is released to`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let ledger = Ledger()
            let old = worker("old", database) { _, context in
                _ = try await context.step("charge") { 1 }
                ledger.write("old")
                throw Broken()
            }
            await old.worker.hasStarted()
            try await enqueue(1...1, on: connection)
            try await eventually("it ran") { ledger.count("old") > 0 }
            try await stop(old)
            let new = worker("new", database) { _, context in
                let charge = try await context.step("charge") { 2 }
                ledger.write("new \(charge)")
                return .done
            }
            await new.worker.hasStarted()
            try await connection.run("select millrace.promote(null, 100), millrace.versions_promote('new')")
            try await eventually("it is ready") { try await connection.int("select count(*) from millrace.ready") == 1 }
            let why = try await connection.value(
                "select millrace.why(job) ->> 'sentence' from millrace.ready")
            #expect(why == "it goes on with build old, which began it, and no worker of that build runs")
            #expect(
                try await connection.column("select build from millrace.versions() where stranded") == ["old"])
            try await connection.run("select millrace.versions_release('old')")
            try await ended(1, on: connection)
            #expect(ledger.count("new 1") == 1)
            try await stop(new)
            await connection.close()
        }
    }

    @Test func `arguments of a version go to workers that read it`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let ledger = Ledger()
            let old = worker("1", isPinned: false, accepts: 1...1, database) { order, context in
                ledger.write("old \(context.version.map(String.init) ?? "none")")
                return .done
            }
            let new = worker("2", isPinned: false, accepts: 2...3, database) { order, context in
                ledger.write("new \(context.version.map(String.init) ?? "none")")
                return .done
            }
            await old.worker.hasStarted()
            await new.worker.hasStarted()
            for version in 1...4 {
                try await connection.run(
                    "select first from millrace.enqueue_bulk('order', array(select '{\"n\": 1}' from generate_series(1, 20)), the_version => \(version))"
                )
            }
            try await ended(60, on: connection)
            #expect(ledger.count("old 1") == 20 && ledger.count("new 2") == 20 && ledger.count("new 3") == 20)
            #expect(
                try await connection.value("select millrace.why(min(job)) ->> 'sentence' from millrace.ready")
                    == "its arguments are of version 4, which no running worker reads")
            try await stop(old, new)
            await connection.close()
        }
    }

    /// 1. A job waits in the middle, begun by code without the change. 2. Code with the change goes on with it, and begins another.
    @Test func `a job goes the new way of a change if its work began with it`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let ledger = Ledger()
            let old = worker("old", isPinned: false, database) { order, context in
                _ = try await context.event("go", as: Bool.self)
                return .done
            }
            await old.worker.hasStarted()
            try await enqueue(1...1, on: connection)
            try await eventually("it waits") { try await connection.int("select count(*) from millrace.wait") == 1 }
            try await stop(old)
            @Sendable func handler(_ build: String) -> @Sendable (Order, Context) async throws -> Verdict {
                { order, context in
                    if order.n == 2 { _ = try await context.event("later", as: Bool.self) }
                    let isNew = try await context.changed("check")
                    if order.n == 1 { _ = try await context.event("go", as: Bool.self) }
                    ledger.write("\(build) \(order.n) \(isNew)")
                    return .done
                }
            }
            let next = worker("next", isPinned: false, database, handler("next"))
            await next.worker.hasStarted()
            try await enqueue(2...3, on: connection)
            try await connection.run("select millrace.signal('go', '', 'true')")
            try await ended(2, on: connection)
            #expect(ledger.lines.value.sorted() == ["next 1 false", "next 3 true"])
            try await stop(next)
            // Another build that asks for it goes on with what the one before began.
            let last = worker("last", isPinned: false, database, handler("last"))
            await last.worker.hasStarted()
            try await connection.run("select millrace.signal('later', '', 'true')")
            try await ended(3, on: connection)
            #expect(ledger.count("last 2 true") == 1)
            #expect(
                try await connection.value(
                    "select change || ' ' || old_way || ' ' || cardinality(builds) from millrace.changes()")
                    == "check 0 2")
            try await stop(last)
            await connection.close()
        }
    }

    @Test func `no job runs on the wrong build while workers are killed, and none is lost`() async throws {
        try await withDatabase { database in
            let process = try MillraceProcess(
                ["load", "versions", "--rate", "60", "--phase", "2", "--workers", "1", "--strict"],
                database: database.url)
            let code = try await process.ended(within: .seconds(600))
            #expect(code == 0, "\(process.output)")
        }
    }
}
