import Clusters
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Looking at jobs, on a server that nobody has set up for it, when many have ended.
@Suite struct JobReadingTests {
    @Test func `no door has its plans compiled`() async throws {
        try await withConnection { connection in
            let compiled = try await connection.column(
                """
                select p.oid::regprocedure from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and p.prosecdef and p.proname not in ('enqueue_as')
                   and p.oid::regprocedure::text <> all (array['millrace.alarm_notice_failed()', 'millrace.route_moves()', 'millrace.mail_never()'])
                   and not coalesce('jit=off' = any (p.proconfig), false)
                """)
            #expect(compiled.isEmpty, "\(compiled)")
        }
    }

    @Test func `a job and a page of jobs are read in a few rows, beside 200,000 that have ended`() async throws {
        try await withCluster { cluster in
            let connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            _ = try await Migrator.asTested().migrate(on: connection)
            try await connection.run(
                """
                select millrace.enqueue_bulk('test', array(select '{}' from generate_series(1, 200000)), 'default');
                insert into millrace.history (id, kind, queue, outcome, attempt, started, finished, class, session, number, crashes)
                select j.id, j.kind, j.queue, 1, 1, now() - interval '1 minute', now(), 1, 0, j.id, 0 from millrace.job j;
                delete from millrace.ready
                """)
            let job = try await connection.int("select max(id) - 5 from millrace.job")
            for call in [
                "job(\(job))", "job_shown(\(job))", "own_jobs(page => 50)", "job_list('succeeded', page => 50)",
                "why(\(job))",
            ] + (Template.hasRooms ? ["jobs_shown(array[\(job)])"] : []) {
                try await connection.run("begin")
                _ = try await connection.value("select count(*) from millrace.\(call)")
                let rows = try await connection.int(
                    "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where schemaname = 'millrace'"
                )
                try await connection.run("rollback")
                #expect(rows > 0 && rows < 5000, "\(call) read \(rows) rows")
            }
            await connection.close()
        }
    }
}
