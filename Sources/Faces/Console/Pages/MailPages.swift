import Listeners
import Postgres
import Templates

/// Messages and their stories.
enum MailPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/mail", make: list), ConsolePageRoute(path: "/mail/{id}", make: one),
    ]

    private static let states = [
        "", "queued", "sending", "accepted", "delivered", "bounced", "failed", "cancelled", "parked", "unknown",
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
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
                .forms([
                    ConsoleForm(
                        id: "filter", action: PageAddress.to("/mail"), button: "Show",
                        fields: [
                            ConsoleField(
                                name: "status", label: "Status", value: context.query("status") ?? "",
                                kind: .choice(states))
                        ], isSearch: true)
                ]),
                .table(
                    mails,
                    [
                        .own("Message") { mail in
                            ConsoleCell(
                                String((mail.text("id") ?? "").prefix(8)),
                                href: PageAddress.to("/mail/\(mail.text("id") ?? "")"))
                        }, .text("Kind", "kind"), .state("Status", "status"), .text("Service", "service"),
                        .text("Template", "template"), .count("Attempts", "attempts"), .time("Created", "created_at"),
                        .time("Sent", "sent_at"), .text("Error", "error"),
                    ], empty: "There are no such messages.", next: next),
            ])
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
                ], empty: "The provider has told nothing yet."),
        ]
        return ConsolePage(title: "Message \(id)", entry: "Mail", parts: parts)
    }
}
