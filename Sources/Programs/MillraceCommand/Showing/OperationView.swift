import FoundationEssentials
import MillraceQueues

extension OperationRow {
    var members: [JSONValue.Member] {
        [
            .init(key: "id", value: .int(Int(id))), .init(key: "action", value: .string(action)),
            .init(key: "filter", value: .raw(String(decoding: filter, as: UTF8.self))),
            .init(key: "args", value: .raw(String(decoding: args, as: UTF8.self))),
            .init(key: "pace", value: JSONValue(pace)), .init(key: "state", value: .string(state)),
            .init(key: "undoing", value: .bool(isUndoing)), .init(key: "who", value: .string(who)),
            .init(key: "said_by", value: JSONValue(saidBy)), .init(key: "jobs", value: .int(jobs)),
            .init(key: "exact", value: .bool(isExact)), .init(key: "looked", value: .int(looked)),
            .init(key: "done", value: .int(done)), .init(key: "nothing", value: .int(nothing)),
            .init(key: "refused", value: .int(refused)), .init(key: "undone", value: .int(undone)),
            .init(key: "past", value: .int(past)), .init(key: "started_at", value: JSONValue(startedAt)),
            .init(key: "changed_at", value: JSONValue(changedAt)), .init(key: "ended_at", value: JSONValue(endedAt)),
            .init(key: "undo_until", value: JSONValue(undoUntil)), .init(key: "can_undo", value: .bool(canUndo)),
            .init(key: "undo_by", value: JSONValue(undoBy)),
            .init(key: "undo_said_by", value: JSONValue(undoSaidBy)),
            .init(key: "undo_started_at", value: JSONValue(undoStartedAt)),
            .init(key: "undo_ended_at", value: JSONValue(undoEndedAt)), .init(key: "key", value: JSONValue(key)),
            .init(key: "login", value: JSONValue(login)), .init(key: "undo_login", value: JSONValue(undoLogin)),
        ]
    }

    var json: JSONValue { .object(members) }

    /// Its filter and arguments, in a line.
    var what: String {
        let args = self.args == Array("{}".utf8) ? "" : " \(String(decoding: self.args, as: UTF8.self))"
        return "\(action) \(String(decoding: filter, as: UTF8.self))\(args)"
    }

    var counts: String {
        var parts = ["\(Humane.count(done)) done of \(isExact ? "" : "at least ")\(Humane.count(jobs))"]
        if nothing > 0 { parts.append("\(Humane.count(nothing)) with nothing to do") }
        if refused > 0 { parts.append("\(Humane.count(refused)) refused") }
        if isUndoing { parts.append("\(Humane.count(undone)) undone, \(Humane.count(past)) moved on") }
        return parts.joined(separator: ", ")
    }

    var stateStyle: Style {
        switch state {
        case "running", "undoing": .bold
        case "paused", "stopped": .yellow
        default: .plain
        }
    }

    var lines: [String] {
        var lines = [
            "operation \(id): \(what)", "  \(state)\(isUndoing && state == "paused" ? ", while it is undone" : "")",
            "  \(counts)",
            "  by \(Self.person(who, login, saidBy)), \(startedAt.formatted(.iso8601))",
        ]
        if let pace { lines.append("  at most \(Humane.count(pace, "job")) a second") }
        if let endedAt { lines.append("  ended \(endedAt.formatted(.iso8601))") }
        if canUndo, let undoUntil { lines.append("  can be undone until \(undoUntil.formatted(.iso8601))") }
        if let undoBy, let undoStartedAt {
            lines.append(
                "  undone by \(Self.person(undoBy, undoLogin, undoSaidBy)), \(undoStartedAt.formatted(.iso8601))")
        }
        return lines
    }

    /// What was verified, and then what was only said.
    private static func person(_ role: String, _ login: String?, _ said: String?) -> String {
        role + (login.map { $0 == role ? "" : ", signed in as \($0)" } ?? "")
            + (said.map { ", who claimed to be \($0)" } ?? "")
    }

    static func table(_ rows: [OperationRow]) -> Table {
        var table = Table(
            [
                Table.Column("id", .trailing, importance: .key), Table.Column("state", importance: .high),
                Table.Column("what", shrinks: true, importance: .high), Table.Column("done", .trailing),
                Table.Column("of", .trailing), Table.Column("undone", .trailing, importance: .low),
                Table.Column("by", importance: .low), Table.Column("started"),
            ], whenEmpty: "no operations")
        for row in rows {
            table.add([
                Table.Cell("\(row.id)"), Table.Cell(row.state, row.stateStyle), Table.Cell(row.what),
                Table.Cell(Humane.count(row.done)),
                Table.Cell(Humane.count(row.jobs) + (row.isExact ? "" : "+")),
                Table.Cell(row.isUndoing ? Humane.count(row.undone) : "-"),
                Table.Cell([row.login ?? row.who, row.saidBy].compactMap { $0 }.joined(separator: ", ")),
                Table.Cell(row.startedAt.formatted(.iso8601)),
            ])
        }
        return table
    }
}

extension OperationItem {
    var json: JSONValue {
        [
            "job": .int(Int(job)), "outcome": .string(outcome), "reason": JSONValue(reason), "at": JSONValue(at),
            "undo": JSONValue(undo), "undo_reason": JSONValue(undoReason),
        ]
    }

    static func table(_ items: [OperationItem]) -> Table {
        var table = Table(
            [
                Table.Column("job", .trailing, importance: .key), Table.Column("outcome", importance: .high),
                Table.Column("undo", importance: .high), Table.Column("reason", shrinks: true),
            ], whenEmpty: "no jobs")
        for item in items {
            table.add([
                Table.Cell("\(item.job)"), Table.Cell(item.outcome, item.outcome == "refused" ? .yellow : .plain),
                Table.Cell(item.undo ?? "-", item.undo == "past" ? .yellow : .plain),
                Table.Cell(item.undoReason ?? item.reason ?? ""),
            ])
        }
        return table
    }
}

extension AuditEntry {
    var json: JSONValue {
        [
            "id": .int(Int(id)), "at": JSONValue(at), "who": .string(who), "said_by": JSONValue(saidBy),
            "login": JSONValue(login), "action": .string(action), "object": JSONValue(object),
            "detail": detail.map { .raw(String(decoding: $0, as: UTF8.self)) } ?? .null,
        ]
    }

    static func table(_ entries: [AuditEntry]) -> Table {
        var table = Table(
            [
                Table.Column("id", .trailing, importance: .low), Table.Column("at", importance: .high),
                Table.Column("who", importance: .high), Table.Column("login"), Table.Column("said to be"),
                Table.Column("action", importance: .key), Table.Column("object", shrinks: true, importance: .high),
                Table.Column("detail", shrinks: true),
            ], whenEmpty: "nothing was done")
        for entry in entries {
            table.add([
                Table.Cell("\(entry.id)"), Table.Cell(entry.at.formatted(.iso8601)), Table.Cell(entry.who),
                Table.Cell(entry.login ?? "-"), Table.Cell(entry.saidBy ?? "-"), Table.Cell(entry.action, .bold),
                Table.Cell(entry.object ?? "-"),
                Table.Cell(entry.detail.map { String(decoding: $0, as: UTF8.self) } ?? ""),
            ])
        }
        return table
    }
}
