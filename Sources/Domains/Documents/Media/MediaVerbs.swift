import CommandKit
import Postgres

extension Command {
    private static let mediaID = Argument("id", .one, .uuid, help: "the media's id")
    private static let mediaPerson = CommandFlag.single("as", "PERSON", environment: .none, help: "As this person.")

    static let mediaList = Command(
        ["media", "list"],
        summary: "List media, the newest first",
        discussion: "Thumbnails, pictures without metadata, and files of rendered templates.",
        flags: [
            .single(
                "status", "STATUS", .choice(["waiting", "done", "failed"]), environment: .none,
                help: "Only media with this status."),
            .single("tenant", "TENANT", environment: .none, help: "Only media of this tenant."),
            .single("person", "PERSON", environment: .none, help: "Only media of this person."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .uuid, environment: .none, help: "Only media older than these."),
        ],
        examples: [Example("millrace media list --status failed", "what could not be made, and why")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let rows = try await invocation.withSchema { connection in
            try await MediaAdmin.list(
                status: parsed.string("status"), tenant: parsed.string("tenant"), person: parsed.string("person"),
                after: parsed.string("after"), page: limit, on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("media", rows, table: mediaTable(rows))
        if rows.count == limit, invocation.console.format == .human, let last = rows.last?["id"]?.text {
            invocation.console.note("more may follow: --after \(last)")
        }
        return .done
    }

    static let mediaShow = Command(
        ["media", "show"],
        summary: "Show how media stand, and their files",
        arguments: [mediaID],
        flags: [mediaPerson],
        examples: [
            Example("millrace media show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "files, or why there are none")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let row = try await invocation.withSchema { try await invocation.media(id, on: $0) }
        invocation.console.show(row) { invocation.printMedia(row) }
        return .done
    }

    static let mediaLink = Command(
        ["media", "link"],
        summary: "Print a link to one of the files",
        discussion: "Who has the link can read the file, so it expires by itself.",
        arguments: [
            mediaID,
            Argument(
                "kind", .one, .choice(["thumbnail", "picture", "html", "text", "pdf"]),
                help: "thumbnail or picture; of a template html, text or pdf"),
        ],
        flags: [
            .single(
                "valid", "DURATION", .duration(.seconds(60) ... .seconds(86_400)), environment: .none, fallback: "1h",
                help: "How long it can be used."), mediaPerson,
        ],
        examples: [
            Example("millrace media link 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e thumbnail --valid 10m", "for ten minutes")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let (id, kind) = (parsed.string("id") ?? "", parsed.string("kind") ?? "")
        let url = try await invocation.withSchema { connection in
            try await MediaAdmin.link(
                id, kind, valid: parsed.duration("valid") ?? .seconds(3600), person: parsed.string("as"),
                on: connection)
        }
        invocation.console.show(["id": .string(id), "kind": .string(kind), "url": .string(url)]) {
            invocation.console.print(url)
        }
        return .done
    }

    static let mediaDelete = Command(
        ["media", "delete"],
        summary: "Delete media and their files",
        discussion: "A job that has not ended is called off.",
        arguments: [Argument("id", .many, .uuid, help: "the media's ids")],
        flags: [mediaPerson],
        examples: [
            Example("millrace media delete 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --as anna", "if they are anna's")
        ]
    ) { invocation in
        let ids = invocation.parsed.list("id")
        if ids.count > 1 { try invocation.confirm("deleting \(ids.count) media and their files") }
        return try await invocation.withSchema { try await invocation.deleteMedia(ids, on: $0) }
    }

    private static func mediaTable(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("id"), .init("what"), .init("status"), .init("person", shrinks: true),
                .init("tenant", shrinks: true), .init("files", shrinks: true), .init("created"), .init("reason"),
            ], whenEmpty: "there are no media")
        for row in rows {
            let status = row["status"]?.text ?? ""
            let files = (row["files"]?.items ?? []).compactMap { $0["kind"]?.text }
            table.add([
                .init(row["id"]?.text ?? ""), .init(row["what"]?.text ?? ""),
                .init(status, status == "failed" ? .red : .bold), .init(row["owner"]?.text ?? "-"),
                .init(row["tenant"]?.text ?? "-"), .init(files.joined(separator: ", ")),
                .init(row["created_at"]?.text ?? ""), .init(row["reason"]?.text ?? ""),
            ])
        }
        return table
    }
}

extension Invocation {
    /// The row, as the person of `--as` may see it; a failure when there is none.
    func media(_ id: String, on connection: Connection) async throws -> JSONValue {
        guard let row = try await MediaAdmin.find(id, person: parsed.string("as"), on: connection) else {
            throw Failure(.notFound, "there are no media \(id)", hint: "see millrace media list")
        }
        return try JSONValue.read(row)
    }

    func printMedia(_ row: JSONValue) {
        guard case .object(let members) = row else { return }
        for member in members where member.key != "files" && member.value != .null {
            console.print("\(member.key)  \(DisplayWidth.harmless(member.value.text ?? member.value.compact))")
        }
        for file in row["files"]?.items ?? [] {
            let sides = [file["width"]?.integer, file["height"]?.integer].compactMap(\.self).map { "\($0)" }
            console.print(
                "\(file["kind"]?.text ?? "?")  \(file["storage_url"]?.text ?? ""), \(file["size"]?.compact ?? "?") bytes"
                    + (sides.isEmpty ? "" : ", \(sides.joined(separator: " by "))"))
        }
    }

    fileprivate func deleteMedia(_ ids: [String], on connection: Connection) async throws -> ExitCode {
        var changed = 0
        let region = console.live()
        for (index, id) in ids.enumerated() {
            if try await MediaAdmin.delete(id, person: parsed.string("as"), on: connection) { changed += 1 }
            if ids.count > 10, (index + 1) % 10 == 0, console.format == .human, console.verbosity >= .normal {
                region.update(["deleted \(index + 1) of \(ids.count)"])
            }
        }
        region.finish()
        let gone = changed
        console.show(["media": .int(ids.count), "changed": .int(gone)]) { console.print("\(gone) media deleted") }
        let missing = Set(ids.map { $0.lowercased() }).count - gone
        if missing > 0 {
            throw Failure(
                .notFound, "\(missing) of them \(missing == 1 ? "is" : "are") not there",
                hint: "see millrace media list")
        }
        return .done
    }
}
