import Postgres
import TestSupport
import Testing

/// Many jobs that need no more than to be written are written together.
@Suite struct TogetherTests {
    private static let jobs = [
        #"{"kind": "k"}"#, #"{"kind": "k", "args": null}"#, #"{"kind": "k", "args": [1, {"a": "ü"}], "queue": "q"}"#,
        #"{"kind": "homed", "priority": 0}"#, #"{"kind": "homed", "priority": "9", "queue": null}"#,
        #"{"kind": "k", "max_attempts": 3, "tags": ["a", "b", null], "metadata": {"trace": 1}}"#,
        #"{"kind": "k", "tags": [], "metadata": {}, "options": {}, "on_conflict": "replace", "unique_key": null}"#,
        #"{"kind": "k", "options": {"timeout": 3, "backoff": {"base": 1, "cap": 2}}}"#,
        #"{"kind": "k", "run_at": "2031-05-06T07:08:09+02:00"}"#, #"{"kind": "k", "run_at": "2001-05-06"}"#,
        #"{"kind": "k", "tenant": "acme"}"#, #"{"kind": "k", "limit_key": "open"}"#,
        #"{"kind": "k", "limit_key": "full"}"#, #"{"kind": "k", "limit_key": "full", "run_at": "2031-05-06"}"#,
        #"{"kind": "k", "limit_key": "open", "tenant": "acme", "queue": "q"}"#,
        // These go one after the other.
        #"{"kind": "new"}"#, #"{"kind": "k", "queue": "new"}"#, #"{"kind": "k", "tenant": "new", "limit_key": "open"}"#,
        #"{"kind": "k", "unique_key": "u", "options": {"unique_for": 60}}"#,
        #"{"kind": "k", "options": {"expires_at": "2031-05-06 07:08:09+02"}}"#,
        #"{"kind": "k", "options": {"wake": false}}"#,
    ]

    private func withLines(_ body: (Connection) async throws -> Void) async throws {
        try await withConnection { connection in
            try await connection.limit("key", "full", #"{"concurrency": 0}"#)
            for job in Self.jobs.prefix(15) {
                try await connection.run("select millrace.enqueue_object('\(job)')")
            }
            try await connection.enqueue("'homed'")
            try await connection.run(
                "update millrace.kind set queue = (select id from millrace.queue where name = 'q' and main is null) where name = 'homed'"
            )
            try await connection.openSession()
            try await connection.run(
                "insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes) values (millrace.gate_of('key', 'full'), 17, 1, 1, 1, 0, 0)"
            )
            try await body(connection)
        }
    }

    /// What stands in the tables beyond what stood there, without the numbers.
    private func written(_ connection: Connection, by sql: String) async throws -> [String] {
        try await connection.run("begin")
        let last = try await connection.int("select max(id) from millrace.job")
        try await connection.run(sql)
        let rows = try await connection.column(
            """
            select concat(k.name, ' ', q.name, ' ', q.tenant, ' ', q.keyed, ' ') || (to_jsonb(j) - array['id', 'enqueued_at', 'kind', 'queue'])::text || coalesce(r.row, '') || coalesce(t.row, '') || coalesce(p.row, '')
              from millrace.job j join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue
              left join lateral (select ' ready ' || (to_jsonb(r) - array['seq', 'job', 'kind', 'queue'])::text || ((r.seq, r.kind, r.queue) = (j.id, j.kind, j.queue)) as row from millrace.ready r where r.job = j.id) r on true
              left join lateral (select ' timer ' || (to_jsonb(t) - array['job', 'kind', 'queue'])::text || ((t.kind, t.queue) = (j.kind, j.queue)) as row from millrace.timer t where t.job = j.id) t on true
              left join lateral (select ' parked ' || (to_jsonb(p) - array['job', 'kind', 'queue'])::text || ((p.kind, p.queue) = (j.kind, j.queue)) as row from millrace.parked p where p.job = j.id) p on true
             where j.id > \(last) order by 1
            """)
        try await connection.run("rollback")
        return rows
    }

    @Test func `what is written together is what is written one after the other`() async throws {
        try await withLines { connection in
            let together = try await written(
                connection, by: "select * from millrace.enqueue_many('[\(Self.jobs.joined(separator: ", "))]')")
            let each = try await written(
                connection, by: Self.jobs.map { "select millrace.enqueue_object('\($0)');" }.joined())
            #expect(together.count == Self.jobs.count)
            for (a, b) in zip(together, each) { #expect(a == b) }
        }
    }

    @Test func `those that can be are, in their order, and the others are left`() async throws {
        try await withLines { connection in
            let ids = try await connection.column(
                "select unnest(millrace.enqueue_together('[\(Self.jobs.joined(separator: ", "))]'))")
            let taken = ids.prefix(15).compactMap { Int($0) }
            #expect(taken.count == 15 && taken == taken.sorted())
            #expect(ids.dropFirst(15).allSatisfy { $0 == "null" })
        }
    }

    @Test(arguments: [
        #"{"kind": "k", "priority": 10}"#, #"{"kind": "k", "priority": "x"}"#, #"{"kind": "k", "priority": 1.5}"#,
        #"{"kind": "k", "max_attempts": 0}"#, #"{"kind": "k", "run_at": "never"}"#,
        #"{"kind": "k", "run_at": "infinity"}"#,
        #"{"kind": "k", "tags": "a"}"#, #"{"kind": "k", "tags": null}"#, #"{"kind": "k", "metadata": []}"#,
        #"{"kind": "k", "metadata": null}"#, #"{"kind": "k", "options": null}"#, #"{"kind": "k", "options": {"x": 1}}"#,
        #"{"kind": "k", "options": {"timeout": -1}}"#, #"{"kind": "k", "limit_key": ""}"#,
        #"{"kind": "k", "tenant": ""}"#,
        #"{"kind": "k", "args": {"$millrace": 1}}"#, #"{"kind": "k", "on_conflict": "often"}"#,
        #"{"kind": "k", "more": 1}"#,
        #"{"kind": "k", "options": {"unique_for": 60}}"#, #"{"kind": null}"#, "[]", "null",
    ])
    func `what is wrong with one of them is said as if it came alone`(bad: String) async throws {
        try await withLines { connection in
            let count = try await connection.int("select count(*) from millrace.job")
            let alone = try #require(try await connection.refusal(of: "select millrace.enqueue_object('\(bad)')"))
            let among = try await connection.refusal(
                of: #"select * from millrace.enqueue_many('[{"kind": "k"}, \#(bad), {"kind": "k"}]')"#)
            #expect(among?.message == "job 2: \(alone.message)")
            #expect(among?.sqlState == alone.sqlState && among?.hint == alone.hint && among?.detail == alone.detail)
            #expect(try await connection.int("select count(*) from millrace.job") == count)
        }
    }
}
