import CommandKit
import Postgres

extension Command {
    static let questsToday = Command(
        ["quests", "today"],
        summary: "Show a family's open quest",
        arguments: [Argument("family", help: "the family")],
        examples: [Example("millrace quests today smith", "its day, its quest, who has done it")]
    ) { invocation in
        try await invocation.showDays(page: 1, before: nil, name: "today")
    }

    static let questsHistory = Command(
        ["quests", "history"],
        summary: "List a family's days, newest first",
        discussion: "With --json each day also has its quest's id and description, where the catalogue gives them.",
        arguments: [Argument("family", help: "the family")],
        flags: [
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "DAY", environment: .none, help: "Only days before this one, such as 2026-11-01."),
        ],
        examples: [Example("millrace quests history smith --limit 7", "a week of quests")]
    ) { invocation in
        try await invocation.showDays(
            page: invocation.parsed.integer("limit") ?? 50, before: invocation.parsed.string("after"), name: "quests")
    }

    static let questsRollover = Command(
        ["quests", "rollover"],
        summary: "Roll families over the midnights that have passed",
        discussion: """
            Workers do this by themselves every quarter of an hour; doing it by hand is safe at any time. Exit 1 when \
            a family could not be rolled over; families show prints the reason.
            """,
        flags: [.toggle("dry-run", environment: .none, help: "Show what is due, and change nothing.")],
        examples: [
            Example("millrace quests rollover --dry-run", "the families that are due, and what day they would come to")
        ]
    ) { invocation in
        let console = invocation.console
        if invocation.parsed.isOn("dry-run") {
            let due = try await invocation.withSchema { try await QuestAdmin.due(page: 500, on: $0) }
            var table = Table(
                [
                    .init("family", shrinks: true), .init("zone"), .init("today"), .init("becomes"),
                    .init("problem", shrinks: true),
                ],
                whenEmpty: "nothing is due")
            for one in due {
                table.add([
                    .init(one.family), .init(one.zone), .init(one.today), .init(one.becomes ?? ""),
                    .init(one.problem ?? "", .red),
                ])
            }
            console.list(
                "due",
                due.map {
                    [
                        "family": .string($0.family), "zone": .string($0.zone), "today": .string($0.today),
                        "becomes": JSONValue($0.becomes), "problem": JSONValue($0.problem),
                    ]
                }, table: table)
            if due.count == 500 { console.note("more may be due") }
            return .done
        }
        try await invocation.withSchema { _ in }
        let pool = Pool(try invocation.connectionOptions(), size: 1)
        let tally: QuestService.Tally
        do {
            tally = try await QuestService(pool: pool).run()
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
        await pool.close()
        console.show([
            "families": .int(tally.families), "days": .int(tally.days), "failed": .int(tally.failed),
            "next_at": JSONValue(tally.nextAt.map { InstantText.spell($0) }),
        ]) {
            console.print(
                "\(Humane.count(tally.families)) families, \(Humane.count(tally.days)) days, \(tally.failed) failed")
        }
        return tally.failed == 0 ? .done : .failed
    }

    static let questsVerify = Command(
        ["quests", "verify"],
        summary: "Compute streaks and awards from the events again, and compare",
        discussion: """
            Computes days, streaks and the ledger of points again from the events, with other code than the first \
            time. Exit 1 with the differences. Weekly stats are counted from the events at each request, so they \
            cannot differ. --repair stores what the events say; a surplus award is cancelled by a row of its own.
            """,
        flags: [
            .single("family", "FAMILY", environment: .none, help: "Only this family."),
            .toggle("repair", environment: .none, help: "Repair what differs."),
        ],
        examples: [
            Example("millrace quests verify", "all families"),
            Example("millrace quests verify --family smith --repair", "one, and repair it"),
        ]
    ) { invocation in
        let console = invocation.console
        let only = invocation.parsed.string("family")
        let repairs = invocation.parsed.isOn("repair")
        var found: [Discrepancy] = []
        let sum = try await invocation.withSchema { connection in
            if let only { _ = try await invocation.family(only, on: connection) }
            return try await QuestAdmin.verify(only: only, repair: repairs, on: connection) { one in
                if found.count < 1000 { found.append(one) }
            }
        }
        console.show([
            "families": .int(sum.families), "findings": .int(sum.findings), "repaired": .int(sum.repaired),
            "first": .array(
                found.map {
                    [
                        "family": .string($0.family), "person": JSONValue($0.person), "what": .string($0.what),
                        "sentence": .string($0.sentence),
                    ]
                }),
        ]) {
            for one in found {
                console.print(
                    DisplayWidth.harmless("\(one.family)\(one.person.map { " \($0)" } ?? ""): \(one.sentence)"), .yellow
                )
            }
            console.print(
                "\(Humane.count(sum.families)) families, \(Humane.count(sum.findings)) findings"
                    + (repairs ? ", \(Humane.count(sum.repaired)) families repaired" : ""))
        }
        return sum.findings == 0 ? .done : .failed
    }
}

extension Invocation {
    fileprivate func showDays(page: Int, before: String?, name: String) async throws -> ExitCode {
        let family = parsed.string("family") ?? ""
        let days = try await withSchema { connection in
            _ = try await self.family(family, on: connection)
            return try await QuestAdmin.days(of: family, before: before, page: page, on: connection)
        }
        var table = Table([
            .init("day"), .init("kind"), .init("quest", shrinks: true), .init("state"), .init("done by", .trailing),
        ])
        for day in days {
            table.add([
                .init(day.day), .init(day.kind), .init(day.title),
                .init(day.state, day.state == "done" ? .green : .plain),
                "\(day.completions)",
            ])
        }
        console.list(
            name,
            days.map {
                [
                    "family": .string(family), "day": .string($0.day), "kind": .string($0.kind),
                    "title": .string($0.title), "id": JSONValue($0.id), "description": JSONValue($0.description),
                    "state": .string($0.state), "completions": .int($0.completions),
                ]
            }, table: table)
        return .done
    }
}
