import Postgres
import TestSupport

/// A database in which random things are done, and the invariants that must hold after each of them.
struct SequenceWorld {
    let connection: Connection
    /// For concurrent actions.
    let other: Connection
    /// Looks on.
    let observer: Connection
    var random: SeededRandom
    var session = 1
    var number = 8
    /// What was done, to find out later what went wrong.
    var story: [String] = []

    enum Operation: CaseIterable {
        case enqueue, enqueueWithKey, enqueueAfter, claim, end, complete, cancel, cancelSuccessor, retry, retrySpawned
        case flowRetry, flowCancel, delete, deleteBesideClaim, spawn, crash, house
    }

    private static let weights: [(Operation, Int)] = [
        (.enqueue, 6), (.enqueueWithKey, 12), (.enqueueAfter, 8), (.claim, 8), (.end, 12), (.complete, 3), (.cancel, 4),
        (.cancelSuccessor, 5), (.retry, 5), (.retrySpawned, 4), (.flowRetry, 4), (.flowCancel, 1), (.delete, 3),
        (.deleteBesideClaim, 3), (.spawn, 5), (.crash, 2), (.house, 8),
    ]

    /// Refusals that a caller may meet: a key that is held, a job that is gone or runs, a lease that is lost.
    private static let usual: Set<String> = ["23505", "55000", "P0002", "40001"]

