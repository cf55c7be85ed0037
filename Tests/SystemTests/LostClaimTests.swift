import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct LostClaimTests {
    /// A claim does not wait for the disk; this is what a crash right after it leaves behind, but for the crash.
    @Test func `a claim that the server forgot leads to a second run, and the first one's end is refused`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("holder", database: database.url, slots: 10)
            try await connection.run(
                "select millrace.enqueue('practice.sleep', jsonb_build_object('ms', 4000)) from generate_series(1, 3)")
            try await eventually("all three run") { try await connection.int("select running from millrace.beat") == 3 }
            // Later jobs have come and gone: the worker looks above the three.
            try await connection.run("select millrace.enqueue('practice.nothing')")
            try await eventually("the fourth has ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 1
            }
            try await connection.run(
                """
                begin;
                insert into millrace.ready (seq, job, queue, kind, lane)
                select j.id, j.id, j.queue, j.kind, j.lane from millrace.lease l cross join unnest(l.ids) i(id) join millrace.job j on j.id = i.id;
                delete from millrace.lease;
                select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
                commit
                """)
            try await eventually("they run again under another lease") {
                try await connection.int("select coalesce(sum(n), 0) from millrace.lease") == 3
            }
            try await eventually("all have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 4
            }
            #expect(try await connection.int("select count(*) from millrace.history") == 4)
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            // Whichever comes first, its next beat or the end of the sleep: the run that lost its lease is told.
            let said = worker.output
            #expect(
                said.contains("leases were lost; their runs are cancelled")
                    || said.contains("a finish was refused: the lease is lost"), "\(said)")
            await connection.close()
        }
    }
}
