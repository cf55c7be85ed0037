import Listeners
import Postgres
import Templates

/// Check-ins: who is overdue, which alarms are open, who was told.
enum CheckInPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/checkins", make: list), ConsolePageRoute(path: "/alarms/{id}", make: alarm),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object('state', (select to_jsonb(s) from millrace.check_in_state() s),
                'alarms', (select coalesce(jsonb_agg(to_jsonb(a)), '[]') from millrace.alarms_shown(50) a),
                'due', (select coalesce(jsonb_agg(to_jsonb(w)), '[]') from millrace.check_ins_due(50) w))
            """)
        let state = found["state"] ?? .null
        let beat = state.double("beat")
        return ConsolePage(
            title: "Check-ins", entry: "Check-ins",
            parts: [
                .facts([
                    ("People", .count(state.int("watches"))),
                    (
                        "Overdue",
                        ConsoleCell(
                            Figures.count(state.int("overdue") ?? 0),
                            tone: (state.int("overdue") ?? 0) > 0 ? "bad" : "quiet")
                    ),
                    ("Open alarms", .count(state.int("open"))),
                    (
                        "Alarms that reach nobody",
                        ConsoleCell(
                            Figures.count(state.int("unreachable") ?? 0),
                            tone: (state.int("unreachable") ?? 0) > 0 ? "bad" : "quiet")
                    ),
                    ("Last checked by a worker", .span(beat, tone: (beat ?? 999) > 60 ? "bad" : nil)),
                ]),
                .heading("Alarms"),
                .table(
                    found.list("alarms"),
                    [
                        .own("Alarm") { row in
                            ConsoleCell(
                                Figures.brief(id: row.text("id") ?? ""),
                                href: PageAddress.to("/alarms/\(row.text("id") ?? "")"))
                        }, .text("Person", "person"), .state("State", "state"), .text("Cause", "cause"),
                        .count("Step", "step"), .time("Raised", "raised_at"),
                        .time("First contact told", "first_accepted_at"), .text("Acknowledged by", "acknowledged_by"),
                        .time("Resolved", "resolved_at"), .own("Problem") { .text($0.text("problem"), tone: "bad") },
                    ], empty: "There was no alarm."),
                .heading("Next to expire"),
                .table(
                    found.list("due"),
                    [
                        .text("Person", "person"), .state("State", "state"), .time("Expires", "check_in_expiration"),
                        .time("Last check-in", "last_checked_in"), .text("Zone", "zone"),
                        .own("Problem") { .text($0.text("problem"), tone: "bad") },
                    ], empty: "Nobody checks in."),
            ])
    }

    private static func alarm(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let found = try await context.json(
            """
            select jsonb_build_object('alarm', (select to_jsonb(a) from millrace.alarms a where a.id = $1::text::uuid),
                'history', (select coalesce(jsonb_agg(to_jsonb(h) order by h.id), '[]') from (select * from millrace.alarm_history h where h.alarm = $1::text::uuid order by h.id limit 500) h))
            """, [.text(id)])
        guard let alarm = found["alarm"], let state = alarm.text("state") else {
            throw ErrorAnswer(.notFound, "there is no alarm \(id.prefix(40))")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Person", .text(alarm.text("person"))), ("State", .state(state)),
                ("Cause", .text(alarm.text("cause"))),
                ("Drill", ConsoleCell(alarm.isTrue("test") ? "yes" : "no")), ("Raised", .time(alarm.text("raised_at"))),
                ("First contact told", .time(alarm.text("first_accepted_at"))),
                ("Acknowledged", .time(alarm.text("acknowledged_at"))),
                ("By", .text(alarm.text("acknowledged_by"))), ("Next step", .time(alarm.text("next_at"))),
                ("Resolved", .time(alarm.text("resolved_at"))), ("Resolution", .text(alarm.text("resolution"))),
            ])
        ]
        // What the person wrote; the database shows it to operators alone.
        if let note = alarm.text("note") { parts.append(.code(title: "Note", text: note)) }
        if let problem = alarm.text("problem") { parts.append(.paragraph(problem, tone: "bad")) }
        if context.mayAct(), state != "resolved" {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "resolve", action: PageAddress.to("/act/alarm.resolve"), button: "Resolve the alarm",
                        fields: [
                            ConsoleField(name: "id", value: id, kind: .hidden),
                            ConsoleField(name: "reason", label: "Reason", isNeeded: true),
                        ], isGrave: true)
                ]))
        }
        parts += [
            .heading("Who was told"),
            .table(
                found.list("history"),
                [
                    .time("Time", "at"), .text("What", "what"), .text("Contact", "contact"),
                    .text("Channel", "channel"),
                    .count("Step", "step"), .text("By", "by"), .state("Notice", "notice_status"),
                    .time("Accepted", "accepted_at"),
                ], empty: "Nothing has happened yet."),
        ]
        return ConsolePage(title: "Alarm \(Figures.brief(id: id))", entry: "Check-ins", parts: parts)
    }
}
