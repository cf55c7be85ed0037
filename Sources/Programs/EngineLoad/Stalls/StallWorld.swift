import LoadKit
import Postgres

/// The statements that stalls are made of, in the transaction that is rolled back after the question.
struct StallWorld: Sendable {
    let connection: Connection

    func run(_ sql: String) async throws(PostgresError) {
        try await connection.run(script: .shipped(Array(sql.utf8)))
    }

    func number(_ sql: String) async throws(PostgresError) -> Int64 {
        try await connection.query(.shipped(Array(sql.utf8))) { row throws(PostgresError) in try row.int(0) }.first ?? 0
    }

    func numbers(_ sql: String) async throws(PostgresError) -> [Int64] {
        try await connection.query(.shipped(Array(sql.utf8))) { row throws(PostgresError) in try row.int(0) }
    }

    func text(_ sql: String) async throws(PostgresError) -> String {
        try await connection.text(.shipped(Array(sql.utf8)))
    }

    static func list(_ names: [String]) -> String { "array[\(names.map { "'\($0)'" }.joined(separator: ","))]::text[]" }

    /// - Parameter more: further arguments of `enqueue`, such as `, tenant => 'a'`.
    func enqueue(_ kind: String, in queue: String, args: String = "{}", _ more: String = "") async throws(PostgresError)
        -> Int64
    {
        try await number("select millrace.enqueue('\(kind)', '\(args)', queue => '\(queue)'\(more))")
    }

    func register(_ kinds: [String]) async throws(PostgresError) {
        try await run(
            "select millrace.register_kinds(\(Self.list(kinds)), array_fill(null::text, array[\(kinds.count)]))")
    }

    /// - Parameter kinds: nil is every kind that is known.
    func open(
        _ session: Int, kinds: [String]? = nil, queues: [String]? = nil, slots: Int = 10, version: String = "1.0"
    ) async throws(PostgresError) {
        let only = kinds.map { "where name = any (\(Self.list($0)))" } ?? ""
        try await run(
            """
            select millrace.session_open(\(session), 'worker-\(session)', 'host-\(session)', 1, '\(version)', \(queues.map(Self.list) ?? "null"),
                array(select id from millrace.kind \(only)), \(slots), false)
            """)
    }

    /// Takes waiting jobs of these kinds, first come first, as a worker does.
    @discardableResult
    func claim(_ session: Int, kinds: [String], wanted: Int = 100, number: Int = 8) async throws(PostgresError)
        -> [Int64]
    {
        let lanes = "millrace.queue q, generate_series(0, 39) l"
        return try await numbers(
            """
            select c.id from millrace.claim(\(session), \(number), array(select id from millrace.kind where name = any (\(Self.list(kinds)))),
                (select array_agg(q.id order by l, q.id) from \(lanes)), (select array_agg(l order by l, q.id) from \(lanes)),
                (select array_agg(0::bigint) from \(lanes)), (select array_agg(9223372036854775807) from \(lanes)),
                (select array_agg(\(wanted)) from \(lanes)), \(wanted),
                array(select id from millrace.queue where retention = 0), array(select id from millrace.queue where retention = 2)) c
             where c.number is not null and c.id is not null
            """)
    }

    /// Ends a job that is alone in its lease. outcome: 1 succeeded, 3 dead, 4 retried, 5 snoozed.
    func end(
        _ job: Int64, session: Int, outcome: Int, error: String? = nil, wait: Int = 600, number: Int = 9
    ) async throws(PostgresError) {
        let error = error.map { "'\($0.replacing("'", with: "''"))'" } ?? "null"
        try await run(
            """
            select millrace.finish(\(session), array[\(job)]::bigint[], array[\(number)]::bigint[], array[\(outcome)]::smallint[], array[j.kind], array[j.queue],
                array[1]::smallint[], array[0]::smallint[], array[5], '{}', array[\(number)]::bigint[], array[1], array[\(error)]::text[], array[\(wait)]::float8[])
              from millrace.job j where j.id = \(job)
            """)
    }

    /// A job that was there at crashes: it stands in the lane of suspects.
    func suspect(_ job: Int64, crashes: Int) async throws(PostgresError) {
        try await run(
            """
            with gone as (
                delete from millrace.ready r using millrace.job j where j.id = \(job) and r.queue = j.queue and r.lane = j.lane and r.seq = j.id returning r.*
            )
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
            select nextval('millrace.seq'), g.job, g.queue, g.kind, millrace.lane_of(g.lane, \(crashes), true), g.attempt, \(crashes) from gone g
            """)
    }

    func beat(_ state: String = "working", age: Int = 0, isFull: Bool = false) async throws(PostgresError) {
        try await run(
            """
            update millrace.beat b set at = millrace.now() - interval '\(age) s', state = '\(state)', running = case when \(isFull) then s.slots else 0 end
              from millrace.session s where s.id = b.session
            """)
    }
}
