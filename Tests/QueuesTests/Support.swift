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

    /// Claims from every lane of every queue, from the bottom; the ids in the order given.
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
                array(select id from millrace.job where unique_hash is not null)))
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

    /// No job stands in two places.
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
