import Listeners
import Postgres
import Templates

enum WebhookPages {
    static let routes = [
        ConsolePageRoute(path: "/webhooks", room: "webhooks", make: webhooks),
        ConsolePageRoute(path: "/webhooks/{id}", room: "webhooks", make: webhook),
    ]

    private static func webhooks(_ context: PageContext) async throws -> ConsolePage {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(w)), '[]') from (select * from millrace.webhooks w order by w.created_at desc limit 200) w"
        ).elements
        return ConsolePage(
            title: "Webhooks", entry: "Webhooks",
            parts: [
                try await LanePart.lanes(of: "webhooks", context),
                .table(
                    rows,
                    [
                        .own("Webhook") { row in
                            ConsoleCell(
                                row.text("url") ?? "", href: PageAddress.to("/webhooks/\(row.text("id") ?? "")"))
                        }, .state("State", "state"), .text("Reason", "reason"), .text("Tenant", "tenant"),
                        .count("Waiting", "waiting"), .time("Failing since", "failing_since"),
                        .time("Last success", "succeeded_at"),
                    ], empty: "There are no webhooks."),
            ])
    }

    private static func webhook(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let found = try await context.json(
            """
            select jsonb_build_object('webhook', (select to_jsonb(w) from millrace.webhooks w where w.id = $1::text::uuid),
                'deliveries', (select coalesce(jsonb_agg(to_jsonb(d)), '[]') from (select * from millrace.webhook_deliveries d where d.webhook = $1::text::uuid order by d.seq desc limit 50) d))
            """, [.text(id)])
        guard let webhook = found["webhook"], let state = webhook.text("state") else {
            throw ErrorAnswer(.notFound, "there is no webhook \(id.prefix(40))")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Address", .text(webhook.text("url"))), ("State", .state(state)),
                ("Reason", .text(webhook.text("reason"))),
                ("Waiting", .count(webhook.int("waiting"))), ("Failing since", .time(webhook.text("failing_since"))),
                ("Last success", .time(webhook.text("succeeded_at"))),
            ])
        ]
        if context.mayAct(), state == "disabled" {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "enable", action: PageAddress.to("/act/webhook.enable"), button: "Switch on",
                        fields: [ConsoleField(name: "id", value: id, kind: .hidden)])
                ]))
        }
        parts += [
            .heading("Deliveries"),
            .table(
                found.list("deliveries"),
                [
                    .own("Event") { ConsoleCell(Figures.brief(id: $0.text("event") ?? "")) }, .state("State", "state"),
                    .count("Attempts", "attempts"), .text("Code", "code"), .text("Error", "error"),
                    .time("Due", "due_at"),
                    .time("Ended", "done_at"),
                ], empty: "Nothing has been sent yet."),
        ]
        return ConsolePage(title: "Webhook \(Figures.brief(id: id))", entry: "Webhooks", parts: parts)
    }
}
