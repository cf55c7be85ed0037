import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct LostClaimTests {
    /// A claim does not wait for the disk; this is the state after a crash right after it, without the crash.
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
            // At its next beat or at the end of the sleep the run is told that it has lost its lease.
            let said = worker.output
            #expect(
                said.contains("leases were lost; their runs are cancelled")
                    || said.contains("a finish was refused: the lease is lost"), "\(said)")
            await connection.close()
        }
    }

    /// A claim of jobs with limits is answered before it is on disk, and its jobs start when it is. Here the server forgets some of them in
    /// between, as a crash would make it.
    @Test func `jobs with limits whose claim the server forgot have not started, and run once`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.limit_set('key', '*', '{"concurrency": 1000000}');
                create table millrace.forgotten (number bigint, jobs int);
                alter function millrace.leases_read(bigint, bigint[], int) rename to leases_read_truly;
                create function millrace.leases_read(the_session bigint, numbers bigint[], carry int default null)
                returns table (
                    number bigint, claimed_at timestamptz, kind int, id bigint, attempt smallint, crashes smallint, enqueued_at timestamptz,
                    args jsonb, max_attempts smallint, keyed boolean, expired boolean, options jsonb, metadata jsonb, tags text[],
                    tenant text, gate bigint, gates bigint[])
                language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
                declare
                    one record;
                begin
                    if (select count(*) from millrace.forgotten) < 5 then
                        for one in select * from millrace.lease l where l.session = the_session and l.number = any (numbers) and l.n > 0 loop
                            insert into millrace.forgotten values (one.number, one.n);
                            insert into millrace.ready (seq, job, queue, kind, lane, gate)
                            select j.id, j.id, j.queue, j.kind, j.lane, millrace.gate_of('key', j.limit_key) from millrace.job j where j.id = any (one.ids);
                            perform millrace.lease_slots_free(one.slot_all, coalesce(one.slot_jobs, one.ids), one.slot_gates, one.ids);
                            delete from millrace.lease l where l.session = one.session and l.number = one.number;
                        end loop;
                    end if;
                    return query select * from millrace.leases_read_truly(the_session, numbers, carry);
                end $$;
                select count(millrace.enqueue('practice.nothing', limit_key => 'k' || i % 9)) from generate_series(1, 20000) i
                """)
            let worker = try await MillraceProcess.worker("holder", database: database.url, slots: 10)
            try await eventually("all have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 20000
            }
            #expect(try await connection.int("select count(distinct id) from millrace.history") == 20000)
            #expect(try await connection.int("select count(*) from millrace.history") == 20000)
            #expect(try await connection.int("select count(*) from millrace.forgotten") >= 5)
            try await eventually("no lease is left, and no slot held") {
                try await connection.int(
                    "select (select count(*) from millrace.lease) + (select coalesce(sum(n), 0) from millrace.slot)")
                    == 0
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            #expect(worker.output.contains("a crash of the server has undone claims"), "\(worker.output)")
            await connection.close()
        }
    }
}
