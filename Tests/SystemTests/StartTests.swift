import MillraceJobs
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@Suite struct StartTests {
    /// 1. A caller makes the kind b. 2. A worker makes a, and waits for b. 3. The caller needs a: were it not for good yet, Postgres would undo one of
    /// the two. So for the queue.
    @Test(arguments: ["", "select millrace.register_queues('{default}');"])
    func `a caller who names new kinds in any order does not fail for a worker that starts`(before: String) async throws
    {
        try await withDatabase { database in
            let caller = try await database.connect()
            let other = try await database.connect()
            try await caller.run("set deadlock_timeout = '10ms'; \(before) commit; begin; select millrace.enqueue('b')")
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: ["a", "b"].map { Handler(kind: $0) { _, _ in .done } }, log: .silent)
            let running = Task { try await worker.run() }
            try await eventually("the worker waits for what the caller has named") {
                try await other.bool(
                    "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%millrace.register_%' and datname = current_database())"
                )
            }
            try await caller.run("select millrace.enqueue('a'); commit")
            try await eventually("both jobs have run") {
                try await other.int("select count(*) from millrace.history where outcome = 1") == 2
            }
            #expect(
                try await other.column(
                    "select k.name from millrace.route r join millrace.kind k on k.id = r.kind order by 1")
                    == ["a", "b"])
            worker.drain()
            #expect(try await running.value.finished == 2)
            for connection in [caller, other] { await connection.close() }
        }
    }
}
