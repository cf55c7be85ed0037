import Clusters
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

/// A server whose connections are nearly all in use.
@Suite struct ConnectionShortageTests {
    /// 1. Five connections are free, fewer than a worker needs. 2. A worker starts. 3. The others go.
    @Test func `a worker that cannot end jobs takes none, says why, and starts once it can`() async throws {
        try await withCluster(settings: ["max_connections": "16", "superuser_reserved_connections": "1"]) { cluster in
            let options = ConnectionOptions(location: cluster.url())
            let observer = try await Connection.open(options, name: "observer")
            _ = try await Migrator.ofAllRooms().migrate(on: observer)
            try await observer.run("select millrace.enqueue('test') from generate_series(1, 200)")
            var others: [Connection] = []
            while let one = try? await Connection.open(options, name: "other") { others.append(one) }
            for _ in 0..<5 { await others.removeLast().close() }
            try await eventually("five connections are free") {
                try await observer.int("select count(*) from pg_stat_activity where backend_type = 'client backend'")
                    == others.count + 1
            }

            let worker = JobWorker(
                options: JobWorker.Options(database: options, name: "one"),
                handlers: [Handler(kind: "test") { _, _ in .done }], log: .silent)
            let running = Task { try await worker.run() }
            try await eventually("it says why it does not start") { worker.health.refusal != nil }
            #expect(!worker.health.hasStarted)
            #expect(worker.health.refusal?.contains("too many clients") == true, "\(worker.health.refusal ?? "-")")
            #expect(try await observer.int("select count(*) from millrace.lease") == 0)
            #expect(try await observer.int("select count(*) from millrace.session") == 0)

            for other in others { await other.close() }
            try await eventually("all have ended") {
                try await observer.int("select count(*) from millrace.history where outcome = 1") == 200
            }
            #expect(worker.health.hasStarted && worker.health.refusal == nil)
            worker.drain()
            #expect(try await running.value.finished == 200)
            await observer.close()
        }
    }
}
