import CommandKit
import LoadKit
import Postgres

/// Fills a database of the scenario's own with jobs in all states, by statements that no client could send.
struct ConsoleGround: Sendable {
    let invocation: Invocation
    let connection: Connection
    let jobs: Int

    static let kinds = 50
    static let queues = 200

    func fill() async throws(PostgresError) {
        let live = invocation.console.live()
        live.update(["making kinds and queues"])
        try await connection.execute(
            "insert into millrace.queue (name) select 'load.q' || n from generate_series(1, $1) n on conflict do nothing",
            [.int4(Int32(Self.queues))])
        try await connection.execute(
            "insert into millrace.kind (name) select 'load.k' || n from generate_series(1, $1) n on conflict do nothing",
            [.int4(Int32(Self.kinds))])
        try await connection.execute("select millrace.kind_fields_set('load.k1', '{order.id}')")
        try await connection.execute("select millrace.maintain()", deadline: .seconds(60))
        let chunk = 250_000
        var done = 0
        while done < jobs {
            let count = min(chunk, jobs - done)
            try await connection.execute(
                """
                with made as materialized (
                    select nextval('millrace.seq') as id, n, (n % 10) as sort, (select min(q.id) from millrace.queue q where q.name like 'load.q%') + (n * 7919 % 200) as queue,
                           (select min(k.id) from millrace.kind k where k.name like 'load.k%') + (n * 104729 % 50) as kind,
                           now() - make_interval(secs => 3600.0 * (n % 1000) / 1000) as t
                      from generate_series($1::bigint, $1::bigint + $2::bigint - 1) n
                ), j as (
                    insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner, tags, tenant)
                    select m.id, m.kind, m.queue, 16, m.t, jsonb_build_object('n', m.n, 'order', jsonb_build_object('id', 'order-' || m.n)), current_user,
                           case when m.n % 100 = 0 then array['marked'] end, case when m.n % 4 = 0 then 'tenant-' || m.n % 1000 end from made m
                ), r as (
                    insert into millrace.ready (seq, job, queue, kind, lane) select m.id, m.id, m.queue, m.kind, 16 from made m where m.sort in (0, 1, 2, 3)
                ), d as (
                    insert into millrace.timer (due, job, queue, kind, lane, attempt)
                    select now() + interval '1 day' + make_interval(secs => m.n % 86400), m.id, m.queue, m.kind, 16, (m.n / 10) % 2 from made m where m.sort = 4
                )
                insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
                select m.id, 1, m.n, m.t, m.t, m.kind, m.queue, 20, 1, case m.sort when 9 then 3 when 8 then 2 when 4 then 4 else 1 end, 1, 0,
                       case when m.sort in (4, 9) then format('attempt 1 of 20: the service %s answered %s after %s ms', m.n % 40, 500 + m.n % 7, m.n % 9000) end
                  from made m where m.sort in (5, 6, 7, 8, 9) or (m.sort = 4 and (m.n / 10) % 2 = 1)
                """, [.int8(Int64(done)), .int8(Int64(count))], deadline: .seconds(600))
            done += count
            live.update(["filled \(Humane.count(done)) of \(Humane.count(jobs))"])
        }
        live.update(["analyzing"])
        for table: SQL in [
            "vacuum analyze millrace.ready", "vacuum analyze millrace.timer", "vacuum analyze millrace.job",
            "vacuum analyze millrace.history",
        ] {
            try await connection.execute(table, deadline: .seconds(1200))
        }
        live.update(["grouping failures, and indexing the declared argument"])
        try await prepare(live)
        live.update([])
    }

    /// What workers' housekeeping does in the background, done at once.
    private func prepare(_ live: LiveRegion) async throws(PostgresError) {
        for round in 1...100_000 {
            let more =
                try await connection.truth(
                    "select millrace.fields_fill('5 s')", deadline: .seconds(120)
                )
            if !more { break }
            if round % 20 == 0 { live.update(["indexing the declared argument: \(round) rounds"]) }
        }
        for _ in 0..<20 {
            try await connection.execute("select millrace.failures_keep('5 s')", deadline: .seconds(120))
        }
        for _ in 0..<3 { try await connection.execute("select millrace.sample_take()", deadline: .seconds(60)) }
    }

    /// Jobs of each state.
    static func samples(on connection: Connection) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            """
            (select r.job from millrace.ready r limit 40) union all (select d.job from millrace.timer d limit 40)
            union all (select h.id from millrace.history h where h.outcome = 3 and h.outcome <> 1 order by h.id desc limit 40)
            union all (select h.id from millrace.history h where h.outcome = 2 and h.outcome <> 1 order by h.id desc limit 40)
            """, deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.int(0) }
    }

    /// Every page, with objects that are there.
    static func addresses(on connection: Connection) async throws(PostgresError) -> [(name: String, address: String)] {
        let ids = try await samples(on: connection)
        func job(_ place: Int) -> Int64 { ids.indices.contains(place) ? ids[place] : 1 }
        let group = try await connection.query(
            "select id from millrace.failure_groups() limit 1", deadline: .seconds(30)
        ) {
            row throws(PostgresError) in try row.int(0)
        }.first
        var pages: [(name: String, address: String)] = [
            ("overview", "/console"), ("overview, 24 h", "/console?span=24h"),
            ("overview, 14 days", "/console?span=14d"),
            ("queues", "/console/queues"), ("a queue", "/console/queue?name=load.q1"), ("limits", "/console/limits"),
            ("jobs running", "/console/jobs"), ("jobs ready", "/console/jobs?state=ready"),
            ("jobs ready of a queue", "/console/jobs?state=ready&queue=load.q7"),
            ("jobs scheduled", "/console/jobs?state=scheduled"), ("jobs retrying", "/console/jobs?state=retrying"),
            ("jobs dead", "/console/jobs?state=dead"), ("jobs dead of a kind", "/console/jobs?state=dead&kind=load.k3"),
            ("jobs dead by error", "/console/jobs?state=dead&error=service%207%20answered"),
            ("jobs dead by tag", "/console/jobs?state=dead&tag=marked"),
            ("jobs dead of a tenant", "/console/jobs?state=dead&tenant=tenant-4"),
            ("jobs by an error that none has", "/console/jobs?state=dead&error=nothing%20of%20the%20kind"),
            ("search by an argument", "/console/jobs?state=ready&kind=load.k1&field=order.id&value=order-0"),
            ("search", "/console/search?q=k1"), ("a ready job", "/console/jobs/\(job(0))"),
            ("a scheduled job", "/console/jobs/\(job(40))"), ("a dead job", "/console/jobs/\(job(80))"),
            ("a job's flow", "/console/jobs/\(job(80))?flow=yes"), ("failures", "/console/failures"),
            ("schedules", "/console/schedules"), ("workers", "/console/workers"), ("versions", "/console/versions"),
            ("providers", "/console/providers"), ("mail", "/console/mail"), ("templates", "/console/templates"),
            ("documents", "/console/documents"), ("check-ins", "/console/checkins"), ("quests", "/console/quests"),
            ("notices", "/console/notices"), ("webhooks", "/console/webhooks"), ("operations", "/console/operations"),
            ("a bulk action's look", "/console/operations/new?action=cancel&state=ready&kind=load.k3"),
            ("audit", "/console/audit"), ("the past", "/console/past"), ("storage", "/console/storage"),
        ]
        if let group { pages.append(("a failure group", "/console/failures/\(group)")) }
        return pages
    }
}
