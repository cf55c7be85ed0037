import Clusters
import Foundation
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@Suite struct OutageTests {
    @Test(arguments: [Cluster.Stop.fast, .immediate])
    func `workers survive a database that is away for 40 seconds, and finish what ran`(how: Cluster.Stop) async throws {
        try await withCluster(settings: ["fsync": "on"]) { cluster in
            var connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            _ = try await Migrator.asTested().migrate(on: connection)
            let workers = [
                try await MillraceProcess.worker("one", database: cluster.url(), slots: 150),
                try await MillraceProcess.worker("two", database: cluster.url(), slots: 150),
            ]
            try await connection.run(
                """
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 20000}' from generate_series(1, 100)));
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 50000}' from generate_series(1, 100)));
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 20}' from generate_series(1, 3000)))
                """)
            try await eventually("200 long ones run, and the short ones are under way") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") > 50
            }
            await connection.close()
            try await cluster.stop(how, deadline: .seconds(30))
            try await Task.sleep(for: .seconds(40))
            _ = try await cluster.start(deadline: .seconds(60))
            connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            try await eventually("all 3200 have ended", within: .seconds(240)) {
                try await connection.int("select count(distinct id) from millrace.history where outcome = 1") == 3200
            }
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 3200)
            #expect(
                try await connection.int("select count(*) from millrace.history where crashes > 0 or outcome = 7") == 0)
            #expect(
                try await connection.column("select distinct attempt from millrace.history where outcome = 1") == ["1"])
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
            #expect(try await connection.int("select count(*) from millrace.process") == 2)
            for worker in workers {
                #expect(
                    worker.output.components(separatedBy: "the database is unreachable").count == 2,
                    "it says so once: \(worker.output)")
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0)
            }
            await connection.close()
        }
    }

    /// The limit is a second here, and twenty in life.
    @Test func `a kind that is strict about it is cancelled while its worker is cut off, and others go on`()
        async throws
    {
        try await withCluster { cluster in
            let options = ConnectionOptions(location: cluster.url())
            var connection = try await Connection.open(options)
            _ = try await Migrator.asTested().migrate(on: connection)
            let seen = Seen()
            let gate = Gate()
            var workerOptions = JobWorker.Options(database: options, name: "one")
            workerOptions.cutOffAfter = .seconds(1)
            let worker = JobWorker(
                options: workerOptions,
                handlers: [
                    Handler(kind: "strict", whenCutOff: .cancel) { _, context in
                        if await seen.count("strict") > 1 { return .done }
                        do {
                            try await Task.sleep(for: .seconds(60))
                        } catch {
                            await seen.note("\(context.cancelReason?.rawValue ?? "no reason")")
                            throw error
                        }
                        return .done
                    },
                    Handler(kind: "optimistic") { _, _ in
                        _ = await seen.count("optimistic")
                        try await gate.pass()
                        return .done
                    },
                ], log: .silent)
            let running = Task { try await worker.run() }
            try await connection.run("select millrace.enqueue('strict'); select millrace.enqueue('optimistic')")
            try await eventually("both run") { await seen.all == ["strict": 1, "optimistic": 1] }
            await connection.close()
            try await cluster.stop(.fast, deadline: .seconds(30))
            try await eventually("the strict one is cancelled") { await seen.notes == ["cut off"] }
            _ = try await cluster.start(deadline: .seconds(60))
            gate.open()
            connection = try await Connection.open(options)
            try await eventually("both have succeeded") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 2
            }
            // The strict one ran again without an attempt used up; the other one never knew.
            #expect(await seen.runs("strict") == 2)
            #expect(await seen.runs("optimistic") == 1)
            #expect(
                try await connection.column("select distinct attempt || '/' || crashes from millrace.history") == [
                    "1/0"
                ])
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }
}

/// What the handlers of a test have seen.
private actor Seen {
    private var counts: [String: Int] = [:]
    private(set) var notes: [String] = []

    func count(_ kind: String) -> Int {
        counts[kind, default: 0] += 1
        return counts[kind] ?? 0
    }

    var all: [String: Int] { counts }
    func runs(_ kind: String) -> Int { counts[kind] ?? 0 }
    func note(_ text: String) { notes.append(text) }
}
