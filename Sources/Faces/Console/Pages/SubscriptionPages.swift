import Listeners
import Postgres
import Templates

/// What customers have bought, and what stores said of it. Nobody's name is shown.
enum SubscriptionPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/subscriptions", make: list),
        ConsolePageRoute(path: "/subscriptions/{id}", make: one),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let filter = ["state", "plan", "store"].map { ($0, context.query($0)) }
        let after = context.query("after")
        let found = try await context.json(
            """
            select jsonb_build_object('state', (select to_jsonb(s) from millrace.subscription_state() s),
                'rows', (select coalesce(jsonb_agg(to_jsonb(x)), '[]') from millrace.subscriptions_shown($1, $2, $3, $4::text::uuid, 50) x))
            """, filter.map { .text($0.1) } + [.text(after)])
        let rows = found.list("rows")
        let next = rows.count < 50 ? nil : PageAddress.to("/subscriptions", filter + [("after", rows.last?.text("id"))])
        return ConsolePage(
            title: "Subscriptions", entry: "Subscriptions",
            parts: troubles(found["state"] ?? .null) + [
                .heading("Changed last"), .forms([search(context)]),
                .table(
                    rows,
                    [
                        .own("Subscription") { row in
                            ConsoleCell(
                                Figures.brief(id: row.text("id") ?? ""),
                                href: PageAddress.to("/subscriptions/\(row.text("id") ?? "")"))
                        }, .own("Plan") { plan($0) }, .state("State", "state"), .text("Store", "store"),
                        .time("Period ends", "period_end"), .own("Renews") { yes($0, "renews") },
                        .own("Owner") { owner($0) }, .time("Next change", "next_at"), .time("Changed", "changed_at"),
                    ], empty: "There are no such subscriptions.", next: next),
            ])
    }

    private static func search(_ context: PageContext) -> ConsoleForm {
        ConsoleForm(
            id: "filter", action: PageAddress.to("/subscriptions"), button: "Show",
            fields: [
                ConsoleField(name: "plan", label: "Plan", value: context.query("plan") ?? ""),
                ConsoleField(
                    name: "state", label: "State", value: context.query("state") ?? "",
                    kind: .choice([
                        "", "new", "trial", "active", "grace", "cancelled", "expired", "revoked", "incomplete",
                        "paused",
                    ])),
                ConsoleField(
                    name: "store", label: "Store", value: context.query("store") ?? "",
                    kind: .choice(["", "stripe", "apple", "manual"])),
            ], isSearch: true)
    }

    /// What cannot do its work.
    private static func troubles(_ state: TemplateValue) -> [ConsolePart] {
        func count(_ key: String) -> ConsoleCell {
            let count = state.int(key) ?? 0
            return ConsoleCell(Figures.count(count), tone: count > 0 ? "bad" : "quiet")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Changes that are overdue", count("late")),
                (
                    "The oldest has been due for",
                    .span((state.int("late") ?? 0) > 0 ? state.double("late_s") : nil, tone: "bad")
                ),
                ("Without an owner", count("unowned")), ("Without a plan", count("unplanned")),
                (
                    "Stores heard from lately",
                    .text((state["told"] ?? .null).elements.compactMap(\.plainText).joined(separator: ", "))
                ),
            ])
        ]
        let refused = state.list("refused")
        if !refused.isEmpty {
            parts += [
                .heading("Messages that were not accepted in the last 7 days"),
                .table(
                    refused,
                    [
                        .text("Store", "store"), .own("Why") { .text($0.text("why"), tone: "bad") },
                        .count("Messages", "messages"), .time("First", "first_at"), .time("Last", "last_at"),
                    ], empty: ""),
            ]
        }
        return parts
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let found = try await context.json("select millrace.subscription_shown($1::text::uuid)", [.text(id)])
        guard let state = found.text("state") else {
            throw ErrorAnswer(.notFound, "there is no subscription \(id.prefix(40))")
        }
        return ConsolePage(
            title: "Subscription \(Figures.brief(id: id))", entry: "Subscriptions",
            parts: [
                .facts([
                    ("State", .state(state)), ("Plan", plan(found)), ("Product", .text(found.text("product"))),
                    ("Store", .text(found.text("store"))), ("Store's reference", .text(found.text("ref"))),
                    ("Owner", owner(found)), ("Renews", yes(found, "renews")),
                    ("Period ends", .time(found.text("period_end"))), ("Grace until", .time(found.text("grace_until"))),
                    ("Revoked", .time(found.text("revoked_at"))), ("Next change", .time(found.text("next_at"))),
                    ("Last heard from", .time(found.text("told_at"))), ("Since", .time(found.text("created_at"))),
                ]),
                .heading("What the store said"),
                .table(
                    found.list("events"),
                    [
                        .time("The store's time", "at"), .text("Event", "type"), .state("Status", "status"),
                        .text("Product", "product"), .time("Period ends", "period_end"),
                        .own("Renews") { yes($0, "renews") }, .time("Arrived", "arrived_at"), .text("Id", "id"),
                    ], empty: "Nothing has come from the store yet."),
            ])
    }

    private static func plan(_ row: TemplateValue) -> ConsoleCell {
        .text(row.text("plan") ?? "none", tone: row.text("plan") == nil ? "bad" : nil)
    }

    private static func owner(_ row: TemplateValue) -> ConsoleCell {
        row.isTrue("is_owned") ? ConsoleCell("known") : ConsoleCell("unknown", tone: "bad")
    }

    /// Events that say nothing of it have no such key.
    private static func yes(_ row: TemplateValue, _ key: String) -> ConsoleCell {
        guard let value = row[key], case .bool(let isTrue) = value else { return .none }
        return ConsoleCell(isTrue ? "yes" : "no")
    }
}
