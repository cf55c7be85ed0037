import MillraceJobs
import Postgres
import Synchronization
import Telemetry
import TestSupport
import Testing
import Workers

@Suite struct UniqueKeyTests {
    /// 1. The job runs. 2. Two replacements arrive: one successor. 3. The job ends. 4. The successor runs, with the last of them.
    @Test func `a real worker runs what replaced a running job right after it, once, and the last of it`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let ran = Mutex<[String]>([])
            let gate = Gate()
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "page") { args, _ in
                        ran.withLock { $0.append(String(decoding: args, as: UTF8.self)) }
                        try await gate.pass()
                        return .done
                    }
                ], log: .silent)
            let running = Task { try await worker.run() }
            func put(_ args: Int) async throws -> Int {
                try await connection.int(
                    "select millrace.enqueue('page', '\(args)', unique_key => 'home', on_conflict => 'replace')")
            }
            let first = try await put(1)
            try await eventually("it runs") { ran.withLock { $0.count } == 1 }
            let next = try await put(2)
            #expect(next != first)
            #expect(try await put(3) == next)
            #expect(try await connection.value("select state from millrace.job(\(next))") == "blocked")
            gate.open()
            try await eventually("both have ended") {
                try await connection.int("select count(*) from millrace.jobs where state = 'succeeded'") == 2
            }
            // A job far in the future that is wanted now wakes the worker.
            _ = try await connection.int(
                "select millrace.enqueue('page', '4', unique_key => 'later', run_at => now() + interval '1 day')")
            _ = try await connection.int(
                "select millrace.enqueue('page', '5', unique_key => 'later', on_conflict => 'replace')")
            try await eventually("it has run") { ran.withLock { $0.count } == 3 }
            worker.drain()
            let report = try await running.value
            #expect(report.finished == 3)
            #expect(ran.withLock { $0 } == ["1", "3", "5"])
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
            await connection.close()
        }
    }
}
