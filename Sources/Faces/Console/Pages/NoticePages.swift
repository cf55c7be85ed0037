import Postgres
import Templates

enum NoticePages {
    static let routes = [
        ConsolePageRoute(path: "/notices", make: notices)
    ]

    private static func notices(_ context: PageContext) async throws -> ConsolePage {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(n) - 'person'), '[]') from millrace.notice_list(null, $1, $2, $3, 50) n",
            [.text(context.query("status")), .bool(context.query("alarms") == "yes"), .text(context.query("after"))]
        ).elements
        let filter = [("status", context.query("status")), ("alarms", context.query("alarms"))]
        let next = rows.count < 50 ? nil : PageAddress.to("/notices", filter + [("after", rows.last?.text("id"))])
        return ConsolePage(
            title: "Notices", entry: "Notices",
            parts: [
                try await LanePart.lanes(of: "notices", context),
                .forms([
                    ConsoleForm(
                        id: "filter", action: PageAddress.to("/notices"), button: "Show",
                        fields: [
                            ConsoleField(
                                name: "status", label: "Status", value: context.query("status") ?? "",
                                kind: .choice([
                                    "", "pending", "attempting", "accepted", "failed", "expired", "cancelled",
                                ])),
                            ConsoleField(
                                name: "alarms", label: "Only alarms", value: context.query("alarms") ?? "no",
                                kind: .choice(["no", "yes"])),
                        ], isSearch: true)
                ]),
                .table(
                    rows,
                    [
                        .own("Notice") { ConsoleCell(Figures.brief(id: $0.text("id") ?? "")) }, .text("Kind", "kind"),
                        .text("Channel", "channel"), .text("Provider", "provider"), .state("Status", "status"),
                        .count("Attempts", "attempts"),
                        .own("Alarm") { ConsoleCell($0.isTrue("alarm") ? "yes" : "no") },
                        .time("Due", "due_at"), .time("Accepted", "accepted_at"), .text("Error", "error"),
                    ], empty: "There are no such notices.", next: next),
            ])
    }
}
