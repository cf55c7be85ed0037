import Faults
import FoundationEssentials
import Supervision

/// A provider for machines and for people.
extension ProviderRow {
    var json: JSONValue {
        [
            "provider": .string(provider), "class": .string(name), "state": .string(state),
            "generation": .int(Int(generation)), "reason": JSONValue(reason), "forced_by": JSONValue(forcedBy),
            "until": JSONValue(until), "ramp": ramp.map(JSONValue.double) ?? .null, "probes_out": .int(probesOut),
            "ok": .int(ok), "failed": .int(failed), "throttled": .int(throttled), "slow": .int(slow),
            "unknown": .int(unknown), "p50_ms": p50.map(JSONValue.double) ?? .null,
            "p99_ms": p99.map(JSONValue.double) ?? .null, "rate": rate.map(JSONValue.double) ?? .null,
            "quota_used": JSONValue(quotaUsed.map { Int($0) }), "quota_limit": JSONValue(quotaLimit.map { Int($0) }),
            "quota_resets_at": JSONValue(quotaResetsAt), "changed_at": JSONValue(changedAt),
        ]
    }

    private var style: Style {
        switch state {
        case "closed": .green
        case "open", "probing", "forced_open": .red
        default: .yellow
        }
    }

    static func table(_ rows: [ProviderRow]) -> Table {
        var table = Table(
            [
                Table.Column("provider", shrinks: true, importance: .key), Table.Column("class", importance: .high),
                Table.Column("state", importance: .high), Table.Column("until", .trailing),
                Table.Column("ok", .trailing),
                Table.Column("failed", .trailing, importance: .high), Table.Column("throttled", .trailing),
                Table.Column("p50", .trailing, importance: .low), Table.Column("p99", .trailing, importance: .low),
                Table.Column("rate", .trailing, importance: .low),
                Table.Column("reason", shrinks: true, importance: .high),
            ], whenEmpty: "no provider has been called yet")
        for row in rows {
            func time(_ milliseconds: Double?) -> String {
                milliseconds.map { "\(Humane.decimal($0, places: $0 < 10 ? 1 : 0)) ms" } ?? "-"
            }
            table.add([
                Table.Cell(row.provider, .bold), Table.Cell(row.name), Table.Cell(row.stateText, row.style),
                Table.Cell(
                    row.state == "closed"
                        ? "-" : row.until.map { Humane.relative(.seconds($0.timeIntervalSince(row.now))) } ?? "-"),
                Table.Cell(Humane.count(row.ok)), Table.Cell(Humane.count(row.failed), row.failed > 0 ? .red : .dim),
                Table.Cell(Humane.count(row.throttled), row.throttled > 0 ? .yellow : .dim), Table.Cell(time(row.p50)),
                Table.Cell(time(row.p99)),
                Table.Cell(row.rate.map { "\(Humane.decimal($0, places: 1))/s" } ?? "-"),
                Table.Cell(row.state == "closed" ? "" : row.reason ?? ""),
            ])
        }
        return table
    }
}

extension ProviderEvent {
    var json: JSONValue {
        [
            "at": JSONValue(at), "class": .string(name), "from_state": .string(from), "to_state": .string(to),
            "generation": .int(Int(generation)), "by": .string(by), "reason": JSONValue(reason),
        ]
    }

    static func table(_ events: [ProviderEvent]) -> Table {
        var table = Table(
            [
                Table.Column("at"), Table.Column("class"), Table.Column("from"), Table.Column("to"),
                Table.Column("by", shrinks: true), Table.Column("reason", shrinks: true),
            ], whenEmpty: "nothing has happened yet")
        for event in events {
            table.add([
                Table.Cell(event.at.formatted(.iso8601)), Table.Cell(event.name), Table.Cell(event.from),
                Table.Cell(event.to, .bold), Table.Cell(event.by), Table.Cell(event.reason ?? ""),
            ])
        }
        return table
    }
}

extension ProviderWorker {
    var json: JSONValue {
        [
            "worker": .string(worker), "class": .string(name), "ok": .int(ok), "failed": .int(failed),
            "throttled": .int(throttled), "slow": .int(slow), "unknown": .int(unknown), "vote": JSONValue(vote),
            "seen_at": JSONValue(seenAt),
        ]
    }

    static func table(_ workers: [ProviderWorker]) -> Table {
        var table = Table(
            [
                Table.Column("worker", shrinks: true), Table.Column("class"), Table.Column("ok", .trailing),
                Table.Column("failed", .trailing), Table.Column("throttled", .trailing),
                Table.Column("its own breaker", shrinks: true),
            ], whenEmpty: "no worker has called it in the last minute")
        for worker in workers {
            table.add([
                Table.Cell(worker.worker), Table.Cell(worker.name), Table.Cell(Humane.count(worker.ok)),
                Table.Cell(Humane.count(worker.failed)), Table.Cell(Humane.count(worker.throttled)),
                Table.Cell(worker.vote.map { "open: \($0)" } ?? "-", worker.vote == nil ? .dim : .red),
            ])
        }
        return table
    }
}

extension FlagRow {
    var json: JSONValue {
        [
            "name": .string(name), "percent": .int(percent), "always": JSONValue(always), "reason": JSONValue(reason),
            "changed_by": .string(changedBy), "changed_at": JSONValue(changedAt),
        ]
    }

    static func table(_ flags: [FlagRow]) -> Table {
        var table = Table(
            [
                Table.Column("flag"), Table.Column("on for", .trailing), Table.Column("always", shrinks: true),
                Table.Column("by", shrinks: true), Table.Column("reason", shrinks: true),
            ], whenEmpty: "no flags")
        for flag in flags {
            table.add([
                Table.Cell(flag.name, .bold), Table.Cell("\(flag.percent) %"),
                Table.Cell(flag.always.joined(separator: ", ")), Table.Cell(flag.changedBy),
                Table.Cell(flag.reason ?? ""),
            ])
        }
        return table
    }
}
