import Composition
import Foundation
import Listeners
import Postgres
import Supervision
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// Tokens that PyPI's PyJWT and joserfc make, sent over HTTP. deploy/checks/tokens runs it with its environment.
@Suite struct TokenPackageTests {
    static let python = ProcessInfo.processInfo.environment["MILLRACE_TOKEN_PYTHON"]

    @Test(.enabled(if: python != nil, "deploy/checks/tokens runs it"))
    func `tokens of other people's packages are taken and refused as they should be`() async throws {
        let python = try #require(Self.python)
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../deploy/checks/tokens.py"
        )
        .standardizedFileURL.path
        let folder = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let access = Locked<GatewayAccess?>(nil)
        let reads = Locked("")
        let routes = [
            Route(.get, "/jwks.json", access: .everyone) { _ in
                reads.withLock { $0 += "r" }
                try reads.value.write(to: folder.appending(path: "reads"), atomically: true, encoding: .utf8)
                return .text(try String(contentsOf: folder.appending(path: "jwks.json"), encoding: .utf8))
            },
            Route(.post, "/v1/rpc/{function}", access: .verified) { request in
                let caller = try await #require(access.value).caller(of: request)
                return .json(String(decoding: caller.claims, as: UTF8.self))
            },
        ]
        let listener = try Listener(
            Listener.Options(address: try #require(ListenAddress("127.0.0.1:0"))), routes: routes, log: .silent)
        try await withDatabase { database in
            async let _: Void? = try? listener.run()
            let url = "http://\(listener.address)"
            try await Program.check(python, [script, "prepare", folder.path, "\(url)/jwks.json"])
            let pool = Pool(database.options, size: 2)
            let made = try Self.access(folder, pool: pool)
            access.withLock { $0 = made }
            let outcome = try await Program.run(
                python, [script, "check", url, folder.path, "--tick", folder.appending(path: "minute").path],
                errors: true)
            #expect(outcome.status == 0, "\(outcome.lines.filter { !$0.hasPrefix("ok") }.joined(separator: "\n"))")
            #expect(outcome.lines.count > 100)
            listener.stop()
            await pool.close()
        }
    }

    /// A minute later as soon as the file is there.
    private static func access(_ folder: URL, pool: Pool) throws -> GatewayAccess {
        let lines = try String(contentsOf: folder.appending(path: "settings"), encoding: .utf8).split(separator: "\n")
        var environment: [String: String] = [:]
        for line in lines {
            let halves = line.split(separator: "=", maxSplits: 1).map(String.init)
            environment[halves[0]] = halves[1]
        }
        var surroundings = Surroundings.live()
        surroundings.environment = environment
        let settings = Settings.load(surroundings: surroundings)
        #expect(settings.problems.isEmpty, "\(settings.problems)")
        let composer = Composer(settings: settings, surroundings: surroundings, database: pool.options, direct: nil)
        let later = folder.appending(path: "minute").path
        return try composer.gatewayAccess(
            pool: pool, supervisor: Supervisor(Supervisor.Options(), log: .silent)
        ) { options in
            options.now = { Date().addingTimeInterval(FileManager.default.fileExists(atPath: later) ? 61 : 0) }
        }
    }
}