    mutating func prepare() async throws {
        try await openSession()
        for tenant in ["a", "b"] { try await connection.limit("tenant", tenant, #"{"concurrency": 2}"#) }
        try await connection.limit("key", "l", #"{"concurrency": 1}"#)
    }

    mutating func step() async throws {
        let operation = random.pick(Self.weights)
        do {
            try await perform(operation)
        } catch let error as PostgresError where Self.usual.contains(error.sqlState ?? "") {
            story.append("\(operation) was refused: \(error)")
        }
    }

    private mutating func perform(_ operation: Operation) async throws {
        switch operation {
        case .enqueue: try await tell("select millrace.enqueue('test', \(extras()))")
        case .enqueueWithKey:
            let conflict = random.chance(0.7) ? "replace" : "skip"
            try await tell(
                "select millrace.enqueue('test', unique_key => 'k\(random.below(3))', on_conflict => '\(conflict)', \(extras()))"
            )
        case .enqueueAfter:
            let after = try await some(2, random.chance(0.6) ? "select id from millrace.job" : Self.successors)
            guard !after.isEmpty else { return }
            try await enqueue(after: after, when: random.chance(0.5) ? "ended" : "succeeded")
        case .claim: try await claim(on: connection)
        case .end:
            guard let run = try await running() else { return }
            let outcome = random.pick([(1, 5), (3, 3), (4, 2), (5, 1), (6, 1), (2, 1)])
            try await end(run, outcome: outcome)
        case .complete:
            guard let run = try await running() else { return }
            try await tell("select millrace.complete('\(run.token)')")
            try await closeLease(run)
        case .cancel: try await each("select id from millrace.job", "cancel")
        case .cancelSuccessor:
            // A running job's key; those that wait for the successor are known to wait before it goes.
            let keys = try await connection.column(
                "select distinct j.unique_key from millrace.job j join (\(Self.unfinished)) r on r.job = j.id where j.unique_key is not null order by 1"
            )
            guard !keys.isEmpty else { return }
            let replacing = "unique_key => '\(keys[random.below(keys.count)])', on_conflict => 'replace', \(extras())"
            story.append("successor: \(replacing)")
            let id = try await connection.int("select millrace.enqueue('test', \(replacing))")
            if random.chance(0.5) { try await enqueue(after: ["\(id)"], when: "ended") }
            try await house()
            try await tell("select millrace.cancel(\(id))")
        case .retry: try await each("select id from millrace.history where outcome in (2, 3)", "retry")
        case .retrySpawned:
            try await each(
                "select e.succ from millrace.edge e join millrace.history h on h.id = e.succ where e.number is not null and h.outcome in (2, 3)",
                "retry")
        case .flowRetry: try await each("select id from millrace.history where outcome in (2, 3)", "flow_retry")
        case .flowCancel: try await each("select pred from millrace.edge", "flow_cancel")
        case .delete: try await each("select id from millrace.job", "job_delete")
        case .deleteBesideClaim: try await deleteBesideClaim()
        case .spawn:
            guard let run = try await running() else { return }
            try await tell("select millrace.spawn('\(run.token)', 'test', array['{}', '{}'])")
        case .crash:
            try await tell("select millrace.rescue(\(session), null)")
            session += 1
            try await openSession()
        case .house: try await house()
        }
    }

    /// 1. A claim has taken jobs and not committed. 2. Somebody deletes one of them, and waits. 3. The claim commits.
    private mutating func deleteBesideClaim() async throws {
        try await other.run("begin")
        let taken = try await claim(on: other)
        guard let job = taken.first else { return try await other.run("commit") }
        story.append("delete \(job) beside its claim")
        let process = try await connection.process()
        async let refusal = connection.refusal(of: "select millrace.job_delete(\(job))")
        try await waitUntilBlocked(process, seenBy: observer)
        try await other.run("commit")
        story.append("it was \(try await refusal.map { "refused: \($0.message)" } ?? "deleted")")
    }

    private mutating func openSession() async throws {
        try await connection.openSession(session)
    }

    /// What a worker does once a second.
    mutating func house() async throws {
        try await tell(
            """
            select millrace.heed_cancels(); select millrace.flows_check(); select millrace.gates_open();
            select millrace.slots_sweep(); select millrace.promote(null, 5000)
            """)
        while try await connection.bool("select more from millrace.flows_advance()") {}
    }

    @discardableResult
    mutating func claim(on connection: Connection, wanted: Int? = nil) async throws -> [String] {
        number += 8
        let wanted = wanted ?? 1 + random.below(3)
        let taken = try await connection.column(
            """
            with lines as (select q.id, l from millrace.queue q, generate_series(0, 39) l order by l, q.id)
            select c.id from millrace.claim_limited(\(session), \(number), array(select id from millrace.kind),
                array(select id from lines), array(select l from lines), array(select 0::bigint from lines),
                array(select 9223372036854775807 from lines), array(select \(wanted) from lines), \(wanted), '{}', '{}') c
             where c.number is not null
            """)
        story.append("claim \(number): \(taken.joined(separator: ", "))")
        return taken
    }

    struct Run {
        var session: Int
        var number: Int
        var job: Int

        var token: String { "\(String(session, radix: 16))-\(number)-\(job)" }
    }

    static let unfinished = """
        select l.session, l.number, u as job from millrace.lease l cross join lateral unnest(l.ids) u
         where not exists (select from millrace.history h where h.id = u and h.session = l.session and h.number = l.number)
        """

    mutating func running() async throws -> Run? {
        let rows = try await connection.column(
            "select session || ' ' || number || ' ' || job from (\(Self.unfinished)) r order by 1")
        guard !rows.isEmpty else { return nil }
        let fields = rows[random.below(rows.count)].split(separator: " ").compactMap { Int($0) }
        return Run(session: fields[0], number: fields[1], job: fields[2])
    }

    mutating func end(_ run: Run, outcome: Int) async throws {
        try await tell(
            """
            select millrace.finish(l.session, array[j.id], array[l.number], array[\(outcome)::smallint], array[j.kind], array[j.queue],
                array[1::smallint], array[0::smallint], array[5], case when r.n > 1 then array[l.number] else '{}' end,
                case when r.n > 1 then '{}' else array[l.number] end, case when r.n > 1 then '{}' else array[1] end,
                array[case when \(outcome) in (3, 4) then 'because' end], array[0::float8],
                case when j.unique_hash is not null then array[j.id] end, s.numbers, s.gates, s.counts)
              from millrace.lease l
              join millrace.job j on j.id = \(run.job)
             cross join lateral (select count(*) as n from (\(Self.unfinished)) u where u.session = l.session and u.number = l.number) r
             cross join lateral (
                select array_agg(\(run.number)::bigint) as numbers, array_agg(g.gate) as gates, array_agg(1) as counts
                  from (select g.gate from unnest(coalesce(l.slot_jobs, l.ids), l.slot_gates) g(job, gate) where g.gate is not null and g.job = j.id
                        union all select unnest(l.slot_all)) g) s
             where l.session = \(run.session) and l.number = \(run.number)
            """, "end \(run.token) with \(outcome)")
    }

    /// A worker whose last job has recorded its own end gives up the empty lease.
    private mutating func closeLease(_ run: Run) async throws {
        try await tell(
            """
            select millrace.leases_return(\(run.session), array[\(run.number)::bigint])
             where not exists (select from (\(Self.unfinished)) u where u.session = \(run.session) and u.number = \(run.number))
            """, "close the lease if it is empty")
    }

    private static let successors = "select next from millrace.unique_lock where next is not null"

    private mutating func enqueue(after: [String], when: String) async throws {
        let key = random.chance(0.4) ? "unique_key => 'k\(random.below(3))'," : ""
        try await tell(
            """
            select millrace.enqueue('test', \(key) options => '{"after": {"jobs": [\(after.joined(separator: ","))], "when": "\(when)"}}')
            """)
    }

    private mutating func extras() -> String {
        let tenant = random.pick([("null", 1), ("'a'", 2), ("'b'", 2)])
        let limit = random.chance(0.3) ? "'l'" : "null"
        return "tenant => \(tenant), limit_key => \(limit)"
    }

    private mutating func each(_ choices: String, _ function: String) async throws {
        for id in try await some(1, choices) { try await tell("select millrace.\(function)(\(id))") }
    }

    private mutating func some(_ count: Int, _ select: String) async throws -> [String] {
        let all = try await connection.column("select distinct x::bigint from (\(select)) s(x) order by 1")
        return all.isEmpty ? [] : (0..<count).map { _ in all[random.below(all.count)] }
    }

    private mutating func tell(_ sql: String, _ name: String? = nil) async throws {
        story.append(name ?? sql)
        try await connection.run(sql)
    }
}

extension SequenceWorld {
    /// Everything that is wrong now, in words.
    func faults() async throws -> [String] {
        try await connection.column(
            """
            with running as materialized (\(Self.unfinished)
            ), places as materialized (
                select job, 'ready' as place from millrace.ready union all select job, 'timer' from millrace.timer
                union all select job, 'parked' from millrace.parked union all select job, 'blocked' from millrace.blocked
                union all select next, 'follows' from millrace.unique_lock where next is not null
                union all select job, 'running' from running
                union all select id, 'ended' from millrace.history h where outcome in (1, 2, 3) and exists (select from millrace.job j where j.id = h.id)
            )
            select 'job ' || job || ' is in ' || string_agg(place, ' and ') from places group by job having count(*) > 1
            union all
            select 'job ' || id || ' is nowhere' from millrace.job j where not exists (select from places p where p.job = j.id)
            union all
            select 'job ' || job || ' is ' || place || ' and does not exist' from places p where not exists (select from millrace.job j where j.id = p.job)
            union all
            select 'the key ' || min(j.unique_key) || ' is held by jobs ' || string_agg(j.id::text, ' and ')
              from places p join millrace.job j on j.id = p.job where j.unique_hash is not null and p.place not in ('follows', 'ended')
             group by j.unique_hash having count(*) > 1
            union all
            select 'gate ' || gate || ' counts ' || counted || ' and the leases hold ' || held from millrace.slots_audit() where counted <> held
            union all
            select 'job ' || j.id || ' of tenant ' || coalesce(j.tenant, '-') || ' stands in the line of ' || coalesce(q.tenant, '-')
              from millrace.job j join millrace.queue q on q.id = j.queue where j.tenant is distinct from q.tenant
            union all
            select count(*) || ' jobs of tenant ' || j.tenant || ' run at once'
              from running r join millrace.job j on j.id = r.job where j.tenant is not null group by j.tenant having count(*) > 2
            union all
            select 'job ' || e.succ || ' runs before the run that made it has succeeded'
              from millrace.edge e join running r on r.job = e.succ where e.number is not null and e.outcome is null
            """)
    }

    /// Lets everything run to its end; returns what cannot.
    mutating func settle() async throws -> [String] {
        for _ in 0..<2000 {
            try await house()
            try await connection.run("select millrace.test_clock_advance('1 second')")
            while let run = try await running() { try await end(run, outcome: 1) }
            let taken = try await claim(on: connection, wanted: 50)
            if taken.isEmpty,
                try await connection.bool(
                    "select not exists (select from millrace.ready) and not exists (select from millrace.timer) and not exists (select from millrace.parked) and not exists (select from millrace.ending)"
                )
            {
                break
            }
        }
        try await house()
        return try await connection.column(
            """
            select 'job ' || j.id || ' never ends, and waits for ' ||
                   coalesce((select string_agg(e.pred::text, ' and ') from millrace.edge e where e.succ = j.id and e.outcome is null), 'nobody')
              from millrace.job j where not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))
            """)
    }
}
