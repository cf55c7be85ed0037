import Clusters
import Foundation
import Postgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The real executable's answers over HTTP.
@Suite struct HTTPTests {
    private static let token = "a-token-of-some-length"

    /// 0 when nobody answers.
    private func get(_ port: Int, _ path: String, token: String? = nil) async -> (status: Int, body: String) {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { return (0, "") }
        var request = URLRequest(url: url, timeoutInterval: 10)
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        guard let (data, response) = try? await URLSession.shared.data(for: request) else { return (0, "") }
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
    }

    @Test func `a worker says that it lives, and whether it is ready, whatever becomes of the database`() async throws {
        try await withCluster { cluster in
            let connection = try await Connection.open(ConnectionOptions(location: cluster.url()))
            let port = try freePort()
            let migrated = try MillraceProcess(["migrate", "--rooms", "all"], database: cluster.url())
            #expect(try await migrated.ended() == 0)
            await connection.close()
            let worker = try await MillraceProcess.worker(
                "http", database: cluster.url(), ["--listen", "127.0.0.1:\(port)"],
                environment: ["MILLRACE_TOKEN": Self.token])
            try await eventually("it is ready") { await get(port, "/readyz").status == 200 }
            #expect(await get(port, "/livez").status == 200)
            #expect(await get(port, "/metrics").status == 401)
            let metrics = await get(port, "/metrics", token: Self.token)
            #expect(metrics.status == 200 && metrics.body.contains("\nmillrace_worker_ready 1\n"))
            #expect(metrics.body.contains("millrace_http_requests_total{status=\"4xx\"} 1\n"))
            try await cluster.stop(.fast, deadline: .seconds(60))
            try await eventually("it knows that the database is unreachable") {
                let answer = await get(port, "/readyz")
                return answer.status == 503 && answer.body.contains("cut off from the database")
            }
            #expect(await get(port, "/livez").status == 200)
            _ = try await cluster.start(deadline: .seconds(120))
            try await eventually("it is ready again") { await get(port, "/readyz").status == 200 }
            #expect(!worker.output.contains(Self.token))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            #expect(await get(port, "/livez").status == 0)
        }
    }

    @Test func `while it drains it answers, and is not ready`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "http", database: database.url, ["--listen", "127.0.0.1:\(port)"])
            try await connection.run(#"select millrace.enqueue('practice.sleep', '{"ms": 8000}')"#)
            try await eventually("it runs") { await get(port, "/metrics").body.contains("jobs_running 1\n") }
            worker.signal(SIGTERM)
            try await eventually("it says that it drains") {
                let answer = await get(port, "/readyz")
                return answer.status == 503 && answer.body.contains("draining")
            }
            #expect(await get(port, "/livez").status == 200)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    @Test func `an address that is taken stops a worker only if it was asked for`() async throws {
        try await withDatabase { database in
            let place = "127.0.0.1:\(try freePort())"
            let first = try await MillraceProcess.worker("first", database: database.url, ["--listen", place])
            let second = try await MillraceProcess.worker(
                "second", database: database.url, environment: ["MILLRACE_LISTEN": place])
            #expect(second.output.contains("the listen address is in use") && second.isRunning)
            let third = try MillraceProcess(["worker", "--practice", "--listen", place], database: database.url)
            #expect(try await third.ended() == 1)
            #expect(third.output.contains("\(place) is taken by another process"))
            let open = try MillraceProcess(["worker", "--practice", "--listen", "0.0.0.0:0"], database: database.url)
            #expect(try await open.ended() == 2)
            #expect(open.output.contains("there is no token") && open.output.contains("MILLRACE_TOKEN"))
            for worker in [first, second] {
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0)
            }
        }
    }

    @Test func `a worker's metrics tell of jobs by queue and kind, and its log of mail that reaches nobody`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('practice.nothing', queue => 'some'),
                       millrace.enqueue('practice.nothing', queue => 'some', run_at => now() + interval '1 day')
                """)
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "metrics", database: database.url, ["--listen", "127.0.0.1:\(port)", "--build", "abc123"])
            try await eventually("its run is counted") {
                let page = await get(port, "/metrics").body
                return page.contains(
                    "millrace_worker_runs_total{queue=\"some\",kind=\"practice.nothing\",outcome=\"succeeded\"} 1\n")
                    && page.contains("millrace_jobs{queue=\"some\",kind=\"practice.nothing\",state=\"scheduled\"} 1\n")
                    && page.contains(
                        "millrace_worker_run_duration_seconds_count{queue=\"some\",kind=\"practice.nothing\"} 1\n")
            }
            let line = worker.output.split(separator: "\n").first { $0.contains("no mail service is configured") }
            #expect(try #require(line).lowercased().contains("warn"), "\(worker.output)")
            #expect(try await connection.value("select version from millrace.workers") == "0.2.0+abc123")
            #expect(try await connection.value("select rooms ->> 'mail' from millrace.session") == "files")
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            let chosen = try await MillraceProcess.worker(
                "files", database: database.url, environment: ["EMAIL_SERVICE_PROVIDER": "outbox"])
            #expect(!chosen.output.contains("no mail service is configured"))
            #expect(try await connection.value("select rooms ->> 'mail' from millrace.session") == "outbox")
            chosen.signal(SIGTERM)
            #expect(try await chosen.ended() == 0)
            await connection.close()
        }
    }
}
