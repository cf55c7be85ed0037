import Clusters
import Foundation
import Postgres
import Queues
import TestSupport
import Testing

@Suite struct OutageTests {
    @Test(arguments: [Cluster.Stop.fast, .immediate])
    func `workers survive a database that is away for 40 seconds, and finish what ran`(how: Cluster.Stop) async throws {
        try await withCluster(settings: ["fsync": "on"]) { cluster in
            var connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            _ = try await Migrator().migrate(on: connection)
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
            try await eventually("all 3200 have ended", within: .seconds(60)) {
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
                    worker.output.components(separatedBy: "the database is away").count == 2,
                    "it says so once: \(worker.output)")
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0)
            }
            await connection.close()
        }
    }
}
