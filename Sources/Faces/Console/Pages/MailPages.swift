import Listeners
import Postgres
import Templates

/// Messages and their stories.
enum MailPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/mail", make: list), ConsolePageRoute(path: "/mail/{id}", make: one),
    ]

    static let files: [ConsoleFileRoute] = [ConsoleFileRoute(path: "/mail/{id}/body", make: body)]

    private static let states = [
        "", "queued", "sending", "accepted", "delivered", "bounced", "failed", "cancelled", "parked", "unknown",
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        if context.mayAct(), let sealed = context.query("found") {
            return try await searched(context, sealed)
        }
        let found = try await context.json(
            """
            select jsonb_build_object('state', (select to_jsonb(s) from millrace.mail_state() s),
                'mails', (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from millrace.mail_list($1, null, $2::text::uuid, 50) m))
            """, [.text(context.query("status")), .text(context.query("after"))])
        let mails = found.list("mails")
        let next =
            mails.count < 50
            ? nil : PageAddress.to("/mail", [("status", context.query("status")), ("after", mails.last?.text("id"))])
        let state = found["state"] ?? .null
        return ConsolePage(
            title: "Mail", entry: "Mail",
            parts: [
                .facts([
                    ("Service", .text(state.text("current"))), ("Chosen service", .text(state.text("chosen"))),
                    ("Parked", .count(state.int("parked"), href: PageAddress.to("/mail", [("status", "parked")]))),
                    (
                        "Outcome unknown",
                        .count(state.int("unknown"), href: PageAddress.to("/mail", [("status", "unknown")]))
                    ),
                ]),
                .forms(
                    [
                        ConsoleForm(
                            id: "filter", action: PageAddress.to("/mail"), button: "Show",
                            fields: [
                                ConsoleField(
                                    name: "status", label: "Status", value: context.query("status") ?? "",
                                    kind: .choice(states))
                            ], isSearch: true)
                    ] + (context.mayAct() ? [search([:])] : [])),
                .table(
                    mails,
                    [
                        .own("Message") { mail in
                            ConsoleCell(
                                Figures.brief(id: mail.text("id") ?? ""),
                                href: PageAddress.to("/mail/\(mail.text("id") ?? "")"))
                        }, .text("Kind", "kind"), .state("Status", "status"), .text("Service", "service"),
                        .text("Template", "template"), .count("Attempts", "attempts"), .time("Created", "created_at"),
                        .time("Sent", "sent_at"), .text("Error", "error"),
                    ], empty: "There are no such messages.", next: next),
            ])
    }

    private static func search(_ words: [String: String]) -> ConsoleForm {
        ConsoleForm(
            id: "find", action: PageAddress.to("/mail/find"), button: "Find",
            fields: [
                ConsoleField(name: "recipient", label: "Recipient", value: words["recipient"] ?? ""),
                ConsoleField(name: "subject", label: "Subject has", value: words["subject"] ?? ""),
            ], isSearch: true, isSealed: true)
    }

    /// The page that has what a form searches for.
    static func address(finding form: [String: String], _ context: PageContext) -> String {
        let words = form.filter { ["recipient", "subject"].contains($0.key) && !$0.value.allSatisfy(\.isWhitespace) }
        let sealed = words.isEmpty ? nil : context.queries.seal(words, for: context.visitor, at: context.now)
        return PageAddress.to("/mail", [("found", sealed)])
    }

    /// By recipient and subject, for those who may see them; the audit has that somebody has searched.
    private static func searched(_ context: PageContext, _ sealed: String) async throws -> ConsolePage {
        guard let words = context.queries.open(sealed, for: context.visitor, at: context.now) else {
            throw ErrorAnswer(
                .notFound, "this search is over, or somebody else's", hint: "go to Mail, and search again")
        }
        let mails = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(m)), '[]') from millrace.mails_found($1, $2, $3::text::uuid, 50) m",
            [.text(words["recipient"]), .text(words["subject"]), .text(context.query("after"))]
        ).elements
        let next =
            mails.count < 50
            ? nil : PageAddress.to("/mail", [("found", sealed), ("after", mails.last?.text("id"))])
        return ConsolePage(
            title: "Mail", entry: "Mail",
            parts: [
                .forms([search(words)]),
                .table(
                    mails,
                    [
                        .own("Message") { mail in
                            ConsoleCell(
                                Figures.brief(id: mail.text("id") ?? ""),
                                href: PageAddress.to("/mail/\(mail.text("id") ?? "")"))
                        },
                        .own("To") { .text($0.list("recipients").compactMap(\.plainText).joined(separator: ", ")) },
                        .text("Subject", "subject"), .state("Status", "status"), .time("Created", "created_at"),
                        .time("Sent", "sent_at"), .text("Error", "error"),
                    ],
                    empty: words["recipient"] == nil
                        ? "None of the newest 5,000 messages has this in its subject." : "There are no such messages.",
                    next: next),
            ])
    }

    private static func content(_ context: PageContext, _ id: String) async throws -> TemplateValue {
        guard context.mayAct() else {
            throw ErrorAnswer(
                .permission, "a viewer may not see what messages say", hint: "ask an operator, or ask for that role")
        }
        return try await context.json("select millrace.mail_content_shown($1::text::uuid)", [.text(id)])
    }

    /// To whom, and what it says; its HTML in a frame that may run and fetch nothing.
    private static func read(_ context: PageContext, _ id: String) async throws -> [ConsolePart] {
        let said = try await content(context, id)
        func addresses(_ name: String) -> ConsoleCell {
            .text(said.list(name).compactMap(\.plainText).joined(separator: ", "))
        }
        var parts: [ConsolePart] = [
            .heading("What it says"),
            .facts([
                ("Subject", .text(said.text("subject"))), ("To", addresses("recipients")), ("Copies", addresses("cc")),
                ("Blind copies", addresses("bcc")), ("Reply to", .text(said.text("reply_to"))),
            ]),
        ]
        if said.text("body_html") != nil {
            let address = Chart.escaped(PageAddress.to("/mail/\(id)/body"))
            parts.append(.html("<iframe sandbox title=\"What the message says\" src=\"\(address)\"></iframe>"))
        }
        if let text = said.text("body_text") { parts.append(.code(title: "As text", text: text)) }
        return parts
    }

    private static func body(_ context: PageContext) async throws -> Response {
        guard let html = try await content(context, try context.uuid()).text("body_html") else {
            throw ErrorAnswer(.notFound, "this message has no HTML")
        }
        return Response(
            headers: [
                Header("Content-Type", "text/html; charset=utf-8"),
                Header(
                    "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self' "
                        + context.frames),
                Header("X-Frame-Options", "SAMEORIGIN"), Header("Cache-Control", "no-store"),
            ], body: .bytes(Array(html.utf8)))
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let story = try await context.json("select millrace.mail_shown($1::text::uuid)", [.text(id)])
        guard let status = story.text("status") else {
            throw ErrorAnswer(.notFound, "there is no message \(id.prefix(40))")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Status", .state(status)), ("Kind", .text(story.text("kind"))),
                ("Service", .text(story.text("service"))), ("Template", .text(story.text("template"))),
                ("Template version", .text(story.text("template_version"))),
                ("Purpose", .text(story.text("purpose"))), ("Priority", .text(story.text("priority"))),
                ("Created", .time(story.text("created_at"))), ("Sent", .time(story.text("sent_at"))),
                ("Job", .text(story.text("job"), href: story.int("job").map(PageAddress.job))),
            ])
        ]
        if let error = story.text("error") { parts.append(.paragraph(error, tone: "bad")) }
        if context.mayAct() {
            let field = ConsoleField(name: "id", value: id, kind: .hidden)
            if status == "parked" || status == "unknown" {
                parts.append(
                    .forms([
                        ConsoleForm(
                            id: "resolve", action: PageAddress.to("/act/mail.resolve"), button: "Resolve",
                            fields: [
                                field,
                                ConsoleField(
                                    name: "verdict", label: "What became of it", value: "accepted",
                                    kind: .choice(["accepted", "refused", "again"]),
                                    hint: "again: send it once more, perhaps for the second time."),
                            ])
                    ]))
            } else if status == "queued" {
                parts.append(
                    .forms([
                        ConsoleForm(
                            id: "cancel", action: PageAddress.to("/act/mail.cancel"), button: "Cancel", fields: [field])
                    ]))
            }
        }
        if context.query("read") != nil {
            parts += try await read(context, id)
        } else if context.mayAct() {
            let address = PageAddress.to("/mail/\(id)", [("read", "yes")])
            parts.append(.list([ConsoleCell("Read the message; the audit will say so", href: address)]))
        }
        parts += [
            .heading("Attempts"),
            .table(
                story.list("attempts"),
                [
                    .text("Attempt", "n"), .text("Provider", "provider"), .state("Outcome", "outcome"),
                    .text("Code", "code"), .text("Error", "error"), .time("Time", "at"),
                    .own("Took", number: true) { .span($0.double("ms").map { $0 / 1000 }) },
                ], empty: "Nobody has tried yet."), .heading("Events"),
            .table(
                story.list("events"),
                [
                    .time("Time", "at"), .state("Event", "type"),
                    .own("Data") { ConsoleCell(String(($0["data"]?.pretty ?? "").prefix(400)), tone: "mono") },
                ], empty: "The provider has not reported anything yet."),
        ]
        return ConsolePage(title: "Message \(id)", entry: "Mail", parts: parts)
    }
}
