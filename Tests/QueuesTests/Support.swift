import Postgres
import TestSupport
import Testing

/// What a worker does, in SQL that a test can read.
extension Connection {
    @discardableResult
    func enqueue(_ arguments: String = "'test'") async throws -> Int {
        try await int("select millrace.enqueue(\(arguments))")
    }

    func openSession(_ session: Int = 1) async throws {
        try await run(
            """
            select millrace.register_kinds(array['test'], array[null]::text[]);
            select millrace.session_open(\(session), 'worker-\(session)', 'host', 1, '0', null,
                array(select id from millrace.kind), 10, false)
            """)
    }

    /// Claims from every lane of every queue, from the lowest place; the ids in the order given.
    @discardableResult
    func claim(_ session: Int = 1, number: Int = 8, wanted: Int = 100, kinds: [String]? = nil) async throws -> [Int] {
        let only = kinds.map { "where name in (\($0.map { "'\($0)'" }.joined(separator: ",")))" } ?? ""
        return try await column(
            """
            select c.id from millrace.claim(\(session), \(number), array(select id from millrace.kind \(only)),
                (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(\(wanted)) from millrace.queue q, generate_series(0, 39) l), \(wanted),
                array(select id from millrace.queue where retention = 0), array(select id from millrace.queue where retention = 2)) c
             where c.number is not null
             order by c.lane, c.seq
            """
        ).compactMap { Int($0) }
    }

    struct End {
        var id: Int
        var outcome: Int
        var number = 9
        var error: String?
        var wait: Double?
    }

    /// Which leases were live.
    @discardableResult
    func finish(_ ends: [End], session: Int = 1, partial: [Int] = [], complete: [Int: Int] = [:]) async throws -> [Int]
    {
        func list(_ values: [String], _ type: String) -> String { "array[\(values.joined(separator: ","))]::\(type)[]" }
        let numbers = complete.keys.sorted()
        let sql = """
            select unnest(millrace.finish(\(session), \(list(ends.map { "\($0.id)" }, "bigint")),
                \(list(ends.map { "\($0.number)" }, "bigint")), \(list(ends.map { "\($0.outcome)" }, "smallint")),
                array(select j.kind from unnest(\(list(ends.map { "\($0.id)" }, "bigint"))) with ordinality u(id, o) join millrace.job j using (id) order by o),
                array(select j.queue from unnest(\(list(ends.map { "\($0.id)" }, "bigint"))) with ordinality u(id, o) join millrace.job j using (id) order by o),
                \(list(ends.map { _ in "1" }, "smallint")), \(list(ends.map { _ in "0" }, "smallint")), \(list(ends.map { _ in "5" }, "int")),
                \(list(partial.map(String.init), "bigint")), \(list(numbers.map(String.init), "bigint")),
                \(list(numbers.map { "\(complete[$0] ?? 0)" }, "int")),
                \(list(ends.map { $0.error.map { "'\($0)'" } ?? "null" }, "text")),
                \(list(ends.map { $0.wait.map { "\($0)" } ?? "0" }, "float8")),
                array(select id from millrace.job where unique_hash is not null or options ? 'tell_end')))
            """
        return try await column(sql).compactMap { Int($0) }
    }

    /// Where a job is, by millrace.job: `ready`, `running`, …
    func state(_ job: Int) async throws -> String? {
        try await value("select state from millrace.job(\(job))")
    }

    func rescue(_ session: Int = 1, beat: Int = 0) async throws -> String? {
        try await records("select * from millrace.rescue(\(session), \(beat))").first
    }

    /// No job is in two places.
    func expectOnePlaceEach() async throws {
        let doubled = try await column(
            """
            select job from (select job from millrace.ready union all select job from millrace.timer union all select job from millrace.parked
                union all select unnest(ids) from millrace.lease
                union all select next from millrace.unique_lock where next is not null) p group by job having count(*) > 1
            """)
        #expect(doubled.isEmpty)
    }
}

extension Sequence where Element: Sendable {
    func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}

extension Connection {
    func limit(_ scope: String, _ name: String, _ limits: String) async throws {
        try await run("select millrace.limit_set('\(scope)', '\(name)', '\(limits)')")
    }

    /// Ends runs as a worker does, with the slots that their lease says they hold.
    func end(_ ids: [Int], outcome: Int = 1, session: Int = 1, number: Int = 9) async throws {
        let list = ids.map(String.init).joined(separator: ",")
        try await run(
            """
            select millrace.finish(\(session), x.ids, x.numbers, x.outcomes, x.kinds, x.queues, x.ones, x.zeros, x.ms,
                case when x.n < l.n then array[\(number)::bigint] else '{}' end,
                case when x.n < l.n then '{}' else array[\(number)::bigint] end, case when x.n < l.n then '{}' else array[x.n] end,
                x.errors, case when \(outcome) in (4, 5, 6) then x.waits end, null, s.numbers, s.gates, s.counts)
              from (select array_agg(j.id order by j.id) as ids, array_agg(\(number)::bigint) as numbers, array_agg(\(outcome)::smallint) as outcomes,
                           array_agg(j.kind order by j.id) as kinds, array_agg(j.queue order by j.id) as queues, array_agg(1::smallint) as ones,
                           array_agg(0::smallint) as zeros, array_agg(5) as ms, count(*)::int as n,
                           array_agg(case when \(outcome) in (3, 4) then 'because' end) as errors, array_agg(0::float8) as waits
                      from millrace.job j where j.id in (\(list))) x
              left join millrace.lease l on l.session = \(session) and l.number = \(number)
              left join lateral (select array_agg(\(number)::bigint) as numbers, array_agg(g.gate) as gates, array_agg(g.n) as counts
                                   from (select g.gate, 1 as n from unnest(coalesce(l.slot_jobs, l.ids), l.slot_gates) g(job, gate) where g.gate is not null and g.job in (\(list))
                                         union all select a, x.n from unnest(l.slot_all) a) g) s on true
            """)
    }

    /// The slots' counts equal the leases' slots.
    func expectExactSlots(held: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        #expect(
            try await int("select count(*) from millrace.slots_audit() where counted <> held") == 0,
            sourceLocation: sourceLocation)
        #expect(
            try await int("select coalesce(sum(held), 0) from millrace.slots_audit()") == held,
            sourceLocation: sourceLocation)
    }
}
