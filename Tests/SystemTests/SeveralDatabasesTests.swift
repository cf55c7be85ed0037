import Clusters
import Foundation
import MillraceJobs
import MillraceQueues
import Postgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One process that serves several databases.
@Suite struct SeveralDatabasesTests {
    private func get(_ port: Int, _ path: String) async -> (status: Int, body: String) {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { return (0, "") }
        let request = URLRequest(url: url, timeoutInterval: 10)
        guard let (data, response) = try? await URLSession.shared.data(for: request) else { return (0, "") }
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
    }

    private static func environment(_ databases: [(name: String, url: String)]) -> [String: String] {
        [
            "DATABASE_URL": "",
            "MILLRACE_DATABASES": databases.map { "\($0.name)=\($0.url)" }.joined(separator: ", "),
        ]
    }

    @Test func `the outage of one database is its own, and it is served again when it is back`() async throws {
        try await withDatabase { eu in
            try await withCluster { cluster in
                let here = try await eu.connect()
                var there = try await Connection.open(ConnectionOptions(location: cluster.url()))
                _ = try await Migrator.asTested().migrate(on: there)
                let port = try freePort()
                let worker = try await MillraceProcess.worker(
                    "several", database: "", slots: 4, ["--listen", "127.0.0.1:\(port)"],
                    environment: Self.environment([("eu", eu.url), ("us", cluster.url())]))
                try await eventually("both are ready; it says: \(worker.output)") {
                    await get(port, "/readyz").body.components(separatedBy: #""ready":true"#).count == 4
                }
                try await here.run("select millrace.enqueue('practice.nothing') from generate_series(1, 20)")
                try await there.run("select millrace.enqueue('practice.nothing') from generate_series(1, 20)")
                let ended = "select count(*) from millrace.history where outcome = 1"
                try await eventually("the jobs of both have run; it says: \(worker.output)") {
                    let first = try await here.int(ended)
                    let second = try await there.int(ended)
                    return first == 20 && second == 20
                }
                let metrics = await get(port, "/metrics").body
                #expect(metrics.contains("\nmillrace_worker_ready{database=\"eu\"} 1\n"), "\(metrics)")
                #expect(metrics.contains("\nmillrace_worker_ready{database=\"us\"} 1\n"))
                #expect(metrics.components(separatedBy: "# TYPE millrace_worker_ready ").count == 2)
                #expect(metrics.contains("\nmillrace_http_connections "))

                await there.close()
                try await cluster.stop(.fast, deadline: .seconds(60))
                try await eventually("it says which one is away") {
                    let answer = await get(port, "/readyz")
                    return answer.status == 200 && answer.body.contains(#""us":{"ready":false,"reason":"cut off"#)
                }
                try await here.run("select millrace.enqueue('practice.nothing') from generate_series(1, 20)")
                try await eventually("the other's jobs run") { try await here.int(ended) == 40 }
                _ = try await cluster.start(deadline: .seconds(120))
                there = try await Connection.open(ConnectionOptions(location: cluster.url()))
                try await there.run("select millrace.enqueue('practice.nothing') from generate_series(1, 20)")
                try await eventually("it works there again; it says: \(worker.output)", within: .seconds(60)) {
                    try await there.int(ended) == 40
                }
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0, "\(worker.output)")
                #expect(worker.output.contains("80 finished"), "\(worker.output)")
                let open = "select count(*) from millrace.process where ended_at is null"
                #expect(try await here.int(open) == 0)
                #expect(try await there.int(open) == 0)
                await here.close()
                await there.close()
            }
        }
    }

    private static func migrateAndStop(_ cluster: Cluster) async throws {
        let there = try await Connection.open(ConnectionOptions(location: cluster.url()))
        _ = try await Migrator.asTested().migrate(on: there)
        await there.close()
        try await cluster.stop(.fast, deadline: .seconds(60))
    }

    @Test func `a database that is away at the start holds up no other, and joins them`() async throws {
        try await withDatabase { eu in
            try await withCluster { cluster in
                try await Self.migrateAndStop(cluster)
                let here = try await eu.connect()
                let worker = try await MillraceProcess.worker(
                    "several", database: "", slots: 4,
                    environment: Self.environment([("us", cluster.url()), ("eu", eu.url)]))
                try await here.run("select millrace.enqueue('practice.nothing')")
                let ended = "select count(*) from millrace.history where outcome = 1"
                try await eventually("the job has run; it says: \(worker.output)") { try await here.int(ended) == 1 }
                #expect(worker.output.contains("this database cannot be served now"), "\(worker.output)")
                _ = try await cluster.start(deadline: .seconds(120))
                let back = try await Connection.open(ConnectionOptions(location: cluster.url()))
                try await back.run("select millrace.enqueue('practice.nothing')")
                try await eventually("the other's has, too; it says: \(worker.output)", within: .seconds(60)) {
                    try await back.int(ended) == 1
                }
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0)
                await here.close()
                await back.close()
            }
        }
    }

    @Test func `slots go where the jobs are, and never are there more`() async throws {
        try await withDatabase { eu in
            try await withDatabase { us in
                let (here, there) = (try await eu.connect(), try await us.connect())
                let worker = try await MillraceProcess.worker(
                    "several", database: "", slots: 8,
                    environment: Self.environment([("eu", eu.url), ("us", us.url)]))
                let sleep = #"select millrace.enqueue('practice.sleep', '{"ms": 600000}') from generate_series(1, 20)"#
                func runs(_ connection: Connection) async throws -> Int {
                    try await connection.int("select coalesce(sum(running), 0)::int from millrace.workers")
                }
                try await here.run(sleep)
                try await eventually("all but one of the slots; it says: \(worker.output)") {
                    try await runs(here) == 7
                }
                try await there.run(sleep)
                try await eventually("the other begins at once") { try await runs(there) == 1 }
                #expect(try await runs(here) == 7)
                // Those that are cancelled make room: the one with fewer gets it until both have the same.
                try await here.run(
                    "select millrace.cancel(id) from millrace.jobs where state = 'running' order by id limit 3")
                try await eventually("both have the same; it says: \(worker.output)") {
                    let (first, second) = (try await runs(here), try await runs(there))
                    return first == 4 && second == 4
                }
                worker.signal(SIGTERM)
                worker.signal(SIGTERM)
                _ = try await worker.ended()
                await here.close()
                await there.close()
            }
        }
    }

    @Test func `one console shows all of them, and starts while one is away`() async throws {
        try await withDatabase { eu in
            try await withCluster { cluster in
                try await Self.migrateAndStop(cluster)
                let port = try freePort()
                let console = try MillraceProcess(
                    ["console", "--listen", "127.0.0.1:\(port)"], database: "",
                    environment: Self.environment([("us", cluster.url()), ("eu", eu.url)]))
                try await eventually("the start page is there; it says: \(console.output)") {
                    await get(port, "/console").status == 200
                }
                let page = await get(port, "/console").body
                #expect(page.contains("/console/us") && page.contains("the database cannot be reached"), "\(page)")
                #expect(await get(port, "/console/eu").body.contains("· eu · Millrace</title>"))
                #expect(await get(port, "/console/us/jobs").status == 503)
                _ = try await cluster.start(deadline: .seconds(120))
                try await eventually("its pages are there again") { await get(port, "/console/us/jobs").status == 200 }
                try await eventually("and its line") {
                    await !get(port, "/console").body.contains("the database cannot be reached")
                }
                console.signal(SIGTERM)
                #expect(try await console.ended() == 0, "\(console.output)")
            }
        }
    }
}
