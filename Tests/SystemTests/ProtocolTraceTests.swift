import Foundation
import Postgres
import TestSupport
import Testing

/// What real workers do to the places of jobs, recorded by triggers, against the tables of sql/states.md.
@Suite struct ProtocolTraceTests {
    /// 1. A worker has jobs of every sort, and is killed. 2. Another rescues them, while callers cancel, retry and move jobs. 3. All comes to its end.
    @Test func `each move that workers and callers make is in the table of states`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(PlaceLog.triggers)
            let victim = try await MillraceProcess.worker("victim", database: database.url, slots: 40)
            try await connection.run(Self.work)
            try await eventually("jobs run, wait and have ended") {
                try await connection.int(
                    """
                    least((select count(*) from millrace.lease l join millrace.job j on j.id = any (l.ids) where j.unique_key = 'trace'),
                          (select count(*) from millrace.wait),
                          (select count(*) / 50 from millrace.history where outcome = 1))
                    """) > 0
            }
            try await connection.run(
                "select millrace.enqueue('practice.sleep', '{\"ms\": 10}', unique_key => 'trace', on_conflict => 'replace')"
            )
            victim.signal(SIGKILL)
            let other = try await MillraceProcess.worker("other", database: database.url)
            try await connection.run(Self.meanwhile)
            try await eventually("the rescued jobs run") {
                try await connection.int(
                    """
                    least((select count(*) from millrace.history where outcome = 7),
                          (select count(*) from millrace.lease l join millrace.job j on j.id = any (l.ids) where j.unique_key = 'trace' and j.args ->> 'ms' = '60000'))
                    """) > 0
            }
            try await connection.run(Self.last)
            try await eventually("all jobs have ended") {
                try await connection.int(
                    "select count(*) from millrace.job j where not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))"
                ) == 0
            }
            other.signal(SIGTERM)
            #expect(try await other.ended() == 0)
            var places = PlaceLog()
            let faults = try await places.look(connection)
            #expect(faults.isEmpty, "\(faults.prefix(20))")
            let made = Set(places.moves.map { "\($0.key.from) to \($0.key.to)" })
            let expected = [
                "nowhere to ready", "ready to running", "running to succeeded", "running to dead", "running to timer",
                "running to ready", "timer to ready", "blocked to ready", "timer to cancelled", "nowhere to follower",
                "follower to ready", "dead to ready", "running to cancelled",
            ]
            #expect(made.isSuperset(of: expected), "not among \(made.sorted()): \(Set(expected).subtracting(made))")
            await connection.close()
        }
    }

    private static let work = """
        select millrace.enqueue_bulk('practice.nothing', array(select '{}' from generate_series(1, 200)));
        select millrace.enqueue_bulk('practice.fail', array(select '{"times": 1}' from generate_series(1, 10)));
        select millrace.enqueue('practice.fail', '{"times": 9}', max_attempts => 1) from generate_series(1, 5);
        select millrace.enqueue('practice.wait', '{"n": 1, "seconds": 1}') from generate_series(1, 5);
        select millrace.enqueue('practice.wait', '{"n": 2, "name": "trace"}') from generate_series(1, 5);
        select millrace.enqueue('practice.steps', '{"steps": 3, "ms": 200}') from generate_series(1, 5);
        select millrace.enqueue('practice.fan', '{"children": 5, "ms": 10}') from generate_series(1, 3);
        select millrace.enqueue('practice.sleep', '{"ms": 60000}', unique_key => 'trace', on_conflict => 'replace');
        select millrace.enqueue('practice.sleep', '{"ms": 60000}') from generate_series(1, 5);
        select millrace.enqueue('practice.nothing', run_at => millrace.now() + interval '1 day') from generate_series(1, 20);
        select millrace.enqueue('practice.nothing', options => jsonb_build_object('after', jsonb_build_array(j.id)))
          from (select id from millrace.job order by id limit 40) j
        """

    private static let meanwhile = """
        select millrace.cancel(d.job) from (select job from millrace.timer where due between millrace.now() + interval '1 hour' and millrace.now() + interval '1 year' order by job limit 5) d;
        select millrace.reschedule(d.job, millrace.now()) from (select job from millrace.timer where due between millrace.now() + interval '1 hour' and millrace.now() + interval '1 year' order by job limit 5) d;
        select millrace.operation_start('cancel', '{"kind": "practice.nothing", "state": "scheduled"}')
        """

    private static let last = """
        select millrace.cancel(j.id) from millrace.job j join millrace.kind k on k.id = j.kind where k.name = 'practice.sleep' and j.args ->> 'ms' = '60000';
        select millrace.signal('trace', payload => '1', to_all => true);
        select millrace.retry(h.id) from millrace.history h where h.outcome = 3
        """
}
