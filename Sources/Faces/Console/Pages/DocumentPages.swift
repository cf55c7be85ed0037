import Listeners
import Postgres
import Templates

/// Documents, and their pages with the recognised words over the picture.
enum DocumentPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/documents", make: list), ConsolePageRoute(path: "/documents/{id}", make: one),
        ConsolePageRoute(path: "/documents/{id}/page", make: page),
    ]

    static let files: [ConsoleFileRoute] = [ConsoleFileRoute(path: "/documents/{id}/preview", make: preview)]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object('state', (select to_jsonb(s) from millrace.document_state() s),
                'documents', (select coalesce(jsonb_agg(to_jsonb(d)), '[]') from millrace.documents_shown($1, $2::text::uuid, 50) d))
            """, [.text(context.query("status")), .text(context.query("after"))])
        let documents = found.list("documents")
        let state = found["state"] ?? .null
        let next =
            documents.count < 50
            ? nil
            : PageAddress.to(
                "/documents", [("status", context.query("status")), ("after", documents.last?.text("id"))])
        return ConsolePage(
            title: "Documents", entry: "Documents",
            parts: [
                .facts([
                    ("Being read", .count(state.int("processing"))),
                    ("Waiting pages", .count(state.int("waiting_pages"))),
                    ("Failed today", .count(state.int("failed_today"))), ("Oldest", .time(state.text("oldest"))),
                ]),
                .forms([
                    ConsoleForm(
                        id: "filter", action: PageAddress.to("/documents"), button: "Show",
                        fields: [
                            ConsoleField(
                                name: "status", label: "Status", value: context.query("status") ?? "",
                                kind: .choice(["", "processing", "completed", "failed", "deleted"]))
                        ], isSearch: true)
                ]),
                .table(
                    documents,
                    [
                        .own("Document") { row in
                            ConsoleCell(
                                Figures.brief(id: row.text("id") ?? ""),
                                href: PageAddress.to("/documents/\(row.text("id") ?? "")"))
                        }, .text("Type", "mime_type"), .state("Status", "status"), .text("Stage", "stage"),
                        .count("Pages", "pages"), .count("Done", "pages_done"), .count("Failed", "pages_failed"),
                        .text("Reason", "reason"), .time("Created", "created_at"),
                    ], empty: "There are no such documents.", next: next),
            ])
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let story = try await context.json("select millrace.document_shown($1::text::uuid)", [.text(id)])
        guard let status = story.text("status") else {
            throw ErrorAnswer(.notFound, "there is no document \(id.prefix(40))")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Status", .state(status)), ("Stage", .text(story.text("stage"))),
                ("Type", .text(story.text("mime_type"))),
                ("Size", story.int("size").map { ConsoleCell(Figures.bytes($0)) } ?? .none),
                ("Pages", .count(story.int("pages"))), ("Done", .count(story.int("pages_done"))),
                ("Failed", .count(story.int("pages_failed"))), ("Tenant", .text(story.text("tenant"))),
                ("Created", .time(story.text("created_at"))), ("Ended", .time(story.text("finished_at"))),
                ("Computing time", .span(story.double("cpu_ms").map { $0 / 1000 })),
                ("Job", .text(story.text("job"), href: story.int("job").map(PageAddress.job))),
            ])
        ]
        if let sentence = story.text("sentence") ?? story.text("reason") {
            parts.append(.paragraph(sentence, tone: status == "failed" ? "bad" : nil))
        }
        if context.mayAct(), status == "failed" || status == "completed" {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "retry", action: PageAddress.to("/act/document.retry"), button: "Read it again",
                        fields: [ConsoleField(name: "id", value: id, kind: .hidden)])
                ]))
        }
        let mayRead = context.mayAct()
        parts.append(.heading("Pages"))
        if !mayRead { parts.append(.paragraph("A viewer sees the state of a document, but not what it contains.")) }
        parts.append(
            .table(
                Array(story.list("page").prefix(500)),
                [
                    .own("Page") { row in
                        // What stands in documents is not for viewers, and of an unread page there is nothing.
                        let isShown = mayRead && row.text("status") == "done"
                        return ConsoleCell(
                            row.text("page") ?? "",
                            href: isShown ? PageAddress.to("/documents/\(id)/page", [("page", row.text("page"))]) : nil)
                    }, .state("Status", "status"), .text("Stage", "stage"), .count("Words", "words"),
                    .text("Confidence", "confidence"), .text("Rotation", "rotation"),
                    .own("Computing time", number: true) { .span($0.double("cpu_ms").map { $0 / 1000 }) },
                    .text("Reason", "reason"), .text("Sentence", "sentence"),
                ], empty: "Its pages are not known yet."))
        return ConsolePage(title: "Document \(id)", entry: "Documents", parts: parts)
    }

    private static func page(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        guard context.mayAct() else {
            throw ErrorAnswer(
                .permission, "a viewer may not see what documents contain",
                hint: "ask an operator, or ask for that role")
        }
        let number = try context.number("page") ?? 1
        let found = try await context.json(
            """
            select jsonb_build_object('page', (select jsonb_build_object('text', c.text, 'content', c.content) from millrace.document_contents($1::text::uuid, $2, 1, false) c where c.page = $2),
                'preview', exists (select from millrace.document_output_of($1::text::uuid, 'preview')))
            """, [.text(id), .int4(Int32(clamping: number))])
        guard let content = found["page"]?["content"] else {
            throw ErrorAnswer(.notFound, "page \(number) of this document has not been read")
        }
        let words = content.list("blocks").flatMap { $0.list("lines") }.flatMap { $0.list("words") }
        let (width, height) = (content.double("width") ?? 1, content.double("height") ?? 1)
        var svg =
            "<svg viewBox=\"0 0 \(Int(width)) \(Int(height))\" role=\"img\" aria-label=\"\(words.count) recognised words\">"
        for word in words.prefix(5000) {
            guard let box = word["box"], let left = box.double("left"), let top = box.double("top"),
                let right = box.double("right"), let bottom = box.double("bottom")
            else { continue }
            let confidence = word.double("confidence").map { " (\(Int($0)) %)" } ?? ""
            svg +=
                "<rect x=\"\(Int(left))\" y=\"\(Int(top))\" width=\"\(max(1, Int(right - left)))\" height=\"\(max(1, Int(bottom - top)))\"><title>\(Chart.escaped((word.text("text") ?? "") + confidence))</title></rect>"
        }
        svg += "</svg>"
        let hasPicture = number == 1 && found.isTrue("preview")
        let picture =
            hasPicture
            ? "<img src=\"\(Chart.escaped(PageAddress.to("/documents/\(id)/preview")))\" alt=\"Page 1 as a picture\" width=\"\(Int(width))\" height=\"\(Int(height))\">"
            : ""
        let frame = hasPicture ? "sheet" : "sheet bare"
        return ConsolePage(
            title: "Page \(number) of document \(Figures.brief(id: id))", entry: "Documents",
            parts: [
                .facts([
                    ("Words", .count(words.count)), ("Origin", .text(content.text("origin"))),
                    ("Confidence", .text(content.text("confidence").map { String($0.prefix(5)) })),
                    ("Document", ConsoleCell(Figures.brief(id: id), href: PageAddress.to("/documents/\(id)"))),
                ]),
                .html("<div class=\"\(frame)\">\(picture)\(svg)</div>"),
                .code(title: "Text", text: found["page"]?.text("text") ?? ""),
            ])
    }

    private static func preview(_ context: PageContext) async throws -> Response {
        let id = try context.uuid()
        let blob = try await context.json(
            "select to_jsonb(encode(blob, 'hex')) from millrace.document_output_of($1::text::uuid, 'preview')",
            [.text(id)])
        guard let name = blob.plainText, let bytes = try await context.blobs?(name, context.reader.share) else {
            throw ErrorAnswer(.notFound, "this document has no picture")
        }
        return Response(headers: [Header("Content-Type", "image/png")], body: .bytes(bytes))
    }
}
