import Postgres
import TestSupport
import Testing

@testable import MillraceQueues

/// Causes that lie outside of the queue: a template, a build, a handler, hours without a worker.
@Suite struct WhyCauseTests {
    @Test(.enabled(if: Template.hasRooms))
    func `a mail that a newer version of its template cannot take names the version before`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            let number = try #require(try await connection.claim().first)
            #expect(number == id)
            try await connection.finish(
                [Connection.End(id: id, outcome: 3, error: "template promo: the variable city is missing")],
                complete: [9: 1])
            #expect(try await connection.remedy(id) == "template millrace templates show promo")
            try await connection.run(
                """
                insert into millrace.template_version (name, locale, version, subject, plain, variables, published_by, published_at)
                select 'promo', 'en', n, 's', 't', '{}', 'a', millrace.now() from generate_series(1, 2) n;
                insert into millrace.template_live values ('promo', 'en', 2)
                """)
            #expect(try await connection.remedy(id) == "template millrace templates use promo 1")
        }
    }

    @Test func `a run beside others that is one of its worker's stuck handlers says so`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let stuck = try await connection.enqueue()
            _ = try await connection.enqueue()
            try await connection.claim()
            try await connection.run("select millrace.beat(1, 'working', 2, 0, 0)")
            #expect(try await connection.remedy(stuck) == nil)
            try await connection.run("select millrace.beat(1, 'working', 2, 0, 1)")
            #expect(try await connection.remedy(stuck) == "worker_stuck kill 1")
        }
    }

    @Test func `a job that ended two workers and runs again is still to blame`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.run("update millrace.ready set crashes = 2")
            try await connection.claim()
            try await connection.run("select millrace.beat(1, 'working', 1, 0, 0)")
            #expect(try await connection.remedy(id) == "ended_workers millrace jobs show \(id)")
        }
    }

    @Test func `a job that the newest build fails names the build, and how new jobs leave it`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.register_kinds('{test}', '{null}'), millrace.register_queues('{default}');
                select millrace.session_open(1, 'a', 'h', 1, '1.0+good', null, array(select id from millrace.kind where name = 'test'), 10, false),
                       millrace.session_open(2, 'b', 'h', 2, '1.0+bad', null, array(select id from millrace.kind where name = 'test'), 10, false);
                update millrace.process set started_at = started_at - interval '1 hour' where version = '1.0+good';
                """)
            let id = try await connection.enqueue()
            try await connection.claim(2, kinds: ["test"])
            try await connection.finish(
                [Connection.End(id: id, outcome: 3, error: "no")], session: 2, complete: [9: 1])
            let beat = { (session: Int, good: Int, bad: Int) in
                """
                select millrace.beat(\(session), 'working', 0, 0, 0, array[q.id], array[k.id], '{\(good)}', '{\(bad)}', '{0}', '{0}', '{0}', '{0}')
                  from millrace.queue q, millrace.kind k where q.name = 'default' and q.main is null and k.name = 'test'
                """
            }
            try await connection.run(beat(1, 20, 0))
            #expect(try await connection.remedy(id) == "dead millrace jobs retry \(id)")
            try await connection.run(beat(2, 0, 20))
            #expect(try await connection.remedy(id) == "build_fails millrace versions compare")
            try await connection.run(
                """
                insert into millrace.build (name, kinds, seen_at, promoted_at, changed_at)
                select n, array(select id from millrace.kind where name = 'test'), millrace.now(), millrace.now() - age, millrace.now()
                  from (values ('good', interval '1 hour'), ('bad', interval '1 min')) b (n, age)
                """)
            #expect(try await connection.remedy(id) == "build_fails millrace versions rollback")
        }
    }

    @Test func `a schedule that missed times says so, and one that nobody fires names the missing worker`() async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.run("select millrace.schedule_set('nightly', '0 2 * * *', 'test')")
            try await connection.run("select millrace.test_clock_advance('10 min')")
            #expect(try await connection.remedy(of: "nightly") == "no_worker systemctl start millrace")
            try await connection.run(
                "update millrace.schedule set next_at = millrace.now() + interval '1 h', last_missed_at = millrace.now(), missed = 3"
            )
            #expect(try await connection.remedy(of: "nightly") == "schedule_missed millrace schedules run nightly")
            try await connection.run("select millrace.test_clock_advance('61 min')")
            try await connection.run("update millrace.schedule set next_at = millrace.now() + interval '1 h'")
            #expect(try await connection.remedy(of: "nightly") == "time millrace schedules next nightly")
        }
    }
}

extension Connection {
    /// `reason command`
    fileprivate func remedy(_ job: Int) async throws -> String? {
        try await value("select y ->> 'reason' || ' ' || (y ->> 'command') from (select millrace.why(\(job)) as y) w")
    }

    fileprivate func remedy(of queue: String) async throws -> String? {
        try await value(
            "select y ->> 'reason' || ' ' || (y ->> 'command') from (select millrace.why_queue('\(queue)') as y) w")
    }
}
