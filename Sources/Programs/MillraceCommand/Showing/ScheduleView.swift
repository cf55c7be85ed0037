import Calendars
import FoundationEssentials
import MillraceQueues

/// A schedule for machines and for people.
extension ScheduleRow {
    var state: (text: String, style: Style) {
        if let problem { return (problem, .red) }
        if pausedAt != nil { return ("paused", .yellow) }
        if isOverdue { return ("overdue: is there a worker?", .red) }
        if nextAt == nil { return ("waits for a worker", .dim) }
        return ("", .plain)
    }

    var json: JSONValue {
        [
            "name": .string(name), "kind": .string(kind), "expression": .string(expression), "zone": .string(zone),
            "queue": JSONValue(queue), "priority": JSONValue(priority), "tenant": JSONValue(tenant),
            "args": JSONValue(raw: args), "catch_up": .string(catchUp), "catch_up_limit": .int(catchUpLimit),
            "overlap": .string(overlap), "jitter_seconds": .double(jitter), "paused_at": JSONValue(pausedAt),
            "anchor": JSONValue(anchor), "next_at": JSONValue(nextAt), "last_fire_at": JSONValue(lastFireAt),
            "last_job": JSONValue(lastJob.map { Int($0) }), "fired": .int(fired), "skipped": .int(skipped),
            "missed": .int(missed), "last_missed_at": JSONValue(lastMissedAt), "problem": JSONValue(problem),
            "overdue": .bool(isOverdue), "changed_at": JSONValue(changedAt),
        ]
    }

    static func table(_ schedules: [ScheduleRow]) -> Table {
        var table = Table(
            [
                Table.Column("schedule", shrinks: true, importance: .key), Table.Column("expression", shrinks: true),
                Table.Column("zone", shrinks: true, importance: .low), Table.Column("kind", shrinks: true),
                Table.Column("next", .trailing, importance: .high), Table.Column("last", .trailing),
                Table.Column("missed", .trailing, importance: .low),
                Table.Column("state", shrinks: true, importance: .high),
            ], whenEmpty: "no schedules")
        for schedule in schedules {
            func relative(_ date: Date?) -> String {
                date.map { Humane.relative(.seconds($0.timeIntervalSince(schedule.now))) } ?? "-"
            }
            let state = schedule.state
            table.add([
                Table.Cell(schedule.name, .bold), Table.Cell(schedule.expression), Table.Cell(schedule.zone),
                Table.Cell(schedule.kind), Table.Cell(relative(schedule.nextAt), schedule.isOverdue ? .red : .plain),
                Table.Cell(relative(schedule.lastFireAt)),
                Table.Cell(Humane.count(schedule.missed), schedule.missedLately ? .yellow : .dim),
                Table.Cell(state.text, state.style),
            ])
        }
        return table
    }

    /// Everything about it, its latest fires last.
    func lines(_ fires: [ScheduleFire]) -> [String] {
        func shown(_ date: Date?) -> String {
            date.map { "\(ZonedText.spell($0, in: zone)) (\(Humane.relative(.seconds($0.timeIntervalSince(now)))))" }
                ?? "-"
        }
        var facts: [(String, String)] = [
            ("schedule", name), ("expression", expression), ("zone", zone), ("kind", kind),
            ("args", String(decoding: args, as: UTF8.self)), ("queue", queue ?? "the kind's own"),
            ("catch-up", catchUp == "all" ? "all, at most \(catchUpLimit)" : catchUp), ("overlap", overlap),
            ("next", shown(nextAt)), ("last", shown(lastFireAt) + (lastJob.map { ", job \($0)" } ?? "")),
            (
                "counts",
                "\(Humane.count(fired)) fired, \(Humane.count(skipped)) skipped, \(Humane.count(missed)) missed"
            ),
        ]
        if let priority { facts.append(("priority", "\(priority)")) }
        if let tenant { facts.append(("tenant", tenant)) }
        if jitter > 0 { facts.append(("jitter", "up to \(Humane.duration(.seconds(jitter)))")) }
        if expression.lowercased().contains("every") { facts.append(("anchor", ZonedText.spell(anchor, in: zone))) }
        if let pausedAt { facts.append(("paused", shown(pausedAt))) }
        if let problem { facts.append(("problem", problem)) }
        var lines = facts.map { name, value in
            name + String(repeating: " ", count: 12 - name.count) + DisplayWidth.harmless(value)
        }
        if !fires.isEmpty { lines += ["", "latest fires"] }
        for fire in fires {
            let what = fire.missed.map { "\(Humane.count($0)) missed, to \(shown(fire.until))" } ?? fire.what
            lines.append(
                "  \(ZonedText.spell(fire.fireAt, in: zone))  \(what)" + (fire.job.map { ", job \($0)" } ?? ""))
        }
        return lines
    }
}

extension ScheduleFire {
    var json: JSONValue {
        [
            "fire_at": JSONValue(fireAt), "what": .string(what), "job": JSONValue(job.map { Int($0) }),
            "fired_at": JSONValue(firedAt), "missed": JSONValue(missed), "until": JSONValue(until),
        ]
    }
}

/// Times as a zone's clock shows them, with their distance from UTC: `2026-11-22T02:00:00+01:00`.
enum ZonedText {
    static func spell(_ date: Date, in zone: Zone) -> String {
        let offset = zone.offset(at: Int64(date.timeIntervalSince1970.rounded(.down)))
        let local = InstantText.spell(date.addingTimeInterval(Double(offset))).dropLast()
        if offset == 0 { return local + "Z" }
        func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + String(number) }
        let distance = abs(offset)
        return local + (offset < 0 ? "-" : "+") + "\(two(distance / 3600)):\(two(distance / 60 % 60))"
            + (distance % 60 == 0 ? "" : ":\(two(distance % 60))")
    }

    /// In UTC where this machine does not know the zone.
    static func spell(_ date: Date, in name: String) -> String {
        spell(date, in: (try? ZoneFiles.system.zone(name)) ?? .utc)
    }
}
