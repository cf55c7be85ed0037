import Foundation
import TestSupport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Debian's Prometheus in a process of its own, with a folder of its own.
final class PrometheusServer: @unchecked Sendable {  // Process is not Sendable; each is used by one test
    static let isThere = ["/usr/bin/prometheus", "/usr/bin/promtool"].allSatisfy(
        FileManager.default.isExecutableFile)
    static let observability = Snippet.root.appending(path: "deploy/observability")

    let folder: URL
    private let process = Process()
    private let port: Int

    /// Scrapes `target` with `token` ten times a second, and judges our rules as often, without their patience.
    init(scraping target: String, token: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "millrace-prometheus-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = try freePort()
        let rules = try String(contentsOf: Self.observability.appending(path: "rules.yml"), encoding: .utf8)
        try rules.replacing(/\n +for: \w+/, with: "").write(
            to: folder.appending(path: "rules.yml"), atomically: true, encoding: .utf8)
        try token.write(to: folder.appending(path: "token"), atomically: true, encoding: .utf8)
        // The example, but for its times and its targets.
        let example = try String(contentsOf: Self.observability.appending(path: "prometheus.yml"), encoding: .utf8)
        try example.replacing("15s", with: "100ms").replacing(
            /targets: \['127\.0\.0\.1:8470'.*\]/, with: "targets: ['\(target)']"
        )
        .replacing(/alerting:\n(?:  .*\n)+/, with: "")
        .write(to: folder.appending(path: "prometheus.yml"), atomically: true, encoding: .utf8)
        let log = folder.appending(path: "log")
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        process.executableURL = URL(filePath: "/usr/bin/prometheus")
        process.arguments = [
            "--config.file=\(folder.path)/prometheus.yml", "--storage.tsdb.path=\(folder.path)/data",
            "--web.listen-address=127.0.0.1:\(port)", "--log.level=warn",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: log)
        process.standardInput = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        if process.isRunning {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)
    }

    var log: String { (try? String(contentsOf: folder.appending(path: "log"), encoding: .utf8)) ?? "" }
    var isRunning: Bool { process.isRunning }

    private struct Answer<Part: Decodable>: Decodable {
        let status: String
        let data: Part
    }

    private func get<Part: Decodable>(_ path: String, _ query: [URLQueryItem] = [], as type: Part.Type) async throws
        -> Part
    {
        var parts = URLComponents()
        (parts.scheme, parts.host, parts.port, parts.path) = ("http", "127.0.0.1", port, path)
        if !query.isEmpty { parts.queryItems = query }
        guard let url = parts.url else { throw URLError(.badURL) }
        let (data, _) = try await URLSession.shared.data(from: url)
        return try JSONDecoder().decode(Answer<Part>.self, from: data).data
    }

    /// The labels of the alerts that fire under this name; nil when it does not answer yet.
    func firing(_ name: String) async -> [[String: String]]? {
        struct Alerts: Decodable {
            struct Alert: Decodable {
                let labels: [String: String]
                let state: String
            }
            let alerts: [Alert]
        }
        let all = try? await get("/api/v1/alerts", as: Alerts.self)
        return all?.alerts.filter { $0.state == "firing" && $0.labels["alertname"] == name }.map(\.labels)
    }

    /// How many series an expression gives now; nil when it does not answer yet.
    func count(_ expression: String) async -> Int? {
        struct Result: Decodable {
            struct Series: Decodable {}
            let result: [Series]
        }
        return try? await get("/api/v1/query", [URLQueryItem(name: "query", value: expression)], as: Result.self).result
            .count
    }
}
