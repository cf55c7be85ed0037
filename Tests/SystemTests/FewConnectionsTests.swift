import Fakes
import Glibc
import Postgres
import Synchronization
import TestSupport
import Testing

/// A complete worker that may open two connections.
@Suite struct FewConnectionsTests {
    private static let count =
        "select count(*) from pg_sleep(0.005), pg_stat_activity where datname = current_database() and backend_type = 'client backend'"

    @Test func `a worker of all rooms does everything with two connections, and never has a third`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            let watcher = try await database.connect("watcher")
            let fake = try FakePush { _, _ in PushAnswer(200, #"{"id": "x"}"#) }
            defer { fake.stop() }
            try await owner.run(
                """
                create table public.practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp());
                grant all on public.practice_record to public;
                """)
            let most = Mutex(0)
            let watching = Task {
                while !Task.isCancelled {
                    let now = try await watcher.int(Self.count) - 2
                    most.withLock { $0 = max($0, now) }
                }
            }
            let worker = try await MillraceProcess.worker(
                "two", database: database.url,
                environment: ["MILLRACE_CONNECTIONS": "2", "MILLRACE_SMS_URL": "\(fake.url)/{{channel}}"])
            try await owner.run(
                #"""
                select millrace.enqueue('practice.nothing') from generate_series(1, 300);
                select millrace.enqueue('practice.record', '{"ms": 5}') from generate_series(1, 60);
                select millrace.enqueue('practice.steps', '{"steps": 3, "ms": 5}') from generate_series(1, 5);
                select millrace.enqueue('practice.wait', '{"n": 1, "name": "go", "key": "a"}') from generate_series(1, 5);
                select millrace.enqueue('practice.wait', '{"n": 1, "seconds": 0.2}') from generate_series(1, 5);
                select millrace.mail_send(array['reader' || n || '@reader.example'], 'Number ' || n, 'The text') from generate_series(1, 20) n;
                select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930123456', '{"name": "Ben"}', 'a', millrace.now(), null, true);
                """#)
            try await eventually("five wait for the signal; it says: \(worker.output)", within: .seconds(240)) {
                try await owner.int("select count(*) from millrace.wait where what = 2") == 5
            }
            try await owner.run("select millrace.signal('go', 'a', '1', to_all => true)")
            try await eventually("all have ended; it says: \(worker.output)", within: .seconds(240)) {
                try await owner.bool(
                    """
                    select (select count(*) from millrace.history where outcome = 1) >= 395
                       and not exists (select from millrace.mail where status <> 'accepted')
                       and (select count(*) from millrace.mail where status = 'accepted') = 20
                       and (select status = 'accepted' from millrace.notices)
                    """)
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0, "\(worker.output)")
            watching.cancel()
            _ = try? await watching.value
            #expect(most.withLock { $0 } == 2)
            #expect(fake.requests.count == 1)
            #expect(!worker.output.contains("unreachable"), "\(worker.output)")
            await owner.close()
            await watcher.close()
        }
    }

    @Test func `it goes on when its connections are ended`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            let worker = try await MillraceProcess.worker(
                "two", database: database.url, environment: ["MILLRACE_CONNECTIONS": "2"])
            for round in 1...3 {
                try await owner.run(
                    #"select millrace.enqueue('practice.sleep', '{"ms": 20}') from generate_series(1, 100)"#)
                try await owner.run(
                    "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"
                )
                try await eventually("all are done; it says: \(worker.output)", within: .seconds(120)) {
                    try await owner.int("select count(*) from millrace.history where outcome = 1") == round * 100
                }
            }
            #expect(try await owner.int("select count(*) from millrace.lease") == 0)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0, "\(worker.output)")
            #expect(try await owner.int("select count(*) from millrace.session") == 0)
            await owner.close()
        }
    }
}
