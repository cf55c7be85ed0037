import Postgres
import Templates

enum QuestPages {
    static let routes = [
        ConsolePageRoute(path: "/quests", make: quests)
    ]

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
                        "Families that cannot be rolled over",
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
}
