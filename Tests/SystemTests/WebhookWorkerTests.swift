import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

/// A receiver in Python, which checks signatures and events by code of its own.
private final class Receiver: @unchecked Sendable {  // Process is not Sendable; each is used by one test
    struct Note: Decodable {
        var method: String
        var path: String
        var id: String?
        var events: [String]?
        var signers: Int?
        var ok: Bool?
        var why: String?
        var origin: String?
    }

    /// With this one PyPI's packages check too.
    static let packages = ProcessInfo.processInfo.environment["MILLRACE_WEBHOOK_PYTHON"]

    private let process = Process()
    private let directory: URL
    private var log: URL { directory.appending(path: "log") }
    private(set) var port = 0

    init() async throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "millrace-hooks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "deploy/checks/webhooks.py").path
        let arguments = [script, directory.appending(path: "secrets").path]
        process.executableURL = URL(filePath: Self.packages ?? "/usr/bin/env")
        process.arguments = Self.packages == nil ? ["python3"] + arguments : arguments + ["--packages"]
        process.standardOutput = try FileHandle(forWritingTo: log)
        process.standardInput = FileHandle.nullDevice
        try process.run()
        try await eventually("the receiver listens") {
            self.port = Int(self.lines.first ?? "") ?? 0
            return self.port > 0
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: directory)
    }

    func knows(_ secret: String, at path: String) throws {
        let file = directory.appending(path: "secrets")
        let before = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        try (before + "\(path) \(secret)\n").write(to: file, atomically: true, encoding: .utf8)
    }

    private var lines: [String] {
        ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    var notes: [Note] {
        lines.dropFirst().compactMap { try? JSONDecoder().decode(Note.self, from: Data($0.utf8)) }
    }

    var posts: [Note] { notes.filter { $0.method == "POST" } }
    var environment: [String: String] {
        [
            "MILLRACE_WEBHOOK_ALLOW": "http://127.0.0.1:\(port)", "MILLRACE_EVENT_SOURCE": "https://events.example/",
            "MILLRACE_PROVIDER_WEBHOOK_TIMEOUT": "5s",
        ]
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
}

@Suite struct WebhookWorkerTests {
    private struct Added: Decodable {
        var id: String
        var secret: String
    }

    private static func run(
        _ arguments: [String], on database: TestDatabase, _ environment: [String: String] = [:]
    ) async throws -> (code: Int32, output: String) {
        let process = try MillraceProcess(arguments, database: database.url, environment: environment)
        return (try await process.ended(), process.output)
    }

    private static func add(
        _ path: String, _ more: [String] = [], to receiver: Receiver, on database: TestDatabase,
        _ environment: [String: String] = [:]
    ) async throws -> Added {
        let (code, output) = try await run(
            ["webhooks", "add", receiver.url(path), "--quiet", "--json"] + more, on: database,
            receiver.environment.merging(environment) { $1 })
        #expect(code == 0, "\(output)")
        let added = try JSONDecoder().decode(Added.self, from: Data(output.utf8))
        try receiver.knows(added.secret, at: path)
        return added
    }

    @Test func `another implementation believes what is sent, in every mode, sealed and while secrets overlap`()
        async throws
    {
        try await withDatabase { database in
            let receiver = try await Receiver()
            let owner = try await database.connect()
            let key = [
                "MILLRACE_ENCRYPTION_KEY": "k1:"
                    + Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
            ]
            let environment = receiver.environment.merging(key) { $1 }
            var ids: [String: String] = [:]
            for mode in ["binary", "structured", "batch"] {
                ids[mode] = try await Self.add("/\(mode)", ["--mode", mode], to: receiver, on: database, key).id
            }
            let trusted = try await Self.add(
                "/trusted", ["--trusted", "--type", "com.other.*"], to: receiver, on: database, key)
            let rotated = try await Self.run(
                ["webhooks", "rotate", ids["binary"] ?? "", "--quiet"], on: database, environment)
            try receiver.knows(rotated.output.trimmingCharacters(in: .whitespacesAndNewlines), at: "/binary")
            #expect(try await owner.bool("select bool_and(secret ->> 'key' = 'k1') from millrace.webhook_secret"))
            let tried = try await Self.run(["webhooks", "test", trusted.id], on: database, environment)
            #expect(tried.code == 0 && tried.output.contains("taken"), "\(tried.output)")

            let worker = try await MillraceProcess.worker("w", database: database.url, environment: environment)
            try await owner.run(
                """
                select millrace.event_publish('com.example.paid', '/shop', jsonb_build_object('n', n, 'text', 'Größe "1" 100%'), 'bestellung/' || n || ' ä€😀', 'acme')
                  from generate_series(1, 20) n
                """)
            try await eventually("all is delivered; \(worker.output)") {
                try await owner.int("select count(*) from millrace.webhook_deliveries where state = 'delivered'") == 60
            }
            let posts = receiver.posts
            #expect(posts.allSatisfy { $0.ok == true }, "\(posts.first { $0.ok != true }?.why ?? "")")
            for mode in ["binary", "structured", "batch"] {
                let told = posts.filter { $0.path == "/\(mode)" }.flatMap { $0.events ?? [] }
                #expect(told.count == 20 && Set(told).count == 20, "\(mode)")
            }
            #expect(posts.filter { $0.path == "/binary" }.allSatisfy { $0.signers == 2 })
            #expect(posts.filter { $0.path == "/trusted" }.count == 1)  // the test by hand
            let asked = receiver.notes.filter { $0.method == "OPTIONS" }
            #expect(Set(asked.map(\.path)) == ["/binary", "/structured", "/batch"])
            #expect(asked.allSatisfy { $0.origin == "events.example" })

            let event = posts.first { $0.path == "/binary" }?.events?.first ?? ""
            let again = try await Self.run(
                ["webhooks", "redeliver", event, "--to", ids["structured"] ?? ""], on: database, environment)
            #expect(again.code == 0 && again.output.contains("1 webhook"), "\(again.output)")
            try await eventually("it came again") {
                receiver.posts.count { $0.path == "/structured" && $0.id == event } == 2
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            let listed = try await Self.run(["webhooks", "list", "--json"], on: database)
            #expect(listed.output.contains(#""state":"active""#) || listed.output.contains(#""state": "active""#))
            #expect(!listed.output.contains("whsec_"))
            let deliveries = try await Self.run(["webhooks", "deliveries", "--event", event], on: database)
            #expect(deliveries.code == 0 && deliveries.output.contains("delivered"))
            #expect(try await Self.run(["webhooks", "remove", trusted.id], on: database).code == 0)
            #expect(try await Self.run(["webhooks", "remove", trusted.id], on: database).code == 3)
            let inner = try await Self.run(["webhooks", "add", "https://127.0.0.1/x"], on: database)
            #expect(inner.code == 2 && inner.output.contains("not public (loopback)"), "\(inner.output)")
            try await owner.run("select millrace.webhook_disable(id, 'why') from millrace.webhook")
            let status = try await Self.run(["status", "--json"], on: database)
            #expect(status.output.contains("3 webhooks are switched off"), "\(status.output)")
            #expect(try await Self.run(["webhooks", "enable", ids["batch"] ?? ""], on: database).code == 0)
            await owner.close()
        }
    }

    @Test
    func `a worker that is killed in the middle of a delivery leads to duplicates under the same id, and to no loss`()
        async throws
    {
        try await withDatabase { database in
            let receiver = try await Receiver()
            let owner = try await database.connect()
            let environment = receiver.environment.merging(["MILLRACE_PROVIDER_WEBHOOK_TIMEOUT": "4s"]) { $1 }
            _ = try await Self.add("/slow", to: receiver, on: database)
            let crew = (0..<2).map { number in
                Supervised { turn in
                    try await MillraceProcess.worker(
                        "w\(number)-\(turn)", database: database.url, environment: environment)
                }
            }
            for worker in crew { try await worker.begin() }
            let total = 120
            for turn in 0..<6 {
                // Some commit late, behind others that were numbered after them.
                let late = try await database.connect()
                try await late.run("begin; select millrace.event_publish('late', '/t', '\(turn)')")
                try await owner.run(
                    "select millrace.event_publish('t', '/t', to_jsonb(n)) from generate_series(1, \(total / 6 - 1)) n")
                let before = receiver.posts.count
                try await eventually("something is under way") { receiver.posts.count > before }
                try await late.run("commit")
                await late.close()
                await crew[turn % 2].kill()
            }
            try await eventually("everything has arrived", within: .seconds(400)) {
                try await owner.int("select count(*) from millrace.webhook_deliveries where state = 'delivered'")
                    == total
            }
            for worker in crew { try await worker.stop() }
            let posts = receiver.posts
            #expect(posts.allSatisfy { $0.ok == true && $0.events == [$0.id ?? ""] })
            let published = Set(try await owner.column("select id from millrace.events"))
            #expect(published.count == total && Set(posts.compactMap(\.id)) == published)
            #expect(try await owner.int("select count(*) from millrace.webhook_delivery") == total)
            #expect(await crew[0].deaths + crew[1].deaths > 0)
            await owner.close()
        }
    }
}
