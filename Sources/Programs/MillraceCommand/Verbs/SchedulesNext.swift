import Calendars
import FoundationEssentials
import MillraceQueues
import Postgres

extension Command {
    static let schedulesNext = Command(
        ["schedules", "next"],
        summary: "Show the next times of a schedule, or of any expression",
        discussion: """
            With --cron no database is needed: try an expression before you add it. An interval then counts from now.
            """,
        arguments: [Argument("name", .optional, .scheduleName, help: "the schedule's name; not with --cron")],
        flags: [
            .single(
                "count", "N", .integer(1...1000), environment: .none, fallback: "10", help: "Show this many times."),
            .single("cron", "EXPRESSION", .timetable, environment: .none, help: "An expression to try."),
            .single("zone", "NAME", .zone, environment: .none, help: "With --cron: the time zone; UTC if not given."),
            .single(
                "after", "TIME", .instant, environment: .none,
                help: "Show the first times after this one instead of now."),
        ],
        examples: [
            Example("millrace schedules next nightly --count 3", "when it will fire"),
            Example(
                "millrace schedules next --cron '30 2 * * *' --zone Europe/Berlin", "also on the days clocks change"),
        ]
    ) { invocation in
        let plan = try await invocation.planToShow()
        var last = Int64(plan.from.timeIntervalSince1970.rounded(.down))
        var times: [Date] = []
        while times.count < invocation.parsed.integer("count") ?? 10,
            let next = plan.timetable.next(after: last, in: plan.zone, anchor: plan.anchor)
        {
            times.append(Date(timeIntervalSince1970: Double(next)))
            last = next
        }
        let items = times.map { time -> JSONValue in
            ["at": JSONValue(time), "local": .string(ZonedText.spell(time, in: plan.zone))]
        }
        switch invocation.console.format {
        case .human:
            for time in times {
                let distance = Humane.relative(.seconds(time.timeIntervalSince(plan.now)))
                invocation.console.print("\(ZonedText.spell(time, in: plan.zone))  \(plan.zone.name)  \(distance)")
            }
            if plan.isPaused { invocation.console.note("it is paused: none of these until it is resumed") }
        case .json, .jsonLines: invocation.console.list("times", items, table: Table([]))
        }
        return .done
    }
}

/// The times to show, and their start.
private struct PlanToShow {
    let timetable: Timetable
    let zone: Zone
    let anchor: Int64
    let from: Date
    let now: Date
    var isPaused = false
}

extension Invocation {
    fileprivate func planToShow() async throws -> PlanToShow {
        let after = try parsed.string("after").map { text in try InstantText.read(text) }
        switch (parsed.string("name"), parsed.string("cron")) {
        case (nil, nil):
            throw Failure(.misused, "<name> is missing: the schedule's name", hint: "or pass --cron EXPRESSION")
        case (.some, .some):
            throw Failure(.misused, "a schedule's name and --cron exclude each other: choose one")
        case (nil, let text?):
            let now = Date()
            return PlanToShow(
                timetable: try Timetable(text), zone: try ZoneFiles.system.zone(parsed.string("zone") ?? "UTC"),
                anchor: Int64((after ?? now).timeIntervalSince1970.rounded(.down)), from: after ?? now, now: now)
        case (let name?, nil):
            guard parsed.string("zone") == nil else {
                throw Failure(.misused, "--zone goes with --cron; \(name) has a zone of its own")
            }
            let row = try await withSchema { try await Self.schedule(name, on: $0) }
            do {
                return PlanToShow(
                    timetable: try Timetable(row.expression), zone: try ZoneFiles.system.zone(row.zone),
                    anchor: Int64(row.anchor.timeIntervalSince1970.rounded(.down)), from: after ?? row.now,
                    now: row.now,
                    isPaused: row.pausedAt != nil)
            } catch {
                throw Failure("the schedule \(name) cannot be understood: \(error)")
            }
        }
    }
}
