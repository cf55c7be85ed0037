import Fakes
import Foundation
import TestSupport
import Testing

/// The HTTP client in its own process, with any environment.
@Suite struct LoadHTTPTests {
    private struct Report: Decodable {
        struct Figures: Decodable {
            var requests: Int
            var per_second: [Double]
            var bare_per_second: [Double]
        }

        var scenario: String
        var figures: Figures
    }

    @Test func `load http reports both, and no proxy, netrc or cookie of the surroundings is looked at`() async throws {
        let proxy = try RawServer { $0.waitForEnd() }
        defer { proxy.stop() }
        let telltales = Telltales()
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                telltales.look(head)
                guard connection.answer("direct", headers: "Set-Cookie: a=1\r\n") else { return }
            }
        }
        defer { server.stop() }
        let home = FileManager.default.temporaryDirectory.appending(path: "millrace-home-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: home) }
        try "machine 127.0.0.1 login me password hidden\n".write(
            toFile: "\(home)/.netrc", atomically: true, encoding: .utf8)
        var environment = ["HOME": home]
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"] {
            environment[name] = "http://127.0.0.1:\(proxy.port)"
        }
        let process = try MillraceProcess(
            [
                "load", "http", "--url", "http://127.0.0.1:\(server.port)/", "--requests", "200", "--in-flight", "4",
                "--rounds", "1", "--json",
            ], database: "", environment: environment)
        let code = try await process.ended(within: .seconds(600))
        #expect(code == 0, "\(process.output)")
        let lines = process.output.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "{"), "\(process.output)")
        let report = try JSONDecoder().decode(Report.self, from: Data(lines[start...].joined(separator: "\n").utf8))
        #expect(report.scenario == "http" && report.figures.requests == 200)
        #expect(report.figures.per_second.count == 1 && report.figures.bare_per_second.count == 1)
        #expect(proxy.accepted == 0)
        #expect(telltales.heads == 400)
        #expect(telltales.found.isEmpty, "\(telltales.found)")
    }

    /// `@unchecked`: guarded by its lock.
    private final class Telltales: @unchecked Sendable {
        private let lock = NSLock()
        private var seen = 0
        private var bad: [String] = []

        var heads: Int { lock.withLock { seen } }
        var found: [String] { lock.withLock { bad } }

        func look(_ head: String) {
            lock.withLock {
                seen += 1
                for name in ["Authorization", "Cookie", "Proxy"] where head.contains(name) { bad.append(name) }
            }
        }
    }
}
