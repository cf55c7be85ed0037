import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct IdleWorkerTests {
    /// A worker does not ask again at once for what a claim may not take now: a slot that becomes free notifies it.
    @Test func `a worker whose slots for a queue are all taken sleeps although more of it waits`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let others = (1...6).map { "other\($0)" }
            for queue in others {
                try await connection.run("select millrace.enqueue('practice.nothing', '{}', '\(queue)')")
            }
            for _ in 1...5 {
                try await connection.run("select millrace.enqueue('practice.sleep', '{\"ms\": 600000}', 'narrow')")
            }
            let worker = try await MillraceProcess.worker(
                "one", database: database.url, ["--queue", "narrow:1"] + others.flatMap { ["--queue", $0] })
            try await eventually("the others are done, and one is running") {
                try await connection.value(
                    "select (select count(*) from millrace.history) = \(others.count) and (select sum(running) from millrace.beat) = 1"
                ) == "true"
            }
            let before = try await transactions(of: database.name, connection)
            let began = ContinuousClock.now
            try await Task.sleep(for: .seconds(5))
            let count = try await transactions(of: database.name, connection) - before
            // On a busy machine five seconds may be many more.
            let seconds = began.duration(to: .now) / .seconds(1)
            #expect(
                Double(count) < 100 * seconds,
                "an idle worker makes some thirty a second, one that does not sleep hundreds; in \(seconds) s")
            // And it wakes when it should.
            try await connection.run("select millrace.enqueue('practice.nothing', '{}', 'other1')")
            try await eventually("it is done too") {
                try await connection.int("select count(*) from millrace.history") == others.count + 1
            }
            worker.signal(9)
            await connection.close()
        }
    }

    /// A worker that rarely polls has only the notification to go by.
    @Test func `a free slot of a bounded queue is filled at once, for all tenants`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('practice.sleep', '{"ms": 100}', 'narrow', tenant => 'tenant' || n % 3)
                  from generate_series(1, 400) n
                """)
            let worker = try await MillraceProcess.worker(
                "one", database: database.url, ["--queue", "narrow:2", "--poll", "60s"])
            try await eventually("all are done") {
                try await connection.int("select count(*) from millrace.history") == 400
            }
            worker.signal(9)
            await connection.close()
        }
    }

    /// Every notification of the database wakes each listening backend, whatever the channel.
    @Test func `a worker listens once for all its rooms, and again when that connection is lost`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url, ["--poll", "300s"])
            let first = try await connection.value(Self.listening)
            #expect(first?.contains(" ") == false, "\(first ?? "nobody")")
            func runsAtOnce(_ what: String) async throws {
                let before = try await connection.int("select count(*) from millrace.history")
                try await connection.run("select millrace.enqueue('practice.nothing')")
                try await eventually(what) {
                    try await connection.int("select count(*) from millrace.history") == before + 1
                }
            }
            try await runsAtOnce("a job is heard of")
            try await connection.run("select pg_terminate_backend(\(first ?? "0"))")
            try await eventually("it listens again") {
                let now = try await connection.value(Self.listening)
                return now != nil && now != first
            }
            #expect(try await connection.value(Self.listening)?.contains(" ") == false)
            try await runsAtOnce("a job is heard of by the new connection")
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    /// No other backend of it need wake then.
    @Test func `a sleeping worker takes what it is called for on the connection that it listens on, which may be lost`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url, ["--poll", "300s"])
            let listener = try #require(try await connection.value(Self.listening))
            var jobs = 0
            /// While it lingers after the one before, it takes the next as any other claim does.
            func oneMoreIsDone() async throws {
                try await Task.sleep(for: .milliseconds(200))
                try await connection.run("select millrace.enqueue('practice.nothing')")
                jobs += 1
                try await eventually("the job is done") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") == jobs
                }
            }
            try await eventually("a job is taken by the backend that listens") {
                try await oneMoreIsDone()
                return try await connection.value("select query from pg_stat_activity where pid = \(listener)")?
                    .contains("claim_one") == true
            }
            try await connection.run(
                """
                create sequence millrace.cuts;
                create function millrace.cut() returns trigger language plpgsql as $$
                begin
                    if pg_backend_pid() = \(listener) then
                        perform nextval('millrace.cuts'), pg_terminate_backend(pg_backend_pid());
                        perform pg_sleep(60);
                    end if;
                    return new;
                end $$;
                create trigger cut before insert on millrace.lease for each row execute function millrace.cut();
                """)
            try await eventually("it is lost as it takes a job, which is done all the same") {
                try await oneMoreIsDone()
                return try await connection.bool("select is_called from millrace.cuts")
            }
            try await eventually("another listens") { try await connection.value(Self.listening) != nil }
            try await oneMoreIsDone()
            #expect(try await connection.int("select count(*) from millrace.history") == jobs)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    @Test func `a worker that listens under a role that may not claim says so, and claims under its own`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let role = "\(database.name)_ear"
            try await connection.run("create role \(role) login")
            let worker = try await MillraceProcess.worker(
                "one", database: database.url,
                ["--poll", "300s", "--direct-url", database.url.replacing("//millrace@", with: "//\(role)@")])
            var jobs = 0
            try await eventually("it has been refused") {
                try await Task.sleep(for: .milliseconds(200))
                try await connection.run("select millrace.enqueue('practice.nothing')")
                jobs += 1
                try await eventually("the job is done") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") == jobs
                }
                return worker.output.contains("the role that listens may not claim")
            }
            try await Task.sleep(for: .milliseconds(200))
            try await connection.run("select millrace.enqueue('practice.nothing')")
            try await eventually("the next is done") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == jobs + 1
            }
            #expect(worker.output.ranges(of: "may not claim").count == 1, "\(worker.output)")
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            try await connection.run("drop role \(role)")
            await connection.close()
        }
    }

    /// Whose last statement was to listen.
    private static let listening = """
        select string_agg(pid::text, ' ') from pg_stat_activity where datname = current_database() and query ilike 'listen %'
        """

    private func transactions(of database: String, _ connection: Connection) async throws -> Int {
        try await Task.sleep(for: .seconds(1.5))  // what a backend did is told a second later
        return try await connection.int("select xact_commit from pg_stat_database where datname = '\(database)'")
    }
}
