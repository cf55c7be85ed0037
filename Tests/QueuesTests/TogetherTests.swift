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
                try await connection.run("select millrace.enqueue_object('\(job)', caller => current_user)")
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

    /// The rows that were added to the tables, without the numbers.
    private func written(_ connection: Connection, by sql: String) async throws -> [String] {
        try await connection.run("begin")
        let last = try await connection.int("select max(id) from millrace.job")
        try await connection.run(sql)
        let rows = try await connection.column(
            """
            select concat(k.name, ' ', q.name, ' ', q.tenant, ' ', q.keyed, ' ') || (to_jsonb(j) - array['id', 'enqueued_at', 'kind', 'queue'])::text || coalesce(r.row, '') || coalesce(t.row, '') || coalesce(p.row, '') || coalesce(u.row, '')
              from millrace.job j join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue
              left join lateral (select ' ready ' || (to_jsonb(r) - array['seq', 'job', 'kind', 'queue'])::text || ((r.seq, r.kind, r.queue) = (j.id, j.kind, j.queue)) as row from millrace.ready r where r.job = j.id) r on true
              left join lateral (select ' timer ' || (to_jsonb(t) - array['job', 'kind', 'queue'])::text || ((t.kind, t.queue) = (j.kind, j.queue)) as row from millrace.timer t where t.job = j.id) t on true
              left join lateral (select ' parked ' || (to_jsonb(p) - array['job', 'kind', 'queue'])::text || ((p.kind, p.queue) = (j.kind, j.queue)) as row from millrace.parked p where p.job = j.id) p on true
              left join lateral (select ' key ' || (to_jsonb(u) - array['job'])::text as row from millrace.unique_lock u join millrace.unique_key using (hash) where u.job = j.id) u on true
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
                connection,
                by: Self.jobs.map { "select millrace.enqueue_object('\($0)', caller => current_user);" }.joined())
            #expect(together.count == Self.jobs.count)
            for (a, b) in zip(together, each) { #expect(a == b) }
        }
    }

    @Test func `those that can be are, in their order, and the others are left`() async throws {
        try await withLines { connection in
            let ids = try await connection.column(
                "select unnest(millrace.enqueue_together('[\(Self.jobs.joined(separator: ", "))]', caller => current_user))"
            )
            let taken = ids.prefix(15).compactMap { Int($0) }
            #expect(taken.count == 15 && taken == taken.sorted())
            #expect(ids.dropFirst(15).allSatisfy { $0 == "null" })
        }
    }

    @Test(
        arguments: [
            ["gone", "left", "gone"], ["new", "other", "new"], ["gone", "new", "gone"], ["waiting", "new", "gone"],
            ["new", "kept", "kept"], ["gone", "noted", "noted"], ["new", "unfit"],
        ], ["skip", "replace"])
    func `for every holder of the key, each job is answered as if it came alone`(keys: [String], conflict: String)
        async throws
    {
        try await withLines { connection in
            // The key's holders: none any more; none, but still held for a while; a waiting job; a job whose end was noted.
            for key in ["gone", "left", "kept", "waiting", "noted"] {
                try await connection.run(
                    """
                    select millrace.enqueue('k', unique_key => '\(key)', options => case when '\(key)' = 'kept' then '{"unique_for": 600}'::jsonb else '{}' end)
                    """)
            }
            try await connection.run(
                """
                select millrace.cancel(id) from millrace.job where unique_key in ('gone', 'left', 'kept');
                insert into millrace.unique_ended select u.hash, u.job from millrace.unique_lock u join millrace.job j on j.id = u.job where j.unique_key = 'noted';
                delete from millrace.ready r using millrace.job j where j.id = r.job and j.unique_key = 'noted'
                """)
            let jobs = keys.enumerated().map {
                #"{"kind": "k", "args": \#($0.offset), "unique_key": "\#($0.element)", "run_at": "2001-05-06", "on_conflict": "\#(conflict)", "options": \#($0.element == "unfit" ? #"{"wake": false}"# : "{}")}"#
            }
            let together = try await written(
                connection, by: "select * from millrace.enqueue_many('[\(jobs.joined(separator: ", "))]')")
            let each = try await written(
                connection, by: jobs.map { "select millrace.enqueue_object('\($0)', caller => current_user);" }.joined()
            )
            #expect(together == each)
            func answers(_ sql: String) async throws -> [String] {
                try await connection.run("begin")
                let last = try await connection.int("select max(id) from millrace.job")
                let rows = try await connection.column(sql)
                try await connection.run("rollback")
                // The new ones by the order in which they are first named.
                let ids = rows.map { Int($0.dropLast(2)) ?? 0 }
                let new = ids.filter { $0 > last }.reduce(into: [Int]()) { if !$0.contains($1) { $0.append($1) } }
                return zip(ids, rows).map { "\(new.firstIndex(of: $0).map { "new \($0)" } ?? "\($0)")\($1.suffix(2))" }
            }
            #expect(
                try await answers(
                    "select concat_ws(' ', m.id, m.created) from millrace.enqueue_many('[\(jobs.joined(separator: ", "))]') with ordinality m(id, created, n) order by m.n"
                )
                    == answers(
                        "select concat_ws(' ', (e).id, (e).created) from (select millrace.enqueue_object(j, caller => current_user) e from jsonb_array_elements('[\(jobs.joined(separator: ", "))]') j offset 0) e"
                    ))
        }
    }

    @Test func `callers of the same keys do not fail for one another`() async throws {
        try await withDatabase { database in
            let first = try await database.connect()
            try await first.run("select millrace.enqueue('k')")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        let connection = try await database.connect()
                        for _ in 0..<60 {
                            let jobs = (0..<6).map { _ in
                                #"{"kind": "k", "unique_key": "\#(Int.random(in: 0..<9))", "on_conflict": "\#(Bool.random() ? "replace" : "skip")"}"#
                            }
                            try await connection.run(
                                "select * from millrace.enqueue_many('[\(jobs.joined(separator: ", "))]')")
                            try await connection.run(
                                "select millrace.cancel(id) from millrace.job where id = (select max(job) from millrace.ready)"
                            )
                        }
                        await connection.close()
                    }
                }
                try await group.waitForAll()
            }
            #expect(
                try await first.int(
                    "select count(*) from millrace.unique_lock u where not u.ended and not exists (select from millrace.ready r where r.job = u.job)"
                ) == 0)
            #expect(
                try await first.int(
                    "select count(*) from millrace.ready r join millrace.job j on j.id = r.job where j.unique_hash is not null and not exists (select from millrace.unique_lock u where u.job = j.id)"
                ) == 0)
            await first.close()
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
            let alone = try #require(
                try await connection.refusal(of: "select millrace.enqueue_object('\(bad)', caller => current_user)"))
            let among = try await connection.refusal(
                of: #"select * from millrace.enqueue_many('[{"kind": "k"}, \#(bad), {"kind": "k"}]')"#)
            #expect(among?.message == "job 2: \(alone.message)")
            #expect(among?.sqlState == alone.sqlState && among?.hint == alone.hint)
            // Postgres's own errors about a value do not have our class.
            #expect(among?.detail == alone.detail ?? #"{"error": "invalid", "field": "jobs"}"#)
            #expect(try await connection.int("select count(*) from millrace.job") == count)
        }
    }
}
