import Foundation
import TestSupport
import Testing

/// The rules of the source tree, which `deploy/check-house` prints and checks.
@Suite struct HouseTests {
    private static let script = Snippet.root.appending(path: "deploy/check-house")

    @Test func `every rule of the house holds`() async throws {
        let outcome = try await Program.run("python3", [Self.script.path], errors: true)
        #expect(outcome.status == 0, "\(outcome.text)")
    }

    @Test func `each rule is found broken where it is broken`() async throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "millrace-house-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        func write(_ text: String, to path: String) throws {
            let file = root.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        try write(try String(contentsOf: Self.script, encoding: .utf8), to: "deploy/check-house")
        try write("Plain words.\n", to: "README.md")
        try write(
            "## Advisory locks\n\n| 1297239619, 0 | a | b |\n| 1297239619, 0–3: K | c | d |\n", to: "sql/locks.md")
        try write("", to: "sql/functions/base/clock.sql")
        try write("", to: "Sources/System/CZlib/module.modulemap")
        try write("struct Twice {}\n", to: "Sources/Engine/Jobs/One.swift")
        try write("import CZlib\nimport Quests\nstruct Twice {}\n", to: "Sources/Domains/Mail/Two.swift")
        try write("struct Quest {}\n", to: "Sources/Domains/Quests/Quest.swift")
        try write("import Mail\n// It begins a\u{6e}ew.\n", to: "Sources/Engine/Queues/Three.swift")
        try write(String(repeating: "// line\n", count: 401), to: "Sources/Engine/Queues/Four.swift")
        try write(
            "func long() {\n" + String(repeating: "    print(1)\n", count: 80) + "}\n",
            to: "Sources/Engine/Queues/Five.swift")
        try write(
            "let count = \"select count(*) from \" + \"x\"\nlet all = \"select count(*) from pg_\u{6c}ocks\"\n"
                + "let mine = \"select 1 from pg_\u{6c}ocks where database = current_database()\"\n",
            to: "Tests/QueuesTests/Six.swift")
        try write(
            "let answer = try await session.data(for: request)\n// session.data(for: request)\n",
            to: "Sources/Faces/MillraceApp/Seven.swift")
        try write(
            "let handle = PQconnectdb(\"x\")\nlet path: SQL = \"set local search_path = public\"\n",
            to: "Sources/Engine/Queues/Eight.swift")
        try write("char *text = \"discard all\";\n", to: "Sources/Programs/CYardstick/waking.c")
        let outcome = try await Program.run(
            "python3", [root.appending(path: "deploy/check-house").path], errors: true)
        #expect(outcome.status == 1)
        for words in [
            "the type Twice stands in Jobs and Mail", "Two.swift imports C: CZlib",
            "Two.swift imports another domain: Quests", "Three.swift (Engine) imports Mail (Domains)",
            "Three.swift:2 says", "Four.swift has 401 lines", "Five.swift:1 is 82 lines long",
            "the lock 1297239619, 0 has 2 purposes", "Six.swift:2 asks the whole server",
            "Seven.swift:1 waits for a session's queue", "Eight.swift:1 opens a connection",
            "Eight.swift:2 changes a session's search_path", "waking.c:1 changes a session's search_path",
        ] { #expect(outcome.text.contains(words), "\(words): \(outcome.text)") }
        #expect(!outcome.text.contains("Six.swift:1") && !outcome.text.contains("Six.swift:3"), "\(outcome.text)")
    }
}
