import Calendars
import FoundationEssentials
import Listeners
import Postgres
import Templates

enum SchedulePages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/schedules", make: list), ConsolePageRoute(path: "/schedule", make: one),
    ]

    private static let page = 100

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let schedules = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(s) - 'args' order by s.name), '[]') from millrace.schedules_shown(null, $1, $2, true) s",
            [.text(context.query("after")), .int4(Int32(page))]
        ).elements
        let next = schedules.count < page ? nil : schedules.last?.text("name")
        let add: [ConsolePart] =
            context.mayAct(.admin)
            ? [.list([ConsoleCell("New schedule", href: PageAddress.to("/schedules/new"))])] : []
        return ConsolePage(
            title: "Schedules", entry: "Schedules",
            parts: add + coming(schedules, context.now) + [
                .table(
                    schedules,
                    [
                        .text("Schedule", "name") { PageAddress.to("/schedule", [("name", $0.text("name"))]) },
                        .text("Kind", "kind"), .text("When", "expression"), .text("Zone", "zone"),
                        .time("Next", "next_at"), .time("Last", "last_fire_at"),
                        .own("State") { row in
                            if let problem = row.text("problem") { return ConsoleCell(problem, tone: "bad") }
                            return row.text("paused_at") == nil
                                ? ConsoleCell.state("open", tone: nil) : .state("paused", tone: "warn")
                        },
                    ], empty: "There are no schedules. millrace schedules add makes one.",
                    next: next.map { PageAddress.to("/schedules", [("after", $0)]) })
            ])
    }

    /// The times of the coming day, drawn: a row for each of the next 20 schedules.
    private static func coming(_ schedules: [TemplateValue], _ now: Date) -> [ConsolePart] {
        let open = schedules.filter { $0.text("paused_at") == nil && $0.text("next_at") != nil }.prefix(20)
        guard !open.isEmpty else { return [] }
        let day = 86_400.0
        let rows = open.map { schedule -> [ConsoleCell] in
            let name = schedule.text("name") ?? ""
            let times = self.times(schedule, now, until: now.addingTimeInterval(day))
            let count = "\(times.count)\(times.count == 200 ? "+" : "")"
            var bar = ConsoleCell(count)
            bar.svg = Chart.marks(
                times.map { $0.timeIntervalSince(now) / day }, says: "\(count) times in the coming day")
            return [
                ConsoleCell(name, href: PageAddress.to("/schedule", [("name", name)])), bar, ConsoleCell(count),
            ]
        }
        let axis = ConsoleTable.Column(title: "The coming day", ticks: ["now", "+6 h", "+12 h", "+18 h", "+24 h"])
        return [
            .table(
                ConsoleTable(columns: [.text("Schedule"), axis, .number("Times")], rows: Array(rows), empty: "")),
            .heading("All schedules"),
        ]
    }

    private static func times(_ schedule: TemplateValue, _ now: Date, until end: Date) -> [Date] {
        guard let text = schedule.text("expression"), let next = schedule.text("next_at").flatMap(Figures.date) else {
            return []
        }
        guard let timetable = try? Timetable(text),
            let zone = try? ZoneFiles.system.zone(schedule.text("zone") ?? "UTC")
        else { return [next] }
        let anchor = Int64(schedule.text("anchor").flatMap(Figures.date)?.timeIntervalSince1970 ?? 0)
        let last = Int64(end.timeIntervalSince1970)
        var times: [Date] = []
        var at = Int64(now.timeIntervalSince1970)
        while times.count < 200, let time = timetable.next(after: at, in: zone, anchor: anchor), time <= last {
            times.append(Date(timeIntervalSince1970: Double(time)))
            at = time
        }
        return times
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which schedule?", field: "name") }
        let found = try await context.json(
            """
            select jsonb_build_object(
                'schedule', (select to_jsonb(s) - 'args' || jsonb_build_object('args', jsonb_pretty(s.args)) from millrace.schedules_shown($1) s),
                'fires', (select coalesce(jsonb_agg(to_jsonb(f)), '[]') from millrace.schedule_fires($1, 50) f))
            """, [.text(name)])
        guard let schedule = found["schedule"], schedule.text("name") != nil else {
            throw ErrorAnswer(.notFound, "there is no schedule \(name.prefix(60))")
        }
        let isPaused = schedule.text("paused_at") != nil
        var parts: [ConsolePart] = [
            .facts([
                ("Kind", .text(schedule.text("kind"))), ("When", .text(schedule.text("expression"))),
                ("Zone", .text(schedule.text("zone"))),
                ("Queue", .text(schedule.text("queue"))), ("Next", .time(schedule.text("next_at"))),
                ("Last", .time(schedule.text("last_fire_at"))),
                ("Last job", .text(schedule.text("last_job"), href: schedule.int("last_job").map(PageAddress.job))),
                ("Fired", .count(schedule.int("fired"))), ("Skipped", .count(schedule.int("skipped"))),
                ("Missed", .count(schedule.int("missed"))),
                ("Catch up", .text(schedule.text("catch_up"))), ("Overlap", .text(schedule.text("overlap"))),
            ])
        ]
        if let problem = schedule.text("problem") { parts.insert(.paragraph(problem, tone: "bad"), at: 0) }
        if isPaused { parts.insert(.paragraph("It is paused.", tone: "warn"), at: 0) }
        if context.mayAct() {
            let field = ConsoleField(name: "name", value: name, kind: .hidden)
            func form(_ id: String, _ button: String) -> ConsoleForm {
                ConsoleForm(id: id, action: PageAddress.to("/act/schedule.\(id)"), button: button, fields: [field])
            }
            var forms = [isPaused ? form("resume", "Resume") : form("pause", "Pause"), form("run", "Run now")]
            if context.mayAct(.admin) {
                var remove = form("remove", "Remove")
                remove.isGrave = true
                forms.append(remove)
            }
            parts.append(.forms(forms))
        }
        if context.mayAct(.admin) {
            let address = PageAddress.to("/schedule/edit", [("name", name)])
            parts.append(.list([ConsoleCell("Edit the schedule", href: address)]))
        }
        let coming = times(schedule, context.now, until: context.now.addingTimeInterval(366 * 86_400)).prefix(10)
        parts += [
            .heading("The coming times"),
            coming.isEmpty
                ? .paragraph("No time is planned.")
                : .list(coming.map { ConsoleCell("\(Figures.moment($0)), \(Figures.relative($0, to: context.now))") }),
            .heading("Past times"),
            .table(
                found.list("fires"),
                [
                    .time("Time", "fire_at"), .text("What", "what"),
                    .own("Job") { .text($0.text("job"), href: $0.int("job").map(PageAddress.job)) },
                    .time("Done", "fired_at"), .count("Missed", "missed"),
                ], empty: "It has not fired yet."),
            .code(title: "Arguments", text: schedule.text("args") ?? "null"),
        ]
        return ConsolePage(title: "Schedule \(name)", entry: "Schedules", parts: parts)
    }
}
