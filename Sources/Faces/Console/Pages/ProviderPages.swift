import Listeners
import Postgres
import Templates

/// Providers, with the history of their breakers beside the jobs that they hold up.
enum ProviderPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/providers", make: list), ConsolePageRoute(path: "/provider", make: one),
    ]

    private static let columns: [RowColumn] = [
        .own("Provider") { row in
            ConsoleCell(
                row.text("provider") ?? "", href: PageAddress.to("/provider", [("name", row.text("provider"))]))
        }, .text("Class", "class"), .state("State", "state"), .count("OK", "ok"), .count("Failed", "failed"),
        .count("Throttled", "throttled"),
        .own("p99", number: true) { .span($0.double("p99_ms").map { $0 / 1000 }) },
        .own("Quota") { row in
            guard let limit = row.text("quota_limit") else { return .none }
            return ConsoleCell("\(row.text("quota_used") ?? "?") of \(limit)")
        }, .text("Reason", "reason"), .time("Since", "changed_at"),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let providers = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(p) order by p.state = 'closed', p.provider, p.class), '[]') from (select * from millrace.providers limit 500) p"
        ).elements
        return ConsolePage(
            title: "Providers", entry: "Providers",
            parts: [.table(providers, columns, empty: "No provider has been called yet.")])
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which provider?", field: "name") }
        let found = try await context.json(
            """
            select jsonb_build_object(
                'circuits', (select coalesce(jsonb_agg(to_jsonb(p) order by p.class), '[]') from millrace.providers p where p.provider = $1),
                'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from (select * from millrace.provider_events v where v.provider = $1 order by v.at desc limit 50) e),
                'workers', (select coalesce(jsonb_agg(to_jsonb(w)), '[]') from millrace.provider_workers($1) w),
                'lanes', (select coalesce(jsonb_agg(to_jsonb(l)), '[]') from millrace.room_lanes(2000) l),
                'retrying', (select coalesce(jsonb_agg(to_jsonb(r)), '[]') from (select * from millrace.retrying(2000) limit 20) r))
            """, [.text(name)])
        let circuits = found.list("circuits")
        guard !circuits.isEmpty else { throw ErrorAnswer(.notFound, "no provider \(name.prefix(60)) has been called") }
        var parts: [ConsolePart] = [.table(circuits, columns, empty: "")]
        if context.mayAct() {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "force", action: PageAddress.to("/act/provider.force"), button: "Force",
                        fields: [
                            ConsoleField(name: "provider", value: name, kind: .hidden),
                            ConsoleField(
                                name: "state", label: "State", value: "open",
                                kind: .choice(["open", "closed", "observe", "auto"]),
                                hint: "open: nobody calls it. auto: the breaker decides again."),
                            ConsoleField(
                                name: "hold", label: "For", value: "1 hour",
                                kind: .choice(["10 minutes", "1 hour", "8 hours", "1 day", "7 days"])),
                            ConsoleField(name: "reason", label: "Reason", isNeeded: true),
                        ])
                ]))
        }
        parts += [
            .heading("History"),
            .table(
                found.list("events"),
                [
                    .time("Time", "at"), .text("Class", "class"), .state("From", "from_state"),
                    .state("To", "to_state"),
                    .text("By", "by"), .text("Reason", "reason"),
                ], empty: "Its state has never changed."),
            .heading("What waits for providers"),
            .table(
                found.list("retrying"),
                [
                    .text("Queue", "queue") { PageAddress.queue($0.text("queue") ?? "") }, .text("Kind", "kind"),
                    .own("Wait for another attempt", number: true) { row in
                        .count(
                            row.int("jobs"),
                            href: PageAddress.to("/jobs", [("state", "retrying"), ("kind", row.text("kind"))]))
                    },
                ], empty: "No job waits for another attempt."), LanePart.lanes(found.list("lanes")),
            .heading("What each worker sees"),
            .table(
                found.list("workers"),
                [
                    .text("Worker", "worker"), .text("Class", "class"), .count("OK", "ok"), .count("Failed", "failed"),
                    .count("Throttled", "throttled"), .text("Vote", "vote"), .time("Seen", "seen_at"),
                ], empty: "No worker called it in the last minute."),
        ]
        return ConsolePage(title: "Provider \(name)", entry: "Providers", parts: parts)
    }
}
