import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct LostWorkerTests {
    /// Prints how long it took to notice, to rescue and to start again.
    @Test func `jobs of a killed worker are started again elsewhere, each with one crash and no attempt used up`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let victim = try await MillraceProcess.worker("victim", database: database.url, slots: 1000)
            // Long enough that the others have begun before the first ends, on a machine that stands still for seconds too.
            try await connection.run(
                "select millrace.enqueue_bulk('practice.sleep', array(select '{\"ms\": 15000}' from generate_series(1, 1000)))"
            )
            try await eventually("all 1000 run") {
                try await connection.int("select running from millrace.beat") == 1000
            }
            let others = [
                try await MillraceProcess.worker("second", database: database.url, slots: 600),
                try await MillraceProcess.worker("third", database: database.url, slots: 600),
            ]
            try await Task.sleep(for: .seconds(2))  // the watchers have seen the victim alive
            let killed = try await connection.value("clock_timestamp()") ?? ""
            victim.signal(SIGKILL)
            // Or have already: on a machine that stands still for seconds the first have ended before the last begin.
            try await eventually("all 1000 run again") {
                try await connection.int(
                    """
                    select (select coalesce(sum(l.n), 0) from millrace.lease l join millrace.session s on s.id = l.session where s.name <> 'victim')
                         + (select count(*) from millrace.history where outcome = 1)
                    """
                ) >= 1000
            }
            try await print(
                """
                killed with 1000 running: noticed after \
                \(connection.value("select extract(epoch from ended_at - '\(killed)') from millrace.process where name = 'victim'") ?? "?") s (rescue included), \
                all started again after \(connection.value("select extract(epoch from max(at) - '\(killed)') from millrace.lease") ?? "?") s
                """)
            try await eventually("all 1000 have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 1000
            }
            #expect(
                try await connection.int("select count(distinct id) from millrace.history where outcome = 1") == 1000)
            // The jobs that the victim had ended before it was killed were not lost, except on a machine that stands still.
            let lost = try await connection.int("select count(distinct id) from millrace.history where outcome = 7")
            #expect(lost > 0)
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 7") == lost)
            #expect(
                try await connection.column(
                    """
                    select distinct e.attempt || '/' || e.crashes || case when l.id is null then ', never lost' else '' end
                    from millrace.history e left join millrace.history l on l.id = e.id and l.outcome = 7
                    where e.outcome = 1 order by 1
                    """
                ) == (lost == 1000 ? ["1/1"] : ["1/0, never lost", "1/1"]))
            for other in others { other.signal(SIGTERM) }
            for other in others { #expect(try await other.ended() == 0) }
            await connection.close()
        }
    }

    /// Through a pooler no worker holds a session lock and none is notified: half a minute of silence, and the poll, must be enough.
    @Test(.enabled(if: TestPooler.program != nil, "pgbouncer is not installed: apt-get install pgbouncer"))
    func `behind a transaction pooler too, the jobs of a killed worker are started again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await withPooler(to: database, servers: 6) { pooled in
                let victim = try await MillraceProcess.worker("victim", database: pooled.location, slots: 200)
                #expect(victim.output.contains("wakes=polling"))
                try await connection.run(
                    "select millrace.enqueue_bulk('practice.sleep', array(select '{\"ms\": 15000}' from generate_series(1, 200)))"
                )
                try await eventually("all 200 run") {
                    try await connection.int("select running from millrace.beat") == 200
                }
                let other = try await MillraceProcess.worker("other", database: pooled.location, slots: 200)
                let killed = try await connection.value("clock_timestamp()") ?? ""
                victim.signal(SIGKILL)
                try await eventually("all 200 run again") {
                    try await connection.int(
                        "select coalesce(sum(l.n), 0) from millrace.lease l join millrace.session s on s.id = l.session where s.name <> 'victim'"
                    ) == 200
                }
                try await print(
                    "killed behind a pooler: all started again after \(connection.value("select extract(epoch from max(at) - '\(killed)') from millrace.lease") ?? "?") s"
                )
                try await eventually("all 200 have ended") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") == 200
                }
                #expect(
                    try await connection.column(
                        "select distinct attempt || '/' || crashes from millrace.history where outcome = 1") == ["1/1"])
                other.signal(SIGTERM)
                #expect(try await other.ended() == 0)
            }
            await connection.close()
        }
    }

    @Test func `a job that kills its workers is quarantined, and none of a thousand others is`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 30}' from generate_series(1, 500)));
                select millrace.enqueue('practice.crash');
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 30}' from generate_series(1, 500)))
                """)
            let workers = ["one", "two"].map { name in
                Supervised { try await MillraceProcess.worker("\(name)-\($0)", database: database.url, slots: 50) }
            }
            for worker in workers { try await worker.begin() }
            try await eventually("the culprit is dead and all others are done", within: .seconds(180)) {
                try await connection.int("select count(*) from millrace.history where outcome in (1, 3)") == 1001
            }
            #expect(
                try await connection.column(
                    "select distinct k.name from millrace.history h join millrace.kind k on k.id = h.kind where h.outcome = 3"
                ) == ["practice.crash"])
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 1000)
            let culprit = "millrace.history h join millrace.kind k on k.id = h.kind where k.name = 'practice.crash'"
            // Two lone runs crashed: their leases are marked, and the second was the last.
            #expect(
                try await connection.int("select count(*) from \(culprit) and number & 4 <> 0 and outcome in (3, 7)")
                    == 2)
            #expect(
                try await connection.value("select error from \(culprit) and outcome = 3")?.contains("quarantined")
                    == true)
            for worker in workers { await worker.end() }
            await connection.close()
        }
    }

    @Test func `a worker frozen for a minute cannot finish what others have done meanwhile`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let frozen = try await MillraceProcess.worker("frozen", database: database.url, slots: 50)
            try await connection.run(
                "select millrace.enqueue_bulk('practice.sleep', array(select '{\"ms\": 10000}' from generate_series(1, 50)))"
            )
            try await eventually("all 50 run") { try await connection.int("select running from millrace.beat") == 50 }
            frozen.signal(SIGSTOP)
            let other = try await MillraceProcess.worker("other", database: database.url, slots: 50)
            try await Task.sleep(for: .seconds(60))
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 50)
            frozen.signal(SIGCONT)
            try await eventually("the late ends are reported: \(frozen.output)") {
                frozen.output.contains("refused") && frozen.output.contains("taken for dead")
            }
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 50)
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 7") == 50)
            try await eventually(
                "the thawed worker is back under a new session; it says: \(frozen.output.suffix(1500))"
            ) {
                try await connection.int("select count(*) from millrace.session") == 2
            }
            for worker in [frozen, other] { worker.signal(SIGTERM) }
            for worker in [frozen, other] { #expect(try await worker.ended() == 0) }
            await connection.close()
        }
    }

    /// 1. A claim's connection is lost. 2. The worker asks what it holds: nothing. 3. The server executes the claim after all.
    @Test func `a claim that is carried out after its connection was lost is handed back, and its job runs`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("only", database: database.url)
            try await connection.run(
                """
                begin;
                select millrace.enqueue('practice.sleep', '{"ms": 1}');
                with gone as (delete from millrace.ready returning job)
                insert into millrace.lease (session, number, at, n, lo, hi, ids)
                select (select id from millrace.session), 9, now(), 1, job, job, array[job] from gone;
                commit
                """)
            try await eventually("the job has run") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 1
            }
            #expect(try await connection.int("select count(*) from millrace.lease where number = 9") == 0)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}
