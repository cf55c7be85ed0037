import CommandKit
import Postgres

extension Command {
    private static let whose: [CommandFlag] = [
        .single("tenant", "TENANT", environment: .none, help: "Of this tenant."),
        .single("as", "PERSON", environment: .none, help: "As this person."),
    ]

    static let lessonsList = Command(
        ["lessons", "list"],
        summary: "List lessons, newest first, and how their documents stand",
        flags: whose + [
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "PLACE", environment: .none, help: "Only entries after this one."),
        ],
        examples: [Example("millrace lessons list --tenant school", "with the documents that are under way")]
    ) { invocation in
        let parsed = invocation.parsed
        let page = parsed.integer("limit") ?? 50
        let rows = try await invocation.withSchema { connection in
            try await LessonAdmin.list(
                tenant: parsed.string("tenant"), person: parsed.string("as"), after: parsed.string("after"), page: page,
                on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("lessons", rows, table: lessonTable(rows))
        invocation.more(rows, page: page)
        return .done
    }

    static let lessonsShow = Command(
        ["lessons", "show"],
        summary: "Show a lesson",
        arguments: [Argument("id", help: "the lesson")],
        flags: whose,
        examples: [Example("millrace lessons show algebra-7", "its documents, and when the last of them ended")]
    ) { invocation in
        let parsed = invocation.parsed
        let id = parsed.string("id") ?? ""
        let rows = try await invocation.withSchema { connection in
            try await LessonAdmin.find(
                id, tenant: parsed.string("tenant"), person: parsed.string("as"), on: connection)
        }.map { try JSONValue.read($0) }
        guard let row = rows.first else {
            throw Failure(
                .notFound, "there is no lesson \(DisplayWidth.harmless(id))", hint: "see millrace lessons list")
        }
        guard rows.count == 1 else {
            throw Failure(.conflict, "there are several lessons of this name", hint: "give --tenant or --as")
        }
        invocation.console.show(row) { invocation.console.print(lessonTable([row])) }
        return .done
    }

    static let lessonsPut = Command(
        ["lessons", "put"],
        summary: "Make a lesson, or change it",
        discussion: "Documents belong to it by their lesson: millrace documents submit --lesson.",
        arguments: [Argument("id", help: "the lesson, of 1 to 128 characters")],
        flags: whose + [
            .single("title", "TEXT", environment: .none, help: "What it is called."),
            .single("data", "JSON", environment: .none, help: "More about it, as an object."),
        ],
        examples: [
            Example(
                "millrace lessons put algebra-7 --title 'Algebra, week 7' --as anna", "created, updated or unchanged")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let id = parsed.string("id") ?? ""
        let outcome = try await invocation.withSchema { connection in
            try await LessonAdmin.put(
                id, title: parsed.string("title"), data: parsed.string("data").map { Array($0.utf8) },
                tenant: parsed.string("tenant"), person: parsed.string("as"), on: connection)
        }
        invocation.console.show(["id": .string(id), "outcome": .string(outcome)]) {
            invocation.console.print("\(id) is \(outcome)")
        }
        return .done
    }

    static let lessonsDelete = Command(
        ["lessons", "delete"],
        summary: "Delete lessons, and all of their documents",
        discussion:
            "Ten at a time. Reading of their documents is stopped. A lesson goes with its documents or not at all.",
        arguments: [Argument("id", .many, help: "the lessons")],
        flags: whose,
        examples: [Example("millrace lessons delete algebra-7 algebra-8 --tenant school --yes", "without being asked")]
    ) { invocation in
        let ids = invocation.parsed.list("id")
        if ids.count > 1 { try invocation.confirm("deleting \(Humane.count(ids.count, "lesson")) and their documents") }
        return try await invocation.withSchema { try await invocation.deleteLessons(ids, on: $0) }
    }

    private static func lessonTable(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("id", shrinks: true), .init("title", shrinks: true), .init("tenant", shrinks: true),
                .init("owner", shrinks: true), .init("documents", .trailing), .init("under way", .trailing),
                .init("failed", .trailing), .init("complete"),
            ], whenEmpty: "there is no lesson")
        for row in rows {
            table.add(
                ["id", "title", "tenant", "owner", "documents", "under_way", "failed", "completed_at"].map { name in
                    guard let value = row[name], value != .null else { return "-" }
                    return .init(value.text ?? value.compact)
                })
        }
        return table
    }
}

extension Invocation {
    fileprivate func deleteLessons(_ ids: [String], on connection: Connection) async throws -> ExitCode {
        var (lessons, documents) = (0, 0)
        let region = console.live()
        for start in stride(from: 0, to: ids.count, by: 10) {
            let end = min(ids.count, start + 10)
            let rows = try await LessonAdmin.delete(
                Array(ids[start..<end]), tenant: parsed.string("tenant"), person: parsed.string("as"), on: connection)
            lessons += rows.count { $0.isDeleted }
            documents += rows.reduce(0) { $0 + $1.documents }
            if ids.count > 10, console.format == .human, console.verbosity >= .normal {
                region.update(["deleted \(end) of \(ids.count)"])
            }
        }
        region.finish()
        let (gone, files) = (lessons, documents)
        console.show(["lessons": .int(ids.count), "changed": .int(gone), "documents": .int(files)]) {
            console.print("\(Humane.count(gone, "lesson")) deleted, with \(Humane.count(files, "document"))")
        }
        let missing = Set(ids).count - gone
        if missing > 0 {
            throw Failure(
                .notFound, "\(Humane.count(missing, "lesson")) \(missing == 1 ? "is" : "are") not there",
                hint: "see millrace lessons list")
        }
        return .done
    }
}
