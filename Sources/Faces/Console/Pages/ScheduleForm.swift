import Calendars
import FoundationEssentials
import Listeners
import Postgres
import Templates

/// The form of a schedule: what it has, and when it would fire, before it is saved.
enum ScheduleForm {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/schedules/new", make: new), ConsolePageRoute(path: "/schedule/edit", make: edit),
    ]

    /// When what stands in a form would fire.
    struct Plan {
        let timetable: Timetable
        let zone: Zone
        /// Where an interval begins to count; nil: when it is saved.
        let anchor: Int64?

        init(_ form: [String: String]) throws {
            do throws(ExpressionError) {
                timetable = try Timetable(form["expression"] ?? "")
            } catch {
                throw ErrorAnswer(.invalid, "when it fires cannot be read: \(error.description)", field: "expression")
            }
            do throws(ZoneError) {
                zone = try ZoneFiles.system.zone(form["zone"] ?? "UTC")
            } catch {
                throw ErrorAnswer(.invalid, error.description, field: "zone")
            }
            let isSame = form["expression"] == form["had"]
            anchor = isSame ? form["anchor"].flatMap { Figures.date($0) }.map { Int64($0.timeIntervalSince1970) } : nil
        }

        func times(_ count: Int, after now: Date) -> [Date] {
            let from = Int64(now.timeIntervalSince1970)
            var times: [Date] = []
            var at = from
            while times.count < count, let time = timetable.next(after: at, in: zone, anchor: anchor ?? from) {
                times.append(Date(timeIntervalSince1970: Double(time)))
                at = time
            }
            return times
        }
    }

    private static func new(_ context: PageContext) async throws -> ConsolePage {
        guard context.mayAct(.admin) else { return forAdmins(title: "New schedule") }
        return page(
            ["zone": ReaderChoices.current.zone.name, "args": "{}"],
            [.paragraph("You see its next times before it is saved.")], isSeen: false)
    }

    private static func edit(_ context: PageContext) async throws -> ConsolePage {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which schedule?", field: "name") }
        let found = try await context.json(
            "select to_jsonb(s) - 'args' || jsonb_build_object('args', jsonb_pretty(s.args), 'sealed', s.args ->> '$millrace' = 'sealed') from millrace.schedules_shown($1) s",
            [.text(name)])
        guard let was = found.text("changed_at") else {
            throw ErrorAnswer(.notFound, "there is no schedule \(name.prefix(60))")
        }
        guard context.mayAct(.admin) else { return forAdmins(title: "Edit schedule \(name)") }
        var form = ["name": name, "was": was, "had": found.text("expression") ?? ""]
        for field in ["expression", "kind", "zone", "queue", "anchor"] { form[field] = found.text(field) ?? "" }
        let args = found.text("args") ?? "{}"
        var parts: [ConsolePart] = []
        if found.isTrue("sealed") {
            parts.append(.paragraph("Its arguments are sealed: they stay as they are."))
        } else if args.utf8.count > ConsoleAction.largestArguments {
            parts.append(
                .paragraph(
                    "Its arguments take \(Figures.bytes(args.utf8.count)), more than this form can hold: they stay as they are."
                ))
        } else {
            form["args"] = args
        }
        return page(form, parts + preview(form, context.now), isSeen: true)
    }

    private static func forAdmins(title: String) -> ConsolePage {
        ConsolePage(
            title: title, entry: "Schedules",
            parts: [.paragraph("Only an admin may make schedules and change them.", tone: "warn")])
    }

    static func again(_ form: [String: String], _ wrong: ErrorAnswer?, _ context: PageContext) async -> ConsolePage {
        if let wrong {
            return page(form, ConsolePart.sentences(of: wrong), status: wrong.status, isSeen: form["seen"] == "yes")
        }
        do {
            _ = try Plan(form)
        } catch let problem as ErrorAnswer {
            return page(form, ConsolePart.sentences(of: problem), status: problem.status, isSeen: false)
        } catch {
            return page(form, [.paragraph("\(error)", tone: "bad")], status: 400, isSeen: false)
        }
        let kind = form["kind"] ?? ""
        var parts: [ConsolePart] = []
        if !kind.isEmpty, await !isKnown(kind, context) {
            parts.append(
                .paragraph("No job or worker has used the kind \(kind) yet. Is it spelled correctly?", tone: "warn"))
        }
        return page(form, parts + preview(form, context.now), isSeen: true)
    }

    /// What cannot be looked up now is taken as known: it is a hint, and the database decides.
    private static func isKnown(_ kind: String, _ context: PageContext) async -> Bool {
        do {
            return try await context.json(
                "select to_jsonb(exists (select from millrace.kind_list() k where k.kind = $1))", [.text(kind)]
            ).plainText != "false"
        } catch {
            return true
        }
    }

    private static func preview(_ form: [String: String], _ now: Date) -> [ConsolePart] {
        guard let plan = try? Plan(form) else { return [] }
        let times = plan.times(5, after: now)
        return [
            .heading("The next times"),
            .list(
                times.map { time in
                    let relative = Figures.relative(time, to: now)
                    return ConsoleCell("\(words(time, in: plan.zone)) · \(relative) · \(Figures.moment(time))")
                }),
        ]
    }

    private static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ]

    /// `Monday 30 November 2026, 03:00 in Europe/Vienna`
    static func words(_ time: Date, in zone: Zone) -> String {
        let instant = Int64(time.timeIntervalSince1970)
        let date = zone.date(at: instant)
        let second = Int(zone.wall(at: instant)) - date.dayNumber * 86_400
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        var clock = "\(two(second / 3600)):\(two(second / 60 % 60))"
        if second % 60 > 0 { clock += ":\(two(second % 60))" }
        return "\(weekdays[date.weekday]) \(date.day) \(months[date.month - 1]) \(date.year), \(clock) in \(zone.name)"
    }

    /// - Parameter isSeen: The reader has seen when it fires, and may save it.
    private static func page(
        _ form: [String: String], _ parts: [ConsolePart], status: Int = 200, isSeen: Bool
    ) -> ConsolePage {
        let isNew = (form["was"] ?? "").isEmpty
        func field(_ name: String, _ label: String, hint: String? = nil, isNeeded: Bool = true) -> ConsoleField {
            ConsoleField(name: name, label: label, value: form[name] ?? "", hint: hint, isNeeded: isNeeded)
        }
        var fields = ["was", "had", "anchor"].compactMap { name in
            form[name].map { ConsoleField(name: name, value: $0, kind: .hidden) }
        }
        fields.append(
            isNew
                ? field("name", "Name") : ConsoleField(name: "name", value: form["name"] ?? "", kind: .hidden))
        fields += [
            field("kind", "Kind of its jobs"),
            field(
                "expression", "When",
                hint: "Cron's five fields, such as 0\u{A0}2\u{A0}*\u{A0}*\u{A0}*, or an interval: every\u{A0}15m"),
            field("zone", "Time zone", hint: "Such as Europe/Vienna"),
            field("queue", "Queue", hint: "Empty: the kind's own", isNeeded: false),
        ]
        if let args = form["args"] {
            fields.append(
                ConsoleField(
                    name: "args", label: "Arguments (JSON)", value: args, kind: .json,
                    hint: !isNew && args.contains("[redacted]")
                        ? "Where it says [redacted], a value is hidden. Leave that word, and the value stays." : nil))
        }
        var shown = ConsoleForm(
            id: "schedule", action: PageAddress.to("/act/schedule.save"), button: "Show the next times",
            fields: fields, isMain: !isSeen, isWide: true)
        if isSeen {
            shown.fields.append(ConsoleField(name: "seen", value: "yes", kind: .hidden))
            shown.choice = .init(
                name: "press", value: "preview", other: (value: "save", button: "Save the schedule"))
        } else {
            shown.fields.append(ConsoleField(name: "press", value: "preview", kind: .hidden))
        }
        let title = isNew ? "New schedule" : "Edit schedule \(form["name"] ?? "")"
        return ConsolePage(title: title, entry: "Schedules", parts: parts + [.forms([shown])], status: status)
    }
}
