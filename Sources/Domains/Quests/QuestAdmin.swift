import Calendars
package import FoundationEssentials
package import Postgres

/// The operators' side of quests.
package enum QuestAdmin {
    package struct Family: Sendable {
        package var family: String
        package var zone: String
        package var weekStarts: Int
        package var members: Int
        package var today: String
        package var nextRolloverAt: Date
        package var streak: Int
        package var best: Int
        package var freezes: Int
        package var problem: String?
    }

    /// How far families are behind their midnights.
    package struct State: Sendable {
        package var due = 0
        /// The longest delay of a family, in seconds.
        package var lag: Double = 0
        package var broken = 0

        package init() {}
    }

    package struct Due: Sendable {
        package var family: String
        package var zone: String
        package var today: String
        package var becomes: String?
        package var problem: String?
    }

    package static func families(
        after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Family] {
        try await connection.query(
            """
            select family, zone, week_starts, members, today::text, next_rollover_at, streak, best, freezes, problem
              from millrace.families where family > $1 order by family limit $2
            """, [.text(after ?? ""), .int4(Int32(clamping: page))], decode: family)
    }

    package static func family(_ name: String, on connection: Connection) async throws(PostgresError) -> Family? {
        try await connection.query(
            """
            select family, zone, week_starts, members, today::text, next_rollover_at, streak, best, freezes, problem
              from millrace.families where family = $1
            """, [.text(name)], decode: family
        ).first
    }

    private static let family: Connection.Decode<Family> = { row throws(PostgresError) in
        Family(
            family: try row.string(0), zone: try row.string(1), weekStarts: Int(try row.int(2)),
            members: Int(try row.int(3)), today: try row.string(4), nextRolloverAt: try row.date(5),
            streak: Int(try row.int(6)), best: Int(try row.int(7)), freezes: Int(try row.int(8)),
            problem: row.optionalString(9))
    }

    package static func create(
        _ family: String, zone: String, weekStarts: Int, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.family_create($1, $2, $3)",
            [.text(family), .text(zone), .int4(Int32(clamping: weekStarts))])
    }

    package static func move(
        _ family: String, to zone: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.family_zone($1, $2)", [.text(family), .text(zone)])
    }

    package static func join(
        _ family: String, person: String, role: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.family_join($1, $2, $3)", [.text(family), .text(person), .text(role)])
    }

    /// Returns when the invitation expires; nil: the person already has that role.
    package static func invite(
        _ family: String, person: String, role: String, on connection: Connection
    ) async throws(PostgresError) -> Date? {
        try await connection.query(
            "select millrace.family_invite($1, $2, $3)", [.text(family), .text(person), .text(role)]
        ) { row throws(PostgresError) in try row.optionalDate(0) }.first ?? nil
    }

    package static func uninvite(
        _ family: String, person: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.family_uninvite($1, $2)", [.text(family), .text(person)])
    }

    package static func leave(
        _ family: String, person: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.family_leave($1, $2)", [.text(family), .text(person)])
    }

    /// Open and declined invitations, as JSON.
    package static func invitations(
        family: String?, person: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(i) from millrace.family_invitations($1, $2, page => $3) i",
            [.text(family), .text(person), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in try row.json(0) }
    }

    package struct Day: Sendable {
        package var day: String
        package var kind: String
        package var title: String
        /// The catalogue's own id and text, if it has them.
        package var id: String?
        package var description: String?
        package var state: String
        package var completions: Int
    }

    /// A family's newest days.
    package static func days(
        of family: String, before day: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Day] {
        try await connection.query(
            """
            select day::text, kind, title, id, description, state, completions from millrace.quests
             where family = $1 and ($2::text is null or day < $2::text::date) order by day desc limit $3
            """, [.text(family), .text(day), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Day(
                day: try row.string(0), kind: try row.string(1), title: try row.string(2), id: row.optionalString(3),
                description: row.optionalString(4), state: try row.string(5), completions: Int(try row.int(6)))
        }
    }

    /// What a rollover would do now.
    package static func due(page: Int, on connection: Connection) async throws(PostgresError) -> [Due] {
        try await connection.query(
            "select family, zone, today::text, becomes::text, problem from millrace.quest_rollover_due($1)",
            [.int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Due(
                family: try row.string(0), zone: try row.string(1), today: try row.string(2),
                becomes: row.optionalString(3), problem: row.optionalString(4))
        }
    }

    package static func state(on connection: Connection, deadline: Duration) async throws(PostgresError) -> State {
        try await connection.query(
            "select due, coalesce(extract(epoch from at - oldest), 0)::float8, broken from millrace.quest_state()",
            deadline: deadline
        ) { row throws(PostgresError) in
            var state = State()
            state.due = Int(try row.int(0))
            state.lag = try row.double(1)
            state.broken = Int(try row.int(2))
            return state
        }.first ?? State()
    }

    package static func setRules(_ json: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.quest_rules_set($1)", [.json(json)])
    }

    /// Checks all families, or one, and passes each page's findings on.
    package static func verify(
        only: String?, repair: Bool, on connection: Connection, found: (Discrepancy) -> Void
    ) async throws -> (families: Int, findings: Int, repaired: Int) {
        var after = ""
        var sum = (families: 0, findings: 0, repaired: 0)
        while true {
            let page = try await facts(after: after, only: only, on: connection)
            for (family, json) in page {
                let findings = Audit.findings(
                    in: try JSONDecoder().decode(FamilyFacts.self, from: Data(json)), zones: .system)
                sum.families += 1
                sum.findings += findings.count
                findings.forEach(found)
                if repair, !findings.isEmpty,
                    try await connection.truth("select millrace.quest_repair($1)", [.text(family)])
                {
                    sum.repaired += 1
                }
            }
            guard only == nil, let last = page.last else { return sum }
            after = last.family
        }
    }

    private static func facts(
        after: String, only: String?, on connection: Connection
    ) async throws(PostgresError) -> [(family: String, json: [UInt8])] {
        let decode: Connection.Decode<(family: String, json: [UInt8])> = { row throws(PostgresError) in
            (family: try row.string(0), json: try row.json(1))
        }
        guard let only else {
            return try await connection.query(
                "select family, facts from millrace.quest_audit($1, 200)", [.text(after)], deadline: .seconds(60),
                decode: decode)
        }
        return try await connection.query(
            "select family, facts from millrace.quest_audit($1, 1, true)", [.text(only)], decode: decode)
    }
}
