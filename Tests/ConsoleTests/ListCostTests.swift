import Foundation
import Postgres
import TestSupport
import Testing

@testable import Console

/// What lists and long pages read.
@Suite(.timeLimit(.minutes(10))) struct ListCostTests {
    @Test func `a list says of jobs in every state what their own pages say`() async throws {
        try await ConsoleWorld.with { world in
            let ids = "array(select j.id from millrace.job j)"
            let columns =
                "b.id, b.kind, b.queue, b.state, b.priority, b.run_at, b.attempt, b.max_attempts, b.tenant, b.tags, b.enqueued_at, b.started_at, b.finished_at, b.worker, b.errors -> -1 ->> 'error'"
            let states = try await world.connection.column(
                "select distinct state from millrace.jobs_shown(\(ids), true) order by 1")
            #expect(Set(states).isSuperset(of: ["blocked", "cancelled", "dead", "ready", "running", "scheduled"]))
            let differing = try await world.connection.records(
                "select \(columns) from millrace.jobs_shown(\(ids), true) b except select \(columns) from millrace.jobs_shown(\(ids)) b"
            )
            #expect(differing == [])
            let whole = try await world.connection.int("select count(*) from millrace.jobs_shown(\(ids))")
            #expect(try await world.connection.int("select count(*) from millrace.jobs_shown(\(ids), true)") == whole)
            let progress = try await world.connection.records(
                "select b.id, b.progress from millrace.jobs_shown(\(ids), true) b where b.progress is not null")
            #expect(!progress.isEmpty)
            #expect(
                progress
                    == (try await world.connection.records(
                        "select b.id, b.progress from millrace.jobs_shown(\(ids)) b where b.progress is not null and b.state = 'running'"
                    )))
            let backwards = try await world.connection.column(
                "select id from millrace.jobs_shown(array(select j.id from millrace.job j order by j.id desc), true)")
            #expect(backwards.compactMap(Int.init) == backwards.compactMap(Int.init).sorted(by: >))
        }
    }

    @Test func `a list of ended jobs reads a few pages a job, and no more of them than it shows`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let connection = world.connection
            try await connection.run(
                """
                select millrace.register_kinds('{work}', '{null}');
                insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)
                select n, millrace.kind_id('work'), (select min(id) from millrace.queue), 17, now(), '{}', current_user from generate_series(1, 2000) n;
                insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
                select j.id, 1, j.id * 8, now(), now(), j.kind, j.queue, 5, 1, 3, 1, 0, 'it broke: password=hunter2' from millrace.job j;
                select setval('millrace.seq', 100000);
                analyze millrace.job; analyze millrace.history
                """)
            let looked = try await connection.int(
                "select f.looked from millrace.jobs_find('dead', page => 50) f")
            #expect(looked == 50, "500 before")
            let listed = "select * from millrace.jobs_shown(array(select n from generate_series(1951, 2000) n), true)"
            _ = try await connection.pages(listed)
            let pages = try await connection.pages(listed)
            // 45 a job; 180 when each was read whole.
            #expect(pages < 5_000, "\(pages)")
            try await connection.run("select millrace.register_queues('{rare}')")
            let rare = "select f.ids, f.looked from millrace.jobs_find('dead', 'rare') f"
            #expect(try await connection.records(rare) == ["({},2000)"])
            _ = try await connection.pages(rare)
            let looking = try await connection.pages(rare)
            // 4 a job that does not fit; 40 when the run of each was looked for.
            #expect(looking < 25_000, "\(looking)")
            let page = try await world.get("/console/jobs?state=dead")
            #expect(page.status == 200 && page.body.contains("it broke: password=[redacted]"))
            #expect(!page.body.contains("hunter2"))
            let older = try await world.get("/console/jobs?state=dead&after=1951")
            #expect(older.body.contains("/console/jobs/1950\"") && !older.body.contains("/console/jobs/1951\""))
        }
    }

    @Test func `a job with thousands of lines and hundreds of steps has its page`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("running")
            try await world.connection.run(
                """
                insert into millrace.log_line (job, n, at, level, session, number, attempt, line)
                select \(job), n, now(), 1, 1, 33, 1, 'line ' || n || ': token=abc' from generate_series(2, 5000) n;
                insert into millrace.step (job, name, value, session, number, attempt, at)
                select \(job), 'more ' || n, '{"password": "hunter2"}', 1, 33, 1, now() from generate_series(1, 400) n
                """)
            let lines = try await world.connection.column("select line from millrace.logs_shown(\(job), 0, 2)")
            #expect(lines == ["line 4999: token=[redacted]", "line 5000: token=[redacted]"])
            #expect(
                try await world.connection.column("select line from millrace.logs_shown(\(job), 4999)") == [
                    "line 5000: token=[redacted]"
                ])
            try await world.connection.run(
                "begin; set local track_functions = 'all'; select count(*) from millrace.steps_shown(\(job)); select count(*) from millrace.logs_shown(\(job), 0, 200)"
            )
            // Once each, where it was once for each step and line.
            let calls = try await world.connection.int(
                "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where schemaname = 'millrace' and funcname in ('redact_rules', 'redact_names')"
            )
            try await world.connection.run("rollback")
            #expect(calls <= 2, "\(calls)")
            let page = try await world.get("/console/jobs/\(job)")
            #expect(page.status == 200 && page.body.contains("line 5000: ") && !page.body.contains("line 4000: "))
        }
    }

    @Test func `schedules come a page at a time`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await world.connection.run(
                "select count(millrace.schedule_set('s' || to_char(n, 'FM000'), 'every 15 minutes', 'work')) from generate_series(1, 150) n"
            )
            let first = try await world.get("/console/schedules")
            #expect(first.body.contains("name=s100\"") && !first.body.contains("name=s101\""))
            #expect(first.body.contains("rel=\"next\" href=\"/console/schedules?after=s100\""))
            let rest = try await world.get("/console/schedules?after=s100")
            #expect(rest.body.contains("name=s150\"") && !rest.body.contains("rel=\"next\""))
        }
    }

    @Test func `the samples of one kind are unpacked once for each time, and not for each of its keys`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let connection = world.connection
            try await connection.run(
                """
                insert into millrace.sample_key (what, name, detail, queue, seen_at)
                select 2, 'work', 'v' || n % 2, 'q' || n, now() from generate_series(1, 3000) n;
                insert into millrace.sample_fresh (what, at, keys, vals)
                select 2, date_bin('10 s', now() - n * interval '10 s', timestamptz '2000-01-01 00:00+00'),
                       array(select k.id from millrace.sample_key k where k.what = 2 and k.name = 'work' order by k.id),
                       array(select (k.id * 7 + c) % 1000 + 1 from millrace.sample_key k cross join generate_series(1, 8) c where k.what = 2 and k.name = 'work' order by k.id, c)
                  from generate_series(1, 5) n
                """)
            let some =
                "array(select k.id from millrace.sample_key k where k.what = 2 and k.name = 'work' and k.id % 60 = 0)"
            func numbers(_ keys: String) -> String {
                "select n.* from millrace.sample_numbers(2, \(keys), extract(epoch from now())::bigint - 600, extract(epoch from now())::bigint + 60, 10) n"
            }
            let all = "array(select k.id from millrace.sample_key k where k.what = 2 and k.name = 'work')"
            #expect(try await connection.int("select count(*) from (\(numbers(all))) n") == 3000 * 8 * 5)
            #expect(
                try await connection.int(
                    "select count(*) from (\(numbers(some))) n where n.v = (n.key * 7 + n.c + 1) % 1000 + 1")
                    == (try await connection.int("select cardinality(\(some))")) * 8 * 5)
            _ = try await connection.pages(numbers(some))
            let few = try await connection.pages(numbers(some))
            // Each array takes 25 pages or so; fifty keys read them fifty times before.
            #expect(few < 1_500, "\(few)")
        }
    }
}
