import Foundation
import Postgres
import Synchronization
import Telemetry
import TestSupport
import Testing
import Workers

@testable import MillraceJobs

@Suite struct StepProcessTests {
    /// 1. A worker records steps 1 and 2, and is killed in the middle of step 3. 2. Another rescues the job, and does 3 and 4.
    @Test func `what a killed worker has recorded is not done again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let victim = try await MillraceProcess.worker("victim", database: database.url)
            let id = try await connection.int(
                "select millrace.enqueue('practice.steps', '{\"steps\": 4, \"ms\": 3000}')")
            try await eventually("two steps are recorded, and the third runs") {
                try await connection.int("select count(*) from millrace.step") == 2
                    && victim.output.contains("step 3 runs")
            }
            victim.signal(SIGKILL)
            let other = try await MillraceProcess.worker("other", database: database.url)
            let watch = try MillraceProcess(["jobs", "watch", "\(id)", "--timeout", "60s"], database: database.url)
            #expect(try await watch.ended(within: .seconds(600)) == 0)
            #expect(
                watch.output.contains("75 %, step 4: 4 of 4") && watch.output.contains("succeeded"), "\(watch.output)")
            // The logs of both processes are the ledger: each step that was recorded ran once, the one cut short twice.
            let ledger = (victim.output + other.output).split(separator: "\n")
            #expect((1...4).map { n in ledger.count { $0.contains("step \(n) runs") } } == [1, 1, 2, 1])
            #expect(
                try await connection.value("select result from millrace.job(\(id))")
                    == #"{"ran": [3, 4], "sum": 10, "steps": 4}"#)
            #expect(
                try await connection.column(
                    "select name || ' ' || (session = (select max(session) from millrace.step where name = 'step-1')) from millrace.steps(\(id)) join millrace.step using (name) order by 1"
                )
                    == ["step-1 true", "step-2 true", "step-3 false", "step-4 false"])
            other.signal(SIGTERM)
            #expect(try await other.ended() == 0)
            await connection.close()
        }
    }

    @Test func `a caller waits for a result, and is told it`() async throws {
        try await withDatabase { database in
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let caller = try MillraceProcess(
                ["enqueue", "practice.steps", "{\"steps\": 3, \"ms\": 20}", "--wait"], database: database.url)
            #expect(try await caller.ended() == 0)
            #expect(caller.output.contains(#"{"ran": [1, 2, 3], "sum": 6, "steps": 3}"#), "\(caller.output)")
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
        }
    }

    /// The effect and its record in the handler's own transaction: a ledger that has each step once, whatever happens.
    @Test func `a run whose lease was taken is told so by its next step, and stops`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("create table public.ledger (step text)")
            let pool = Pool(database.options, size: 4)
            let stopped = Mutex<(error: String, reason: CancelReason?)?>(nil)
            let phase = Mutex(0)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "ledger") { _, context in
                        let token = context.token
                        for step in ["one", "two"] {
                            if step == "two" {
                                phase.withLock { $0 = 1 }
                                try await eventually("the lease is gone") { phase.withLock { $0 } == 2 }
                            }
                            do {
                                try await context.step(step) {
                                    try await pool.withConnection { connection throws(PostgresError) in
                                        try await connection.transaction { connection throws(PostgresError) in
                                            try await connection.execute(
                                                "insert into public.ledger values ($1)", [.text(step)])
                                            try await connection.execute(
                                                "select millrace.step($1, $2)", [.text(token), .text(step)])
                                        }
                                    }
                                }
                            } catch let error as PostgresError where error.sqlState == "55000" {
                                // Its own transaction was refused; the next record of the library's own tells the worker.
                                do { try await context.step("three") {} } catch {
                                    stopped.withLock { $0 = ("\(error)", context.cancelReason) }
                                    throw error
                                }
                            }
                        }
                        return .done
                    }
                ], log: .silent)
            let running = Task { try await worker.run() }
            let id = try await connection.int("select millrace.enqueue('ledger')")
            try await eventually("the first step is recorded") { phase.withLock { $0 } == 1 }
            // Somebody takes the lease, as a rescuer does: only the lease, so that the worker learns of it by its step.
            try await connection.run("delete from millrace.lease")
            phase.withLock { $0 = 2 }
            try await eventually("the run has been told") { stopped.withLock { $0 != nil } }
            let end = stopped.withLock { $0 }
            #expect(end?.reason == .leaseLost && end?.error.contains("lease is lost") == true)
            #expect(try await connection.column("select step from public.ledger") == ["one"])
            #expect(try await connection.column("select name from millrace.steps(\(id))") == ["one"])
            worker.drain()
            #expect(try await running.value.refused == 1)
            await pool.close()
            await connection.close()
        }
    }

    @Test func `a cancel in the middle of a step records nothing of it, and a redrive does it again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let runs = Mutex(0)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "long") { _, context in
                        try await context.step("first") {}
                        try await context.step("second") {
                            let run = runs.withLock { runs in
                                runs += 1
                                return runs
                            }
                            if run == 1 { try await Task.sleep(for: .seconds(600)) }
                        }
                        return .done
                    }
                ], log: .silent)
            let running = Task { try await worker.run() }
            let id = try await connection.int("select millrace.enqueue('long')")
            try await eventually("the second step runs") { runs.withLock { $0 } == 1 }
            try await connection.run("select millrace.cancel(\(id))")
            try await eventually("it is cancelled") {
                try await connection.value("select state from millrace.job(\(id))") == "cancelled"
            }
            #expect(try await connection.column("select name from millrace.steps(\(id))") == ["first"])
            try await connection.run("select millrace.retry(\(id))")
            try await eventually("it has succeeded") {
                try await connection.value("select state from millrace.job(\(id))") == "succeeded"
            }
            #expect(runs.withLock { $0 } == 2)
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }

    @Test func `what was reported is there when the end is, and the process's log has every line`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let said = Mutex<[String]>([])
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "talks") { _, context in
                        for n in 1...300 {
                            context.log("line \(n)", .error)
                            context.progress(Double(n) / 300)
                        }
                        try context.result(300)
                        return .done
                    },
                    Handler(kind: "silent") { _, _ in .done },
                ],
                log: Log(threshold: .error) { line in said.withLock { $0.append(line.message) } })
            let running = Task { try await worker.run() }
            try await connection.run(
                "select millrace.enqueue_bulk('silent', array(select '{}' from generate_series(1, 50)))")
            let ids = try await connection.column("select millrace.enqueue('talks') from generate_series(1, 20)")
            for id in ids {
                var first: String?
                try await eventually("job \(id) has ended") {
                    // One statement: the end and what is there with it.
                    first = try await connection.records(
                        """
                        select progress -> 'fraction', result, (select min(n) || '-' || max(n) from millrace.logs(\(id)))
                          from millrace.job(\(id)) where state = 'succeeded'
                        """
                    ).first
                    return first != nil
                }
                #expect(first == "(1,300,101-300)")
            }
            #expect(said.withLock { lines in lines.count { $0 == "line 7" } } == 20)
            worker.drain()
            _ = try await running.value
            #expect(try await connection.int("select count(*) from millrace.progress") == 20)
            await connection.close()
        }
    }

    @Test func `without the database steps wait, and what was reported comes later`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let phase = Mutex(0)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "patient") { _, context in
                        try await context.step("before") {}
                        phase.withLock { $0 = 1 }
                        try await eventually("the connections are cut") { phase.withLock { $0 } == 2 }
                        context.log("said without a connection")
                        try await context.step("after") {}
                        return .done
                    }
                ], log: .silent)
            let running = Task { try await worker.run() }
            let id = try await connection.int("select millrace.enqueue('patient')")
            try await eventually("the first step is recorded") { phase.withLock { $0 } == 1 }
            try await connection.run(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
            phase.withLock { $0 = 2 }
            try await eventually("it has succeeded") {
                try await connection.value("select state from millrace.job(\(id))") == "succeeded"
            }
            #expect(try await connection.column("select name from millrace.steps(\(id))") == ["before", "after"])
            try await eventually("the line has come") {
                try await connection.column("select line from millrace.logs(\(id))") == ["said without a connection"]
            }
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }

    /// It would come back for ever, for nothing of it changes; and its neighbours in the flush must not suffer.
    @Test func `a result that the database cannot keep makes its job dead, and no other`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "bad") { _, context in
                        // half a character: no Swift text has it, other encoders may
                        context.keep(Array(#""\ud800""#.utf8))
                        return .done
                    },
                    Handler(kind: "good") { _, context in
                        try context.result(1)
                        return .done
                    },
                ], log: .silent)
            try await connection.run(
                "select millrace.enqueue(case n % 5 when 0 then 'bad' else 'good' end) from generate_series(1, 20) n")
            let running = Task { try await worker.run() }
            try await eventually("all have ended") {
                try await connection.int("select count(*) from millrace.history where outcome in (1, 3)") == 20
            }
            worker.drain()
            _ = try await running.value
            #expect(
                try await connection.records(
                    "select state, count(*), count(result) from millrace.jobs group by 1 order by 1")
                    == ["(dead,4,0)", "(succeeded,16,16)"])
            #expect(
                try await connection.column("select distinct error from millrace.history where outcome = 3").first?
                    .contains("its result could not be kept") == true)
            #expect(try await connection.int("select count(*) from millrace.history") == 20)
            await connection.close()
        }
    }
}
