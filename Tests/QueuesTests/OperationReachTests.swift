import Postgres
import TestSupport
import Testing

/// How many jobs a preview says that an action would reach: the truth, or less and said so, whatever the jobs have in common.
@Suite struct OperationReachTests {
    private struct Reach: Equatable {
        var jobs: Int
        var isExact: Bool
        var looked: Int
    }

    private static func reach(_ action: String, _ filter: String, on connection: Connection) async throws -> Reach {
        let found = try await connection.query(
            .pasted("select jobs, is_exact, looked from millrace.operation_preview('\(action)', '\(filter)')"),
            deadline: .ample
        ) { row throws(PostgresError) in
            Reach(jobs: Int(try row.int(0)), isExact: try row.bool(1), looked: Int(try row.int(2)))
        }
        return try #require(found.first)
    }

    /// Jobs that died, the first `matching` of them of one cause, and all of these in one queue and of one kind; noted as workers note them.
    private static func die(_ count: Int, matching: Int, on connection: Connection) async throws -> Int {
        try await connection.run(
            """
            select millrace.register_kinds('{charge,other}', '{null,null}'), millrace.register_queues('{pay,rest}');
            select setval('millrace.seq', \(count + 1));
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select n, 1, n * 8, millrace.now(), millrace.now(), millrace.kind_id(case when n <= \(matching) then 'charge' else 'other' end),
                   millrace.queue_id(case when n <= \(matching) then 'pay' else 'rest' end), 1, 3, 3, 0,
                   case when n <= \(matching) then 'No such customer: cus_' || md5(n::text) when n % 3 = 0 then 'it is full' else 'connect ECONNREFUSED 10.0.0.' || n % 200 end
              from generate_series(1, \(count)) n;
            insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
            select min(h.finished), max(h.finished), 1, h.queue, h.kind, min(h.error), count(*), count(*), (array_agg(h.id))[1:20], min(h.id), max(h.id)
              from millrace.history h group by h.queue, h.kind, left(h.error, 10);
            select millrace.failures_fold(); analyze millrace.history
            """)
        return try await connection.int(
            "select id from millrace.failure_group where kind = millrace.kind_id('charge') and class <> 'other'")
    }

