import Postgres
import TestSupport
import Testing

/// The claim on a table of a million rows that nobody has analyzed.
@Suite struct ClaimPlanTests {
    static func fill(_ connection: Connection, kind: String, rows: Int = 1_000_000) async throws {
        try await connection.run(
            """
            select millrace.queue_id('default'), millrace.kind_id('\(kind)');
            with ids as (select nextval('millrace.seq') id from generate_series(1, \(rows)))
            insert into millrace.ready (seq, job, queue, kind, lane)
            select id, id, 1, (select k.id from millrace.kind k where k.name = '\(kind)'), 17 from ids
            """)
    }

    static func call(floor: Int, kind: String = "test", number: Int) -> String {
        """
        select count(*) from millrace.claim(1, \(number), array(select id from millrace.kind where name = '\(kind)'), array[1], array[17],
            array[\(floor)]::bigint[], array[9223372036854775807], array[100], 100, '{}', '{}')
        """
    }

    /// Pages touched by a claim, rolled back so that each begins from the same table.
    static func pages(_ connection: Connection, floor: Int, number: Int) async throws -> Int {
        try await connection.int(
            "select public.millrace_test_pages('\(call(floor: floor, number: number).replacing("'", with: "''"))')")
    }

    static let probe = """
        create function public.millrace_test_pages(sql text) returns bigint language plpgsql as $$
        declare plan json;
        begin
            execute 'explain (analyze, buffers, format json) ' || sql into plan;
            return (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
        end $$
        """

    @Test func `a claim of jobs that lie far apart reads those, and nothing of what lies between`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.run(
                """
                select millrace.enqueue_bulk('test', array(select '{"n": 1}' from generate_series(1, 50000)), 'default');
                delete from millrace.ready where seq % 400 <> 0;
                analyze millrace.job
                """)
            let read = "select pg_stat_get_xact_tuples_fetched('millrace.job_0_pkey'::regclass)"
            let queue = try await connection.int("select millrace.queue_id('default')")
            try await connection.run("begin")
            #expect(
                try await connection.int(Self.call(floor: 0, number: 8).replacing("array[1]", with: "array[\(queue)]"))
                    == 100)
            let rows = try await connection.int(read)
            // The counter may still include what the enqueue looked up; there are 39,500 other jobs in between.
            #expect(rows < 1000, "\(rows) rows of job were read for 100 jobs")
            try await connection.run("rollback")
        }
    }

    @Test func `a claim reads a few pages of a million rows, and of what stands in front or in the future none`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run(Self.probe)
            // A million of an unknown kind, in front.
            try await Self.fill(connection, kind: "unknown")
            let floor = try await connection.int("select max(seq) from millrace.ready")
            try await connection.run("select millrace.enqueue('test') from generate_series(1, 2000)")
            try await connection.openSession()
            let first = try await Self.pages(connection, floor: floor, number: 8)
            #expect(first < 3000, "\(first) pages for 100 jobs")  // the table has 6,400, its index 3,900
            // A million more behind, and as many in the future.
            try await Self.fill(connection, kind: "test")
            try await connection.run(
                """
                insert into millrace.timer (due, job, queue, kind, lane)
                select now() + interval '1 day' + n * interval '1 s', 10000000 + n, 1, 1, 17 from generate_series(1, 1000000) n
                """)
            let second = try await Self.pages(connection, floor: floor + 100, number: 16)
            #expect(second < 3000, "\(first) pages before, \(second) after")
            try await connection.run("begin")
            let whole = try await connection.int("select pg_stat_get_xact_tuples_returned('millrace.ready'::regclass)")
            #expect(try await connection.int(Self.call(floor: floor + 200, number: 24)) == 100)
            let after = try await connection.int("select pg_stat_get_xact_tuples_returned('millrace.ready'::regclass)")
            try await connection.run("commit")
            #expect(after == whole, "a sequential scan read \(after - whole) rows")
            for turn in 0..<10 {
                #expect(
                    try await connection.int(Self.call(floor: floor + 300 + turn * 100, number: 32 + turn * 8)) == 100)
            }
            // The promoter does not walk over the future either.
            let look = try await connection.int(
                "select public.millrace_test_pages('select * from millrace.promote(null, 1000)')")
            #expect(look < 1000, "\(look) pages to see that nothing is due")
        }
    }
}
