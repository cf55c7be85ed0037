import BlobKit
import Blobs
import CommandKit
import FoundationEssentials
import Glibc
import Pages
import Postgres

extension Command {
    static let documentsList = Command(
        ["documents", "list"],
        summary: "List documents, newest first",
        flags: [
            .single(
                "status", "STATUS", .choice(["uploading", "processing", "completed", "failed", "deleted"]),
                environment: .none, help: "Only documents with this status."),
            .single("lesson", "ID", environment: .none, help: "Only documents of this lesson."),
            .single("tenant", "TENANT", environment: .none, help: "Only documents of this tenant."),
            .single("parent", "ID", .uuid, environment: .none, help: "Only the parts of this document."),
            .single("since", "TIME", .instant, environment: .none, help: "Only documents submitted since then."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .uuid, environment: .none, help: "Only documents older than this one."),
        ],
        examples: [Example("millrace documents list --status failed", "what could not be read, and why")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let since = try parsed.string("since").map { text in try InstantText.read(text) }
        let rows = try await invocation.withSchema { connection in
            try await DocumentAdmin.list(
                status: parsed.string("status"), lesson: parsed.string("lesson"), tenant: parsed.string("tenant"),
                since: since, after: parsed.string("after"), page: limit, parent: parsed.string("parent"),
                on: connection)
        }
        var table = Table(
            [
                Table.Column("id"), Table.Column("title", shrinks: true), Table.Column("status"), Table.Column("stage"),
                Table.Column("pages", .trailing), Table.Column("failed", .trailing), Table.Column("created"),
                Table.Column("reason"),
            ], whenEmpty: "no documents")
        for row in rows {
            table.add([
                Table.Cell(row.id), Table.Cell(row.title ?? "-"),
                Table.Cell(row.status, row.status == "failed" ? .red : .bold), Table.Cell(row.stage),
                Table.Cell(row.pages.map { "\(row.done + row.failed)/\($0)" } ?? "-"), Table.Cell("\(row.failed)"),
                Table.Cell(row.created.formatted(.iso8601)), Table.Cell(row.reason ?? ""),
            ])
        }
        invocation.console.list(
            "documents", rows.map { .raw(String(decoding: $0.row, as: UTF8.self)) }, table: table)
        if rows.count == limit, invocation.console.format == .human, let last = rows.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let documentsText = Command(
        ["documents", "text"],
        summary: "Print the text of a document that has been read so far",
        discussion:
            "Pages are separated by a form feed. With --json the words, their places and how certain they are, and the structure: headings, paragraphs, lists and tables.",
        arguments: [Argument("id", .one, .uuid, help: "the document's id")],
        flags: [
            .single("page", "N", .integer(1...1_000_000), environment: .none, help: "Only this page."),
            .single(
                "as", "FORM", .choice(["text", "markdown", "hocr", "alto"]), environment: .none, fallback: "text",
                help: "How to write it: hocr and alto have the places of words, too."),
        ],
        examples: [
            Example("millrace documents text 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --page 3", "one page"),
            Example("millrace documents text 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --as markdown", "with its tables"),
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let page = invocation.parsed.integer("page")
        if invocation.console.format != .human {
            return try await invocation.json(of: id, only: page) { text in invocation.console.output.write(text) }
        }
        if let form = invocation.parsed.string("as").flatMap({ StructureFormat(rawValue: $0) }) {
            let isTerminal = invocation.console.output.isTerminal
            return try await invocation.structured(form, of: id, only: page) { text in
                invocation.console.output.write(isTerminal ? text.harmlessLines : text)
            }
        }
        let text = try await invocation.withSchema { connection in
            try await DocumentAdmin.text(id, first: page ?? 1, last: page, on: connection)
        }
        guard let text else { throw try await invocation.nothingRead(of: id, page: page) }
        // A document's own control characters are nothing for a terminal.
        let shown = invocation.console.output.isTerminal ? text.harmlessLines : text
        invocation.console.output.write(shown.hasSuffix("\n") ? shown : shown + "\n")
        return .done
    }

    static let documentsSearch = Command(
        ["documents", "search"],
        summary: "Find pages by their words",
        discussion: """
            Words, "phrases", or, and -without. The newest documents come first, or with --sort rank the page that fits \
            best. With --json boxes has the places of the words: left, top, right and bottom as parts of the page's width \
            and height.
            """,
        arguments: [Argument("query", .many, help: "what to look for")],
        flags: [
            .single("tenant", "TENANT", environment: .none, help: "Only documents of this tenant."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many pages."),
            .single(
                "sort", "HOW", .choice(["newest", "rank"]), environment: .none, fallback: "newest",
                help: "What comes first."),
            .single("after", "PLACE", environment: .none, help: "Only entries after this one, with the same --sort."),
        ],
        examples: [
            Example("millrace documents search mountain railway -timber", "pages with both, and not the third"),
            Example("millrace documents search railway --sort rank --limit 5", "the five pages that fit best"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let query = parsed.list("query").joined(separator: " ")
        let rows = try await invocation.withSchema { connection in
            try await DocumentAdmin.search(
                query, tenant: parsed.string("tenant"), after: parsed.string("after"), page: limit,
                sort: parsed.string("sort") ?? "newest", on: connection)
        }
        var table = Table(
            [
                Table.Column("document"), Table.Column("page", .trailing), Table.Column("title", shrinks: true),
                Table.Column("found", shrinks: true),
            ], whenEmpty: "no page has it")
        for row in rows {
            table.add([
                Table.Cell(row.document), Table.Cell("\(row.page)"), Table.Cell(row.title ?? "-"),
                Table.Cell(row.highlight.split(whereSeparator: \.isWhitespace).joined(separator: " ")),
            ])
        }
        invocation.console.list(
            "pages",
            rows.map {
                [
                    "document": .string($0.document), "page": .int($0.page), "title": JSONValue($0.title),
                    "highlight": .string($0.highlight), "rank": $0.rank.map(JSONValue.double) ?? .null,
                    "boxes": .raw(String(decoding: $0.boxes, as: UTF8.self)), "next": .string($0.next),
                ]
            }, table: table)
        if rows.count == limit, invocation.console.format == .human, let last = rows.last {
            invocation.console.note("more may follow: --after \(last.next)")
        }
        return .done
    }

    static let documentsFetch = Command(
        ["documents", "fetch"],
        summary: "Write an output of a document to standard output, or to a file",
        discussion:
            "The PDF keeps the original's pages, has their text behind them, and carries nothing that acts. The original stays as it was.",
        arguments: [Argument("id", .one, .uuid, help: "the document's id")],
        flags: [
            .single(
                "as", "KIND",
                .choice(
                    ["pdf", "text", "json", "report", "preview", "original", "markdown", "hocr", "alto"]),
                environment: .none, fallback: "pdf", help: "Which output."),
            .single("output", short: "o", "FILE", .path, environment: .none, help: "Write here; must not exist yet."),
            Setting.blobs.flag,
        ],
        examples: [Example("millrace documents fetch 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e -o searchable.pdf", "")]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let kind = invocation.parsed.string("as") ?? "pdf"
        guard let document = try await invocation.withSchema({ try await DocumentAdmin.find(id, on: $0) }) else {
            throw Failure(.notFound, "there is no document \(id)", hint: "see millrace documents list")
        }
        var descriptor = STDOUT_FILENO
        let path = invocation.parsed.string("output")
        func open() throws {
            guard let path else { return }
            descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw Failure("\(Secrets.quoted(path)) cannot be made: \(Descriptor.sentence(errno))")
            }
        }
        let form = StructureFormat(rawValue: kind)
        if form != nil || kind == "text", document.done == 0 {
            throw try await invocation.nothingRead(of: id, page: nil)
        }
        switch kind {
        case _ where form != nil:
            try open()
            let sink = descriptor
            defer { if path != nil { close(sink) } }
            _ = try await invocation.structured(form ?? .markdown, of: id, only: nil) {
                try invocation.write(Array($0.utf8), to: sink)
            }
        case "text", "json":
            try open()
            let sink = descriptor
            defer { if path != nil { close(sink) } }
            if kind == "json" {
                return try await invocation.json(of: id, only: nil) { try invocation.write(Array($0.utf8), to: sink) }
            }
            let text = try await invocation.withSchema {
                try await DocumentAdmin.text(id, first: 1, last: nil, on: $0)
            }
            try invocation.write(Array((text ?? "").utf8), to: sink)
        default:
            let blob = try await invocation.blob(of: document, kind)
            try open()
            let sink = descriptor
            defer { if path != nil { close(sink) } }
            try await invocation.withBlobStore { store in
                try await store.read(blob, range: nil) { try invocation.write($0, to: sink) }
            }
        }
        if let path { invocation.console.note("\(path) is written") }
        return .done
    }

    static let documentsDelete = Command(
        ["documents", "delete"],
        summary: "Delete documents, their text and their outputs",
        discussion: "By their ids, or all of a lesson; ten at a time. Reading of them is stopped.",
        arguments: [Argument("id", .any, .uuid, help: "the documents' ids")],
        flags: [
            .single("lesson", "ID", environment: .none, help: "All documents of this lesson."),
            .toggle("dry-run", environment: .none, help: "Print what would be deleted, and change nothing."),
        ],
        examples: [
            Example("millrace documents delete --lesson algebra-7 --dry-run", "what would go"),
            Example("millrace documents delete 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --yes", "without being asked"),
        ]
    ) { invocation in
        let ids = invocation.parsed.list("id")
        let lesson = invocation.parsed.string("lesson")
        guard ids.isEmpty != (lesson == nil) else {
            throw Failure(.misused, "documents delete takes ids, or --lesson")
        }
        return try await invocation.withSchema { connection in
            try await invocation.deleteDocuments(ids, lesson: lesson, on: connection)
        }
    }
}

extension Invocation {
    fileprivate func blob(of document: DocumentAdmin.Listed, _ kind: String) async throws -> BlobID {
        let text: String?
        if kind == "original" {
            text = document.json["sha256"]?.text
        } else {
            text = try await withSchema { try await DocumentAdmin.output(document.id, kind, on: $0)?.blob }
        }
        guard let blob = text.flatMap({ BlobID($0) }) else {
            throw document.hasEnded
                ? Failure(.notFound, "there is no \(kind) of it", hint: "it was not asked for, or could not be made")
                : Failure(.conflict, "it is still being read", hint: "millrace documents watch \(document.id)")
        }
        return blob
    }

    fileprivate func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        if let number = Descriptor.write(bytes, to: descriptor) {
            throw Failure("the content cannot be written: \(Descriptor.sentence(number))")
        }
    }

    fileprivate func deleteDocuments(
        _ ids: [String], lesson: String?, on connection: Connection
    ) async throws -> ExitCode {
        var all = ids
        if let lesson {
            var last: String?
            while case let page = try await DocumentAdmin.list(
                status: nil, lesson: lesson, tenant: nil, since: nil, after: last, page: 500, on: connection),
                let end = page.last
            {
                all += page.filter { $0.status != "deleted" }.map(\.id)
                last = end.id
            }
        }
        if parsed.isOn("dry-run") {
            console.show(["documents": JSONValue(all), "changed": 0]) {
                console.print("\(Humane.count(all.count, "document")) would be deleted")
            }
            return .done
        }
        if all.count > 1 || lesson != nil { try confirm("deleting \(Humane.count(all.count, "document"))") }
        var deleted = 0
        var unknown = Set(all.map { $0.lowercased() })
        let region = console.live()
        for start in stride(from: 0, to: all.count, by: 10) {
            let chunk = Array(all[start..<min(all.count, start + 10)])
            let rows = try await DocumentAdmin.delete(chunk, lesson: nil, on: connection)
            deleted += rows.count { $0.isDeleted }
            unknown.subtract(rows.map(\.id))
            if all.count > 10, console.format == .human, console.verbosity >= .normal {
                region.update(["deleted \(min(all.count, start + 10)) of \(all.count)"])
            }
        }
        region.finish()
        let count = deleted
        console.show(["documents": .int(all.count), "changed": .int(count)]) {
            console.print("\(Humane.count(count, "document")) deleted")
        }
        guard unknown.isEmpty else {
            let ids = unknown.sorted().prefix(5).joined(separator: ", ") + (unknown.count > 5 ? ", …" : "")
            throw Failure(
                .notFound,
                unknown.count == 1 ? "there is no document \(ids)" : "\(unknown.count) documents are not there: \(ids)",
                hint: "see millrace documents list")
        }
        return .done
    }
}

extension String {
    /// With line ends and form feeds, and no other control characters.
    fileprivate var harmlessLines: String {
        split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\u{c}" }
            .map { DisplayWidth.harmless(String($0)) }.joined(separator: "\n")
    }
}
