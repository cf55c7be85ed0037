import Clusters
import Fakes
import Millrace
import MillraceQueues
import Postgres
import Synchronization
import TestSupport
import Testing

private struct Slow: Job {
    static let kind = "slow"
}

@Suite struct WorkerCancellationTests {
    @Test func `a cancelled run lets its jobs end, gives the rest back and closes its session`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let gate = Gate()
            let worker = Worker(database: .url(database.url), slots: 3, log: .silent)
            worker.handle(Slow.self) { _, _ in
                try await gate.pass()
                return .done
            }
            try await connection.run("select millrace.enqueue('slow') from generate_series(1, 10)")
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("three run") { gate.arrivals == 3 }
            running.cancel()
            try await eventually("it says that it drains") {
                try await connection.value("select state from millrace.beat") == "draining"
            }
            gate.open()
            let report = try await running.value
            #expect(report.finished >= 3 && report.abandoned == 0 && report.unrecorded == 0, "\(report)")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.process where ending is distinct from 'stopped'") == 0)
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt > 0 or crashes > 0") == 0)
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.ready) + (select count(*) from millrace.history where outcome = 1)"
                ) == 10)
            await connection.close()
        }
    }

    @Test func `a run whose drain is over cancels its handlers, whatever ended it`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let gate = Gate()
            let worker = Worker(database: .url(database.url), slots: 2, drainTimeout: .milliseconds(50), log: .silent)
            worker.handle(Slow.self) { _, _ in
                try await gate.pass()
                return .done
            }
            try await connection.run("select millrace.enqueue('slow')")
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("it runs") { gate.arrivals == 1 }
            running.cancel()
            let report = try await running.value
            #expect(report.handedBack == 1 && report.abandoned == 0, "\(report)")
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt = 0 and crashes = 0") == 1)
            #expect(
                try await connection.int(
                    "select count(*) from millrace.process where ending is distinct from 'stopped'") == 0)
            await connection.close()
        }
    }

    @Test func `a run that is cancelled before it has found its database ends`() async throws {
        let worker = Worker(database: .url("postgresql://127.0.0.1:1/nowhere"), log: .silent)
        worker.handle(Slow.self) { _, _ in .done }
        let running = Task { try await worker.run(handlesSignals: false) }
        try await Task.sleep(for: .milliseconds(20))
        running.cancel()
        let report = try await running.value
        #expect(report.finished + report.handedBack + report.abandoned + report.unrecorded == 0, "\(report)")
    }

    @Test func `a server that takes connections and says nothing holds up no cancellation`() async throws {
        let server = try RawServer { $0.waitForEnd() }
        defer { server.stop() }
        let worker = Worker(
            database: .url("postgresql://127.0.0.1:\(server.port)/x?sslmode=disable"), log: .silent)
        worker.handle(Slow.self) { _, _ in .done }
        let running = Task { try await worker.run(handlesSignals: false) }
        try await eventually("it has connected") { server.accepted > 0 }
        let began = ContinuousClock.now
        running.cancel()
        _ = try await running.value
        // The wait for an answer would be ten seconds.
        #expect(began.duration(to: .now) < .seconds(8))
    }

    @Test func `a database that goes away for good holds a cancelled run no longer than its drain`() async throws {
        try await withCluster { cluster in
            let connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            _ = try await Migrator.asTested().migrate(on: connection)
            try await connection.run("select millrace.enqueue('slow') from generate_series(1, 10)")
            await connection.close()
            let gate = Gate()
            let worker = Worker(database: .url(cluster.url()), slots: 3, drainTimeout: .milliseconds(100), log: .silent)
            worker.handle(Slow.self) { _, _ in
                try await gate.pass()
                return .done
            }
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("three run") { gate.arrivals == 3 }
            try await cluster.stop(.immediate, deadline: .seconds(60))
            running.cancel()
            // It would never end, as the database does not come back.
            let report = try await running.value
            #expect(report.finished == 0 && report.unrecorded > 0, "\(report)")
        }
    }
}
