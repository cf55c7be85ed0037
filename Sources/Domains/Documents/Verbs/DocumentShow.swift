import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let documentsShow = Command(
        ["documents", "show"],
        summary: "Show everything about a document, page by page",
        arguments: [Argument("id", .one, .uuid, help: "the document's id")],
        examples: [
            Example("millrace documents show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "which pages failed, and why")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        guard let bytes = try await invocation.withSchema({ try await DocumentAdmin.story(id, on: $0) }) else {
            throw Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
        }
        let story = DocumentStory(json: try JSONValue.read(bytes))
        invocation.console.show(story.json) {
            for line in story.lines { invocation.console.print(line) }
            invocation.console.print(story.table)
        }
        return .done
    }
}

/// All that is known of a document, for people.
struct DocumentStory {
    let json: JSONValue

    /// What people look for comes first, the rest as it is.
    private static let first = [
        "id", "title", "status", "stage", "reason", "sentence", "pages", "pages_done", "pages_failed", "languages",
    ]

    var lines: [String] {
        guard case .object(let members) = json else { return [] }
        let known = Self.first.compactMap { key in members.first { $0.key == key } }
        let rest = members.filter { !Self.first.contains($0.key) && !["page", "made", "parts"].contains($0.key) }
        let facts = (known + rest).compactMap { member in
            words(of: member).map { "\(member.key)  \(DisplayWidth.harmless($0))" }
        }
        return facts + outputs + parts
    }

    /// Nil where there is nothing to say.
    private func words(of member: JSONValue.Member) -> String? {
        switch member.value {
        case .null: nil
        case .array where member.key == "languages" && json["choices"]?["languages"]?.text != "given":
            "found page by page"
        case .array(let items): items.isEmpty ? nil : items.map { $0.text ?? $0.compact }.joined(separator: ", ")
        case .object(let members): members.isEmpty ? nil : member.value.compact
        case .bool, .int, .double, .number, .string, .raw: member.value.text ?? member.value.compact
        }
    }

    private var outputs: [String] {
        (json["made"]?.items ?? []).map { made in
            "\(made["kind"]?.text ?? "?")  \(made["blob"]?.text ?? ""), \(made["size"]?.compact ?? "?") bytes"
                + CopyWords.of(made["about"])
        }
    }

    private var parts: [String] {
        (json["parts"]?.items ?? []).map { part in
            "part  \(part["id"]?.text ?? "?"), pages \(part["first"]?.compact ?? "?") to "
                + "\(part["last"]?.compact ?? "?"), \(part["status"]?.text ?? "?")"
        }
    }

    var table: Table {
        var table = Table(
            [
                Table.Column("page", .trailing), Table.Column("status"), Table.Column("words", .trailing),
                Table.Column("confidence", .trailing), Table.Column("languages"), Table.Column("cpu ms", .trailing),
                Table.Column("cached"), Table.Column("mode"), Table.Column("reason", shrinks: true),
            ], whenEmpty: "no pages yet")
        for page in json["page"]?.items ?? [] {
            func cell(_ key: String) -> Table.Cell {
                guard let value = page[key], value != .null else { return "-" }
                return Table.Cell(value.text ?? value.compact)
            }
            let confidence = (page["confidence"]?.compact).flatMap { Double($0) }
            let languages = (page["languages"]?.items ?? []).compactMap(\.text)
            let reason = [page["reason"]?.text, page["sentence"]?.text].compactMap(\.self)
            table.add([
                cell("page"), cell("status"), cell("words"),
                Table.Cell(confidence.map { "\(Int($0.rounded()))" } ?? "-"),
                Table.Cell(languages.isEmpty ? "-" : languages.joined(separator: ", ")), cell("cpu_ms"),
                Table.Cell(page["cached"] == .bool(true) ? "yes" : ""), Table.Cell(page["mode"]?.text ?? ""),
                Table.Cell(reason.joined(separator: ": ")),
            ])
        }
        return table
    }
}
