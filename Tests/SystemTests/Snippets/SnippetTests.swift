import Clusters
import Foundation
import TestSupport
import Testing

/// What the pages show is run as it stands there: SQL as the role that it names, commands beside a worker, Swift by the compiler.
@Suite struct SnippetTests {
    @Test func `every block says what it is, and every block of SQL which role runs it`() throws {
        let all = try Snippet.all()
        for snippet in all {
            #expect(
                ["sql", "sh", "swift", "python", "javascript", "json", "text", "mermaid"].contains(snippet.language),
                "\(snippet): \(snippet.language)")
            if snippet.language == "sql" {
                #expect(snippet.role.map { Reader.names.contains($0[0]) } == true, "\(snippet) names no role")
            }
        }
        for language in ["sql", "sh", "swift"] {
            #expect(all.count { $0.language == language } >= 10, "\(language)")
        }
    }

    /// In their order on the page, for the next may need what the one before has made.
    @Test func `every block of SQL and every command does what it says`() async throws {
        try await withCluster(settings: ["max_connections": "200", "fsync": "on"]) { cluster in
            let reader = try await Reader(cluster)
            try await reader.prepare()
            let worker = Supervised { try await reader.worker($0) }  // one page shows how a worker dies
            try await worker.begin()
            for page in try Snippet.pages() {
                for snippet in try Snippet.of(page) {
                    if snippet.language == "sql" { try await reader.run(sql: snippet) }
                    if snippet.language == "sh" { try await reader.run(commands: snippet) }
                }
            }
            try await worker.stop()
        }
    }

    @Test func `the programs of the page for Python enqueue, wait for ends, hear of them, and read results`()
        async throws
    {
        try await withDatabase { database in
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let programs = try Snippet.of("deploy/guides/python.md").filter { $0.language == "python" }
            let printed = [
                [#"succeeded {"ran": [1, 2, 3], "sum": 6, "steps": 3}"#, "not_found - there is no job 4242"],
                ["20 have ended"],
            ]
            try #require(programs.count == printed.count)
            for (program, expected) in zip(programs, printed) {
                let file = FileManager.default.temporaryDirectory.appending(path: "jobs-\(UUID().uuidString).py")
                try program.text.write(to: file, atomically: true, encoding: .utf8)
                defer { try? FileManager.default.removeItem(at: file) }
                let outcome = try await Program.run("/usr/bin/python3", [file.path, database.url], errors: true)
                #expect(outcome.lines == expected, "\(outcome.text)")
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
        }
    }

    @Test func `a block that fails is found`() async throws {
        try await withCluster { cluster in
            let reader = try await Reader(cluster)
            try await reader.prepare()
            func snippet(_ language: String, _ text: String) -> Snippet {
                Snippet(page: "none", line: 1, language: language, text: text, given: "")
            }
            await withKnownIssue {
                try await reader.run(sql: snippet("sql", "-- as: client anna\nselect millrace.pause('mail');"))
            }
            await withKnownIssue {
                try await reader.run(commands: snippet("sh", "millrace status --no-such-flag"))
            }
        }
        #expect(
            try await Compiled.errors(of: [
                Snippet(page: "none", line: 1, language: "swift", text: "let x: Int = \"one\"", given: "")
            ]).contains("none"))
    }

    @Test func `every block of Swift is taken by the compiler`() async throws {
        let errors = try await Compiled.errors(of: Snippet.all().filter { $0.language == "swift" && !$0.isManifest })
        #expect(errors.isEmpty, "\(errors)")
    }
}
