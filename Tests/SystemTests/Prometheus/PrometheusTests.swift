import Foundation
import Health
import MillraceCommand
import Postgres
import Supervision
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The page of a real worker, read by Debian's Prometheus; rules and dashboard, checked by its own tool.
@Suite struct PrometheusTests {
    private static let token = "a-token-of-some-length"
    private static let missing: Comment =
        "SKIPPED: Prometheus is not there to read our metrics; apt-get install prometheus"

    private func page(_ port: Int) async -> String? {
        guard let url = URL(string: "http://127.0.0.1:\(port)/metrics") else { return nil }
        var request = URLRequest(url: url, timeoutInterval: 10)
        request.setValue("Bearer \(Self.token)", forHTTPHeaderField: "Authorization")
        guard let (data, response) = try? await URLSession.shared.data(for: request),
            (response as? HTTPURLResponse)?.statusCode == 200
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private func worker(_ port: Int, _ database: TestDatabase) async throws -> MillraceProcess {
        try await MillraceProcess.worker(
            "prometheus", database: database.url, ["--listen", "127.0.0.1:\(port)"],
            // Its collector is away: the counts of spans are there.
            environment: ["MILLRACE_TOKEN": Self.token, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"])
    }

    @Test func `rules and dashboard ask only for metrics and labels that the guide has`() throws {
        let known = try MetricsGuide.metrics()
        let expressions = try MetricsGuide.ruleExpressions() + MetricsGuide.dashboardExpressions()
        #expect(expressions.count > 90 && known.count > 80)
        for expression in expressions {
            let (metrics, groups) = MetricsGuide.uses(of: expression)
            // The last one where a worker has several databases.
            let ofAll: Set<String> = ["job", "instance", "database"]
            var labels = ofAll
            for metric in metrics {
                let base = metric.name.replacing(/_(?:bucket|sum|count)$/, with: "")
                let own = known[metric.name] ?? (metric.name.hasSuffix("_seconds_bucket") ? known[base] : nil)
                guard let own else {
                    Issue.record("nobody prints \(metric.name): \(expression)")
                    continue
                }
                labels.formUnion(own)
                if metric.name != base { labels.insert("le") }
                #expect(metric.labels.isSubset(of: own.union(ofAll)), "\(metric) in \(expression)")
            }
            #expect(groups.isSubset(of: labels), "\(groups) in \(expression)")
        }
    }

    @Test(.enabled(if: PrometheusServer.isThere, missing))
    func `Prometheus takes the rules, their tests, the examples and every expression of the dashboard`() async throws {
        let folder = PrometheusServer.observability.path
        let own = FileManager.default.temporaryDirectory.appending(path: "millrace-promtool-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: own) }
        for name in ["prometheus.yml", "rules.yml"] {
            try FileManager.default.copyItem(atPath: "\(folder)/\(name)", toPath: own.appending(path: name).path)
        }
        try "x".write(to: own.appending(path: "token"), atomically: true, encoding: .utf8)
        // It reads expressions only in rules, so each becomes one.
        let rules = try MetricsGuide.dashboardExpressions().enumerated().map { index, expression in
            "  - record: of_the_dashboard:\(index)\n    expr: |-\n      \(expression)\n"
        }
        #expect(rules.count > 50)
        try "groups:\n- name: dashboard\n  rules:\n\(rules.joined())".write(
            to: own.appending(path: "dashboard.yml"), atomically: true, encoding: .utf8)
        try await Program.check("promtool", ["check", "config", own.appending(path: "prometheus.yml").path])
        try await Program.check("promtool", ["check", "rules", own.appending(path: "dashboard.yml").path])
        let tested = try await Program.check("promtool", ["test", "rules", "\(folder)/rules_test.yml"])
        #expect(tested.contains("SUCCESS"))
        if FileManager.default.isExecutableFile(atPath: "/usr/bin/amtool") {
            try await Program.check("amtool", ["check-config", "\(folder)/alertmanager.yml"])
        }
    }

    @Test(.enabled(if: PrometheusServer.isThere, missing))
    func `Prometheus approves a real worker's page, of which the guide has every metric with its labels`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue('practice.nothing', queue => 'some'), millrace.enqueue('nobody.knows'), millrace.sample_take()"
            )
            let port = try freePort()
            let worker = try await worker(port, database)
            var text = ""
            try await eventually("all its parts have something to say") {
                text = await page(port) ?? ""
                return text.contains(
                    "millrace_worker_wait_duration_seconds_count{queue=\"some\",kind=\"practice.nothing\"} 1\n")
                    && text.contains("\nmillrace_notices_alarms_lost 0\n")
                    && text.contains("\nmillrace_jobs_unserved{kind=\"nobody.knows\"} 1\n")
                    && text.contains("\nmillrace_workers{state=\"working\"} 1\n")
            }
            let judged = try await Program.run("promtool", ["check", "metrics"], input: Data(text.utf8), errors: true)
            #expect(judged.status == 0 && judged.text.isEmpty, "\(judged.text)")

            let guide = try MetricsGuide.metrics()
            var printed = MetricsGuide.metrics(of: text)
            for gauge in FleetMetrics.all { printed["millrace_\(gauge.name)"] = Set(gauge.labels) }
            let called = ProviderStanding(
                provider: "p", slots: 1, taken: 0, waiting: 0,
                classes: [.init(name: "default", isOpen: false, totals: Circuit.Totals())])
            for (name, labels) in MetricsGuide.metrics(of: ProviderMetrics([called]).gauges.map(\.text).joined()) {
                printed[name] = labels
            }
            #expect(
                Set(printed.keys) == Set(guide.keys), "\(Set(printed.keys).symmetricDifference(guide.keys).sorted())")
            for (name, labels) in printed where !labels.isEmpty { #expect(labels == guide[name], "\(name)") }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    @Test(.enabled(if: PrometheusServer.isThere, missing))
    func `a real Prometheus scrapes a worker with its token, and alerts fire and clear`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let port = try freePort()
            let worker = try await worker(port, database)
            let server = try PrometheusServer(scraping: "127.0.0.1:\(port)", token: Self.token)
            try await eventually("it scrapes the worker; it says: \(server.log)") {
                try #require(server.isRunning, "\(server.log)")
                return await server.count("up{job=\"millrace\"} == 1 and on () millrace_worker_ready == 1") == 1
            }
            // Nobody has to wait for the next count.
            func recount() async throws { try await connection.run("update millrace.measured set at = '-infinity'") }
            let job = try await connection.int("select millrace.enqueue('nobody.knows')")
            try await eventually("the alert about the kind fires") {
                try await recount()
                return await server.firing("MillraceKindUnserved")?.map { $0["kind"] } == ["nobody.knows"]
            }
            // A scrape that a busy machine missed is followed by another.
            try await eventually("no alert says that there is no worker") {
                await server.firing("MillraceNoWorker") == []
            }
            try await connection.run("select millrace.cancel(\(job))")
            try await eventually("it clears") {
                try await recount()
                return await server.firing("MillraceKindUnserved") == []
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            try await eventually("the alert about the worker fires") {
                await server.firing("MillraceNoWorker")?.map { $0["severity"] } == ["critical"]
            }
            let next = try await self.worker(port, database)
            try await eventually("and clears with the next one") { await server.firing("MillraceNoWorker") == [] }
            next.signal(SIGTERM)
            #expect(try await next.ended() == 0)
            await connection.close()
        }
    }
}
