import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Documents by the command line. No worker runs: the test says what became of them.
@Suite struct DocumentCommandTests {
    private static let read = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"
    private static let other = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5f"
    private static let failed = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d60"
    private static let unknown = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d61"

    private func documents(_ arguments: String..., on database: TestDatabase) async -> Outcome {
        let capture = Capture()
        let code = await Application.run(
            arguments: ["documents"] + arguments + ["--database-url", database.url], surroundings: .fake(),
            console: capture.console)
        return Outcome(code: code, output: capture.output, errors: capture.errors)
    }

    /// A document of a page with one line of words, in the middle of the page; without words it failed.
    private func document(_ id: String, _ words: String?, on database: TestDatabase) async throws {
        let status = words == nil ? "failed" : "completed"
        try await database.change(
            """
            insert into millrace.document
                (id, title, caller, status, stage, pages, pages_done, languages, policy, dpi, outputs, created_at, changed_at, digest, reason)
            values ('\(id)', 'letter', 'postgres', '\(status)', '\(status)', \(words == nil ? "null, 0" : "1, 1"), '{eng}', 'partial', 300,
                '{}', now(), now(), '\\x00', \(words == nil ? "'unsupported'" : "null"))
            """)
        guard let words else { return }
        let placed = words.split(separator: " ").enumerated().map { index, word in
            #"{"text": "\#(word)", "confidence": 92.93, "box": {"left": \#(index * 200), "right": \#(index * 200 + 100), "top": 500, "bottom": 600}}"#
        }
        let content =
            #"{"origin": "read", "width": 1000, "height": 1000, "blocks": [{"lines": [{"words": [\#(placed.joined(separator: ","))]}]}]}"#
        try await database.change(
            """
            insert into millrace.document_page (document, page, status, stage, confidence, languages, changed_at)
            values ('\(id)', 1, 'done', 'completed', 92.93, '{ara}', now());
            insert into millrace.document_content (document, page, config, text, content, search)
            values ('\(id)', 1, 'simple', '\(words)', '\(content)', millrace.document_index('simple', '\(words)', '{}'))
            """)
    }

    @Test func `a search by rank begins with the page that fits best, and says where its words stand`() async throws {
        try await withDatabase { database in
            try await document(Self.read, "heron heron", on: database)
            try await document(Self.other, "heron and other birds", on: database)
            func found(_ arguments: String...) async throws -> [JSONValue] {
                let capture = Capture()
                _ = await Application.run(
                    arguments: ["documents", "search", "heron", "--json", "--database-url", database.url] + arguments,
                    surroundings: .fake(), console: capture.console)
                return try JSONValue.read(capture.output)["pages"]?.items ?? []
            }
            #expect(try await found().map { $0["document"]?.text } == [Self.other, Self.read])
            let ranked = try await found("--sort", "rank")
            #expect(ranked.map { $0["document"]?.text } == [Self.read, Self.other])
            #expect(ranked.last?["boxes"]?.compact.filter { $0 != " " } == "[[0.0000,0.5000,0.1000,0.6000]]")
            #expect(ranked.allSatisfy { $0["rank"] != .null })
            let place = try #require(ranked.first?["next"]?.text)
            #expect(try await found("--sort", "rank", "--after", place).map { $0["document"]?.text } == [Self.other])
            #expect(await documents("search", "heron", "--sort", "best", on: database).code == .misused)
        }
    }

    @Test func `where there is no text it is said why`() async throws {
        try await withDatabase { database in
            try await document(Self.read, "heron", on: database)
            try await document(Self.failed, nil, on: database)
            let beyond = await documents("text", Self.read, "--page", "2", on: database)
            #expect(beyond.code == .misused && beyond.errors.contains("the document has the pages 1 to 1"))
            for arguments in [
                ["text"], ["text", "--as", "markdown"], ["fetch", "--as", "text"], ["fetch", "--as", "alto"],
            ] {
                let capture = Capture()
                let code = await Application.run(
                    arguments: ["documents"] + arguments + [Self.failed, "--database-url", database.url],
                    surroundings: .fake(), console: capture.console)
                #expect(code == .notFound && capture.output.isEmpty, "\(arguments)")
                #expect(capture.errors.contains("nothing of it could be read: unsupported"), "\(arguments)")
            }
            try await database.change(
                "update millrace.document set status = 'processing', stage = 'sniff' where id = '\(Self.failed)'")
            let early = await documents("text", Self.failed, on: database)
            #expect(early.code == .notFound && early.errors.contains("nothing has been read yet"))
        }
    }

    @Test func `a document is shown with the languages that were found, and what is most wanted first`() async throws {
        try await withDatabase { database in
            try await document(Self.read, "heron", on: database)
            let shown = await documents("show", Self.read, on: database)
            let lines = shown.output.split(separator: "\n")
            #expect(lines.prefix(3) == ["id  \(Self.read)", "title  letter", "status  completed"], "\(shown.output)")
            #expect(lines.contains("languages  found page by page") && !shown.output.contains("[]"))
            #expect(lines.last?.split(separator: " ").prefix(5) == ["1", "done", "-", "93", "ara"])
            try await database.change(
                """
                update millrace.document set choices = '{"languages": "given"}', languages = '{deu,eng}'
                """)
            #expect(await documents("show", Self.read, on: database).output.contains("languages  deu, eng\n"))
        }
    }

    @Test func `what cannot be deleted is named`() async throws {
        try await withDatabase { database in
            try await document(Self.read, "heron", on: database)
            let outcome = await documents("delete", Self.read.uppercased(), Self.unknown, "--yes", on: database)
            #expect(outcome.code == .notFound && outcome.output.contains("1 document deleted"), "\(outcome.output)")
            #expect(outcome.errors.contains("there is no document \(Self.unknown)\n"), "\(outcome.errors)")
        }
    }

    @Test func `a file that is not there is named, and what the matter is`() async throws {
        try await withDatabase { database in
            let outcome = await documents("submit", "nothere.pdf", on: database)
            #expect(outcome.code == .misused && outcome.errors.contains("'nothere.pdf': no such file or directory"))
        }
    }

    @Test func `a retry that has nothing to do says how a page is read again`() async throws {
        try await withDatabase { database in
            try await document(Self.read, "heron", on: database)
            try await database.change(
                #"update millrace.document set inspection = '{"pages": [{}]}' where id = '\#(Self.read)'"#)
            let outcome = await documents("retry", Self.read, on: database)
            #expect(outcome.code == .done && outcome.output.contains("has nothing to be read again"))
            #expect(outcome.errors.contains("--page reads a page again"), "\(outcome.errors)")
        }
    }
}
