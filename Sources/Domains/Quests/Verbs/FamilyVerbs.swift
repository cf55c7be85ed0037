import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let familiesList = Command(
        ["families", "list"],
        summary: "List families, their zones and streaks",
        flags: [
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "FAMILY", environment: .none, help: "Only families after this one."),
        ],
        examples: [Example("millrace families list", "by name: zone, day, next midnight, streak")]
    ) { invocation in
        let limit = invocation.parsed.integer("limit") ?? 50
        let after = invocation.parsed.string("after")
        let families = try await invocation.withSchema { connection in
            try await QuestAdmin.families(after: after, page: limit, on: connection)
        }
        invocation.console.list("families", families.map(\.json), table: QuestAdmin.Family.table(families))
        if families.count == limit, invocation.console.format == .human, let last = families.last {
            invocation.console.note("more may follow: --after \(last.family)")
        }
        return .done
    }

    static let familiesShow = Command(
        ["families", "show"],
        summary: "Show a family",
        arguments: [Argument("family", help: "the family")],
        examples: [Example("millrace families show smith", "its clock, its streak, what is wrong with it")]
    ) { invocation in
        let name = invocation.parsed.string("family") ?? ""
        let family = try await invocation.withSchema { try await invocation.family(name, on: $0) }
        invocation.console.show(family.json) { invocation.console.print(QuestAdmin.Family.table([family])) }
        return .done
    }

    static let familiesCreate = Command(
        ["families", "create"],
        summary: "Make a family",
        arguments: [
            Argument("family", help: "its name, of 1 to 128 characters"),
            Argument("zone", help: "where its days begin and end, such as Europe/Berlin"),
        ],
        flags: [
            .single(
                "week-starts", "N", .integer(0...6), environment: .none, fallback: "1",
                help: "The first day of its weeks: 0 for Sunday to 6.")
        ],
        examples: [Example("millrace families create smith Europe/London", "its first quest opens at once")]
    ) { invocation in
        let parsed = invocation.parsed
        let (name, zone) = (parsed.string("family") ?? "", parsed.string("zone") ?? "")
        let created = try await invocation.withSchema { connection in
            try await QuestAdmin.create(
                name, zone: zone, weekStarts: parsed.integer("week-starts") ?? 1, on: connection)
        }
        invocation.console.show(["family": .string(name), "zone": .string(zone), "created": .bool(created)]) {
            invocation.console.print("\(name) \(created ? "is made" : "was there already")")
        }
        return .done
    }

    static let familiesZone = Command(
        ["families", "zone"],
        summary: "Move a family to another time zone",
        discussion: """
            No day comes twice and none is lost: going east past midnight ends today, which keeps its grace; going west, today \
            lasts until the clock there has passed it.
            """,
        arguments: [Argument("family", help: "the family"), Argument("zone", help: "such as Asia/Tokyo")],
        examples: [Example("millrace families zone smith Asia/Tokyo", "its midnights are Tokyo's from now on")]
    ) { invocation in
        let (name, zone) = (invocation.parsed.string("family") ?? "", invocation.parsed.string("zone") ?? "")
        let changed = try await invocation.withSchema { try await QuestAdmin.move(name, to: zone, on: $0) }
        invocation.console.show(["family": .string(name), "zone": .string(zone), "changed": .bool(changed)]) {
            invocation.console.print("\(name) \(changed ? "lives by" : "lived already by") \(zone)")
        }
        return .done
    }

    static let familiesJoin = Command(
        ["families", "join"],
        summary: "Let a person into a family",
        discussion: """
            Takes effect at once, as when a back end of the app does it: make sure that the person agrees. People join \
            by themselves through an invitation that they accept; see millrace families invite.
            """,
        arguments: [
            Argument("family", help: "the family"), Argument("person", help: "who joins"),
            Argument("role", .one, .choice(["teen", "parent"]), help: "as what"),
        ],
        examples: [Example("millrace families join smith anna teen", "or changes the role of a member")]
    ) { invocation in
        let parsed = invocation.parsed
        let (name, person, role) = (
            parsed.string("family") ?? "", parsed.string("person") ?? "", parsed.string("role") ?? ""
        )
        let changed = try await invocation.withSchema { connection in
            try await QuestAdmin.join(name, person: person, role: role, on: connection)
        }
        invocation.console.show([
            "family": .string(name), "person": .string(person), "role": .string(role), "changed": .bool(changed),
        ]) {
            invocation.console.print("\(person) is\(changed ? "" : " already") a \(role) of \(name)")
        }
        return .done
    }
}

extension Invocation {
    func family(_ name: String, on connection: Connection) async throws -> QuestAdmin.Family {
        guard let family = try await QuestAdmin.family(name, on: connection) else {
            throw Failure(
                .notFound, "there is no family \(DisplayWidth.harmless(name))", hint: "see millrace families list")
        }
        return family
    }
}

extension QuestAdmin.Family {
    var json: JSONValue {
        [
            "family": .string(family), "zone": .string(zone), "week_starts": .int(weekStarts), "members": .int(members),
            "today": .string(today), "next_rollover_at": .string(InstantText.spell(nextRolloverAt)),
            "streak": .int(streak), "best": .int(best), "freezes": .int(freezes), "problem": JSONValue(problem),
        ]
    }

    static func table(_ families: [QuestAdmin.Family]) -> Table {
        var table = Table(
            [
                .init("family", shrinks: true), .init("zone"), .init("members", .trailing), .init("today"),
                .init("next midnight"), .init("streak", .trailing), .init("best", .trailing),
                .init("freezes", .trailing),
                .init("problem", shrinks: true),
            ], whenEmpty: "there is no family yet")
        for family in families {
            table.add([
                .init(family.family), .init(family.zone), "\(family.members)", .init(family.today),
                .init(InstantText.spell(family.nextRolloverAt)), "\(family.streak)", "\(family.best)",
                "\(family.freezes)",
                .init(family.problem ?? "", .red),
            ])
        }
        return table
    }
}
