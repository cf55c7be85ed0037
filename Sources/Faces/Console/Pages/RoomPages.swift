import Listeners
import Postgres
import Templates

/// Quests, notices and webhooks; their lanes look like queues.
enum RoomPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/quests", make: quests), ConsolePageRoute(path: "/notices", make: notices),
        ConsolePageRoute(path: "/webhooks", make: webhooks), ConsolePageRoute(path: "/webhooks/{id}", make: webhook),
        ConsolePageRoute(path: "/storage", make: storage),
    ]

    static func lanes(_ lanes: [TemplateValue]) -> ConsolePart {
        .table(
            lanes,
            [
                .own("Lane") { ConsoleCell("\($0.text("room") ?? "") / \($0.text("lane") ?? "")") },
                .count("Waiting", "waiting"), .count("Later", "later"), .count("Running", "running"),
                .span("Oldest", "oldest_s"), .count("Ended in 1 h", "ended"), .count("Failed in 1 h", "failed"),
                .count("Workers", "workers"),
            ], empty: "No lane is used.")
    }

    private static func lanes(of room: String, _ context: PageContext) async throws -> ConsolePart {
        let found = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(l)), '[]') from millrace.room_lanes(2000) l where l.room = $1",
            [.text(room)])
        return lanes(found.elements)
    }

    private static func quests(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object('state', (select to_jsonb(s) from millrace.quest_state() s),
                'waves', (select coalesce(jsonb_agg(to_jsonb(w)), '[]') from millrace.quest_waves() w))
            """)
        let state = found["state"] ?? .null
        return ConsolePage(
            title: "Quests", entry: "Quests",
            parts: [
                .facts([
                    ("Families past their midnight", .count(state.int("due"))), ("Lag", .span(state.double("lag"))),
                    (
                        "Families that cannot be turned over",
                        ConsoleCell(
                            Figures.count(state.int("broken") ?? 0),
                            tone: (state.int("broken") ?? 0) > 0 ? "bad" : "quiet")
                    ),
                ]),
                .heading("The coming midnights"),
                .table(
                    found.list("waves"),
                    [
                        .time("Midnight", "at"), .text("Zone", "zone"),
                        .own("Families", number: true) { row in
                            ConsoleCell(Figures.count(row.int("families") ?? 0, cap: row.int("cap") ?? .max))
                        },
                    ], empty: "There are no families."),
            ])
    }

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
                try await lanes(of: "notices", context),
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
                        .own("Notice") { ConsoleCell(String(($0.text("id") ?? "").prefix(8))) }, .text("Kind", "kind"),
                        .text("Channel", "channel"), .text("Provider", "provider"), .state("Status", "status"),
                        .count("Attempts", "attempts"),
                        .own("Alarm") { ConsoleCell($0.isTrue("alarm") ? "yes" : "no") },
                        .time("Due", "due_at"), .time("Accepted", "accepted_at"), .text("Error", "error"),
                    ], empty: "There are no such notices.", next: next),
            ])
    }

    private static func webhooks(_ context: PageContext) async throws -> ConsolePage {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(w)), '[]') from (select * from millrace.webhooks w order by w.created_at desc limit 200) w"
        ).elements
        return ConsolePage(
            title: "Webhooks", entry: "Webhooks",
            parts: [
                try await lanes(of: "webhooks", context),
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
                    .own("Event") { ConsoleCell(String(($0.text("event") ?? "").prefix(8))) }, .state("State", "state"),
                    .count("Attempts", "attempts"), .text("Code", "code"), .text("Error", "error"),
                    .time("Due", "due_at"),
                    .time("Ended", "done_at"),
                ], empty: "Nothing has been sent yet."),
        ]
        return ConsolePage(title: "Webhook \(id.prefix(8))", entry: "Webhooks", parts: parts)
    }

    private static func storage(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'sizes', (select coalesce(jsonb_agg(to_jsonb(s)), '[]') from (select * from millrace.sizes() limit 40) s),
                'pins', (select coalesce(jsonb_agg(to_jsonb(p)), '[]') from millrace.pins() p),
                'partitions', (select to_jsonb(p) from millrace.partitions() p),
                'schema', (select to_jsonb(s) from millrace.schema_state() s))
            """)
        let partitions = found["partitions"] ?? .null
        return ConsolePage(
            title: "Storage", entry: "Storage",
            parts: [
                .facts([
                    ("Days of history prepared", .count(partitions.int("history_days"))),
                    ("Job numbers prepared", .count(partitions.int("job_ids"))),
                    ("Stray rows", .count(partitions.int("strays"))),
                ]), .heading("Oldest transactions"),
                .table(
                    found.list("pins"),
                    [
                        .text("Process", "pid"), .text("Application", "application"), .text("User", "usename"),
                        .text("State", "state"), .span("Open for", "age_s"),
                    ], empty: "No transaction holds old row versions."), .heading("Tables"),
                .table(
                    found.list("sizes"),
                    [
                        .text("Table", "name"),
                        .own("Size", number: true) { .init(Figures.bytes($0.int("bytes") ?? 0)) },
                        .count("Dead rows", "dead"),
                    ], empty: ""),
            ] + (try await PastPages.storageCharts(context)))
    }
}
