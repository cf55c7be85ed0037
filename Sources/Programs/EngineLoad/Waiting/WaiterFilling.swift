import CommandKit
import FoundationEssentials
import LoadKit
import MillraceQueues
import Postgres

/// Makes jobs that wait by the thousand, as rows: what their first runs would have left.
struct WaiterFilling {
    let invocation: Invocation
    let connection: Connection

    private static let chunk = 50_000

    /// One job as the pattern: its kind, queue and lane.
    private func pattern() async throws -> Int64 {
        let id = try await connection.query(
            "select millrace.enqueue('practice.wait', '{\"n\": -1}', queue => 'load.waiting', run_at => now() + interval '30 days')"
        ) { row throws(PostgresError) in try row.int(0) }.first
        guard let id else { throw Failure("a job could not be enqueued") }
        return id
    }

    /// Sleeping ones, due evenly over `seconds` from `first` on (microseconds of the database's clock).
    func due(_ jobs: Int, first: Int64, seconds: Double) async throws {
        let like = try await pattern()
        try await fill(jobs, "due soon") { from, to in
            try await connection.execute(
                """
                with new as materialized (
                    select nextval('millrace.seq') as id, n,
                           to_timestamp(0) + make_interval(secs => $2::float8) + make_interval(secs => n * $3::float8) as due
                      from generate_series($4::int, $5::int) n
                ), j as (
                    insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)
                    select n.id, j.kind, j.queue, j.lane, now(), jsonb_build_object('n', n.n, 'seconds', 60), j.owner
                      from new n, millrace.job j where j.id = $1
                ), w as (
                    insert into millrace.wait (job, step, what, since, due, place, attempt, crashes)
                    select n.id, 'sleep', 1, now(), n.due, n.due, 0, 0 from new n
                )
                insert into millrace.timer (due, job, queue, kind, lane)
                select n.due, n.id, j.queue, j.kind, j.lane & ~3 from new n, millrace.job j where j.id = $1
                """,
                [
                    .int8(like), .float8(Double(first) / 1e6), .float8(seconds / Double(jobs)), .int4(Int32(from)),
                    .int4(Int32(to)),
                ], deadline: .seconds(300))
        }
        try await connection.execute("select millrace.cancel($1)", [.int8(like)])
    }

    /// A third sleeps, a third waits for a signal, a third for another job. Returns the bytes that each takes.
    func waiters(_ jobs: Int) async throws -> Double {
        let like = try await pattern()
        let before = try await size()
        try await fill(jobs, "wait") { from, to in
            try await connection.execute(
                """
                with new as materialized (
                    select nextval('millrace.seq') as id, case when n % 3 = 2 then nextval('millrace.seq') end as child, n, n % 3 as what,
                           now() + interval '30 days' + make_interval(secs => n / 1000.0) as due
                      from generate_series($2::int, $3::int) n
                ), made as (
                    insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)
                    select i.id, j.kind, j.queue, j.lane, now(), jsonb_build_object('n', n.n), j.owner
                      from new n, millrace.job j, lateral (values (n.id), (n.child)) i(id) where j.id = $1 and i.id is not null
                ), ran as (
                    insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes)
                    select n.id, 1, n.id, now(), now(), j.kind, j.queue, 1, 1, 8, 1, 0 from new n, millrace.job j where j.id = $1
                ), waits as (
                    insert into millrace.wait (job, step, what, name, key, since, due, place, attempt, crashes, jobs)
                    select n.id, 'pause', n.what + 1, case when n.what = 1 then 'never' end, case when n.what = 1 then n.n::text end, now(),
                           case when n.what = 0 then n.due end, case when n.what = 0 then n.due when n.what = 1 then now() + interval '100 years' end, 0, 0,
                           case when n.what = 2 then array[n.child] end
                      from new n
                ), stands as (
                    insert into millrace.blocked (job, due, starts, waits, fresh) select n.id, null, 2, true, false from new n where n.what = 2
                ), joined as (
                    insert into millrace.edge (pred, succ) select n.child, n.id from new n where n.what = 2
                )
                insert into millrace.timer (due, job, queue, kind, lane)
                select case when n.what = 1 then now() + interval '100 years' else n.due end, coalesce(n.child, n.id), j.queue, j.kind, j.lane & ~3
                  from new n, millrace.job j where j.id = $1
                """, [.int8(like), .int4(Int32(from)), .int4(Int32(to))], deadline: .seconds(600))
        }
        let after = try await size()
        // They have waited for long.
        try await connection.execute("vacuum (analyze)", deadline: .seconds(1800))
        return Double(after - before) / Double(jobs)
    }

    private func size() async throws(PostgresError) -> Int {
        try await connection.int(
            "select sum(pg_total_relation_size(c.oid))::int8 from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'"
        )
    }

    private func fill(_ jobs: Int, _ label: String, _ body: (Int, Int) async throws -> Void) async throws {
        let live = invocation.console.live()
        var tenths = Tenths()
        var n = 0
        while n < jobs {
            let next = min(jobs, n + Self.chunk)
            try await body(n, next - 1)
            n = next
            if tenths.pass(n, of: jobs) { live.update(["\(Humane.count(n)) of \(Humane.count(jobs)) \(label)"]) }
        }
        live.update([])
    }
}