    @Test func `state, queue, kind and cause that go together are not counted as if each were drawn by itself`()
        async throws
    {
        try await withConnection { connection in
            let group = try await Self.die(30_000, matching: 9_999, on: connection)
            for filter in [
                #"{"state": "dead", "group": "\#(group)"}"#,
                #"{"state": "dead", "queue": "pay", "kind": "charge", "group": "\#(group)"}"#,
                #"{"kind": "charge", "group": "\#(group)"}"#, #"{"state": "dead", "queue": "pay", "kind": "charge"}"#,
            ] {
                let reach = try await Self.reach("retry", filter, on: connection)
                #expect(reach.jobs == 9_999 && reach.isExact, "\(filter): \(reach)")
            }
            let none = try await Self.reach(
                "retry", #"{"state": "dead", "queue": "rest", "group": "\#(group)"}"#, on: connection)
            #expect(none == Reach(jobs: 0, isExact: true, looked: none.looked))
            let all = try await Self.reach("retry", #"{"state": "dead"}"#, on: connection)
            #expect(all.jobs == 30_000 && all.isExact, "\(all)")
            // Once one was retried, nothing tells it at once: what was found is said, and that it may be more.
            try await connection.run("update millrace.history set outcome = 4 where id = 7")
            for filter in [
                #"{"state": "dead", "kind": "charge", "queue": "pay"}"#, #"{"state": "dead", "group": "\#(group)"}"#,
            ] {
                let kind = try await Self.reach("retry", filter, on: connection)
                #expect(!kind.isExact && kind.jobs <= 9_998 && kind.looked == 20_000, "\(filter): \(kind)")
            }
        }
    }

    @Test func `a group's count is not believed once one of its jobs was retried, and small ones are read`()
        async throws
    {
        try await withConnection { connection in
            let group = try await Self.die(3_000, matching: 900, on: connection)
            let filter = #"{"state": "dead", "group": "\#(group)"}"#
            #expect(try await Self.reach("retry", filter, on: connection).jobs == 900)
            try await connection.run("update millrace.history set outcome = 4 where id = 7")
            let after = try await Self.reach("retry", filter, on: connection)
            #expect(!after.isExact && after.jobs <= 899 && after.jobs > 0, "\(after)")
            try await connection.run("update millrace.history set outcome = 4 where id between 101 and 900")
            let small = try await Self.reach("retry", filter, on: connection)
            #expect(small.jobs == 99 && small.isExact, "\(small)")
        }
    }

    @Test func `a look costs the same however many jobs have ended`() async throws {
        try await withConnection { connection in
            let group = try await Self.die(30_000, matching: 9_999, on: connection)
            for filter in [
                #"{"state": "dead"}"#, #"{"state": "dead", "queue": "pay", "kind": "charge", "group": "\#(group)"}"#,
                #"{"state": "dead", "error": "customer"}"#, #"{"state": "dead", "tag": "night"}"#,
            ] {
                let preview = "select * from millrace.operation_preview('retry', '\(filter)')"
                _ = try await connection.pages(preview)
                // A row of history is one page, or two with its index. Before, the same look took 43 a row.
                let pages = try await connection.pages(preview)
                #expect(pages < 60_000, "\(filter): \(pages)")
            }
        }
    }

    @Test func `what is counted in one look is what the operation comes to`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.run(
                """
                select millrace.register_kinds('{a,b}', '{null,null}'), millrace.register_queues('{p,q}');
                select millrace.enqueue(k, queue => q, tags => case when i % 2 = 0 then array['even'] end, tenant => case when i % 3 = 0 then 't' || i end,
                           limit_key => case when i % 4 = 0 then 'four' end, run_at => case when i > 6 then now() + interval '1 hour' end)
                  from unnest(array['a', 'b']) k, unnest(array['p', 'q']) q, generate_series(1, 9) i;
                insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes) select 77, r.lane, r.job, r.queue, r.kind, 0, 1 from millrace.ready r where r.job % 5 = 0;
                delete from millrace.ready r where r.job % 5 = 0;
                delete from millrace.timer t where t.job % 2 = 0;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select j.id, 0, nextval('millrace.seq'), now(), now() - make_interval(mins => j.id::int), j.kind, j.queue, 1, case when j.id % 3 = 0 then 2 else 3 end, 1, 0,
                       case when j.id % 3 <> 0 then 'it broke at ' || j.id % 2 end
                  from millrace.job j
                 where not exists (select from millrace.ready r where r.job = j.id) and not exists (select from millrace.timer t where t.job = j.id)
                   and not exists (select from millrace.parked p where p.job = j.id);
                insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
                select min(h.finished), max(h.finished), 1, h.queue, h.kind, min(h.error), count(*), count(*), (array_agg(h.id))[1:20], min(h.id), max(h.id)
                  from millrace.history h where h.error is not null group by h.queue, h.kind
                """)
            var looked = 0
            for state in ["ready", "scheduled", "cancelled", "dead", "blocked"] {
                for rest in [
                    "", #", "queue": "p""#, #", "kind": "a""#, #", "queue": "q", "kind": "b""#, #", "tag": "even""#,
                    #", "limit_key": "four""#,
                    #", "kind": "a", "tag": "even""#, #", "tenant": "t3""#, #", "error": "BROKE at 1""#,
                    #", "since": "2020-01-01T00:00:00Z""#,
                    #", "group": "1""#, #", "group": "1", "queue": "p""#, #", "queue": "none""#,
                ] {
                    let filter = #"{"state": "\#(state)"\#(rest)}"#
                    let action = ["cancelled", "dead"].contains(state) ? "retry" : "cancel"
                    let found = try await Self.reach(action, filter, on: connection)
                    let all = try await connection.int(
                        "select cardinality(p.ids) from millrace.operation_page('\(filter)', '\(state)', 9223372036854775807, 500, 20000) p"
                    )
                    #expect(found.jobs == all && found.isExact, "\(filter): \(found), not \(all)")
                    looked += all
                }
            }
            #expect(looked > 60, "the filters find jobs")
        }
    }
}
