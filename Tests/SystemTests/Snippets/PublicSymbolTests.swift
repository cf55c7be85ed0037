import Foundation
import TestSupport
import Testing

/// `deploy/checks/symbols` and `deploy/checks/api`, of the build that these tests are of.
@Suite struct PublicSymbolTests {
    private static let checks = Snippet.root.appending(path: "deploy/checks")
    private static let built = MillraceProcess.executable.deletingLastPathComponent().path

    @Test func `every public symbol has a comment`() async throws {
        let outcome = try await Program.run(
            "python3", [Self.checks.appending(path: "symbols").path, "--built", Self.built], errors: true)
        #expect(outcome.status == 0, "\(outcome.text)")
        let total = try #require(outcome.lines.last)
        #expect(total.hasSuffix(" 0 without a comment") && (Int(total.prefix { $0 != " " }) ?? 0) > 1_800, "\(total)")
    }

    @Test func `a symbol without a comment is named with its place`() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let place = #"{"uri": "file:///elsewhere/Bare.swift", "position": {"line": 6, "character": 4}}"#
        let bare = #"{"accessLevel": "public", "pathComponents": ["Bare", "naked()"], "location": \#(place)}"#
        let comment = #"{"lines": [{"text": "It is."}]}"#
        let told = #"{"accessLevel": "public", "pathComponents": ["Told"], "docComment": \#(comment)}"#
        try #"{"symbols": [\#(bare), \#(told)], "relationships": []}"#.write(
            to: folder.appending(path: "Millrace.symbols.json"), atomically: true, encoding: .utf8)
        let outcome = try await Program.run(
            "python3", [Self.checks.appending(path: "symbols").path, "--graphs", folder.path], errors: true)
        #expect(outcome.status == 1)
        #expect(outcome.text.contains("/elsewhere/Bare.swift:7: Bare.naked() has no comment"), "\(outcome.text)")
        #expect(outcome.text.contains("2 symbols, 1 without a comment"), "\(outcome.text)")
    }

    @Test func `the public interface has all that the last release had`() async throws {
        let outcome = try await api()
        #expect(outcome.status == 0, "\(outcome.text)")
    }

    @Test func `a removed symbol, a changed one, a new case and a new requirement break callers`() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        func change(_ module: String, _ body: (inout [String]) -> Void) throws {
            let name = "\(module).txt"
            let text = try String(
                contentsOf: Self.checks.appending(path: "api.d").appending(path: name), encoding: .utf8)
            var lines = text.split(separator: "\n").map(String.init)
            body(&lines)
            try lines.map { "\($0)\n" }.joined().write(
                to: folder.appending(path: name), atomically: true, encoding: .utf8)
        }
        // As if the last release had had more, or had had it otherwise.
        try change("Millrace") {
            $0.append("Client.removed() | func removed() async")
            $0 = $0.map { $0 == "Client.close() | func close() async" ? "Client.close() | func close()" : $0 }
            $0.removeAll { $0.hasPrefix("LogReceiver.log(_:) |") }
        }
        try change("MillraceJobs") { $0.removeAll { $0.hasPrefix("JobState.dead |") || $0.hasPrefix("Job.timeout |") } }
        let outcome = try await api(["--kept", folder.path])
        #expect(outcome.status == 1)
        for line in [
            "Millrace: gone or changed: Client.removed() | func removed() async",
            "Millrace: gone or changed: Client.close() | func close()",
            "Millrace: new, and old code does not have it: LogReceiver.log(_:) |",
            "MillraceJobs: new, and old code does not have it: JobState.dead | case dead", "4 that break a caller",
        ] {
            #expect(outcome.text.contains(line), "\(line) is not in \(outcome.text)")
        }
    }

    private func api(_ arguments: [String] = []) async throws -> Program.Outcome {
        try await Program.run(
            "python3", [Self.checks.appending(path: "api").path, "--built", Self.built] + arguments, errors: true)
    }

    private static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "millrace-symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }
}
