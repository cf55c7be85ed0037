import Calendars
import FoundationEssentials
import MillraceQueues

/// A report of the past with its verdict, for machines and for people, in the order of `status`.
struct PastView {
    let report: PastReport
    let zone: Zone
    let findings: [Finding]
    let severity: Severity

    init(_ report: PastReport, zone: Zone) {
        self.report = report
        self.zone = zone
        findings = report.findings
        severity = findings.map(\.severity).max() ?? .ok
    }

    var exitCode: ExitCode { severity.exitCode }

    var json: JSONValue {
        [
            "at": JSONValue(report.at), "step_seconds": .int(report.moment.step), "zone": .string(zone.name),
            "local": .string(ZonedText.spell(report.at, in: zone)), "kept_since": JSONValue(report.moment.keptSince),
            "verdict": .string(severity.word.lowercased()), "reasons": JSONValue(findings.map(\.sentence)),
            "exit_code": .int(Int(exitCode.rawValue)),
            "queues": .array(report.queues.map { $0.json(report.ended(in: $0.queue)) }),
            "workers": .array(report.workers.map(\.json)), "providers": .array(report.providers.map(\.json)),
            "storage": report.storage.map(\.json) ?? .null, "events": .array(report.events.map(\.json)),
        ]
    }

    func line(colors: Bool) -> String {
        let reasons = findings.isEmpty ? ["nothing needed attention"] : findings.map(\.sentence)
        return severity.style.paint(severity.word, on: colors) + "  "
            + DisplayWidth.harmless(reasons.joined(separator: "; "))
    }

    func lines(width: Int?, colors: Bool) -> [String] {
        func wrapped(_ text: String) -> [String] {
            Wrapping.lines(DisplayWidth.harmless(text), columns: width.map { max(20, $0 - 2) } ?? .max).map {
                "  " + $0
            }
        }
        func title(_ text: String) -> [String] { ["", Style.bold.paint(text, on: colors)] }
        func indented(_ table: Table) -> [String] {
            table.lines(width: width.map { $0 - 2 }, colors: colors).map { "  " + $0 }
        }
        let span = report.moment.step == 10 ? "ten seconds" : "a minute"
        var lines = [severity.style.paint(severity.word, on: colors)]
        lines[0] += "  as it was at \(ZonedText.spell(report.at, in: zone)) (\(zone.name)), the mean of \(span)"
        for finding in findings { lines += wrapped(finding.sentence) }
        if findings.isEmpty { lines += wrapped("nothing needed attention, as far as samples tell") }
        lines += title("queues") + indented(queues)
        lines += title("workers") + indented(workers)
        if !report.providers.isEmpty { lines += title("providers") + indented(providers) }
        lines += title("storage")
        storage.forEach { lines += wrapped($0) }
        if !report.events.isEmpty {
            lines += title("the half hour before") + indented(FleetEvent.table(report.events, in: zone))
        }
        return lines
    }

    private var queues: Table {
        var table = Table(
            [
                Table.Column("queue", shrinks: true, importance: .key),
                Table.Column("ready", .trailing, importance: .high), Table.Column("scheduled", .trailing),
                Table.Column("running", .trailing), Table.Column("oldest", .trailing, importance: .high),
                Table.Column("done/s", .trailing), Table.Column("failed", .trailing, importance: .high),
                Table.Column("state", importance: .high),
            ], whenEmpty: "no queue had jobs")
        for queue in report.queues {
            let ended = report.ended(in: queue.queue)
            table.add([
                Table.Cell(queue.queue ?? "", .bold), Table.Cell(PastReport.rounded(queue.ready + queue.due)),
                Table.Cell(PastReport.rounded(queue.scheduled)), Table.Cell(PastReport.rounded(queue.running)),
                Table.Cell(
                    queue.oldest > 0 ? Humane.duration(.seconds(queue.oldest)) : "-",
                    queue.oldest > 300 && !queue.paused ? .yellow : .plain),
                Table.Cell(ended.runs == 0 ? "-" : Humane.decimal(ended.succeededPerSecond, places: 1)),
                Table.Cell(ended.failedShare.map(Humane.percent) ?? "-", ended.failed > 0 ? .yellow : .plain),
                Table.Cell(queue.paused ? "paused" : "", .yellow),
            ])
        }
        return table
    }

    private var workers: Table {
        var table = Table(
            [
                Table.Column("worker", shrinks: true, importance: .key), Table.Column("state", importance: .high),
                Table.Column("slots", .trailing, importance: .high), Table.Column("up", .trailing),
                Table.Column("version", importance: .high), Table.Column("stuck", .trailing),
                Table.Column("host", shrinks: true, importance: .low),
            ], whenEmpty: "no workers")
        for worker in report.workers {
            let up = worker.startedAt.map { report.at.timeIntervalSince($0) }
            table.add([
                Table.Cell(worker.worker ?? "?", .bold),
                Table.Cell(worker.state ?? "?", worker.state == "working" ? .green : .yellow),
                Table.Cell("\(PastReport.rounded(worker.running))/\(PastReport.rounded(worker.slots))"),
                Table.Cell(up.map { Humane.duration(.seconds(max(0, $0.rounded()))) } ?? "-"),
                Table.Cell(worker.version ?? "?"),
                Table.Cell(PastReport.rounded(worker.stuck), worker.stuck > 0 ? .red : .dim),
                Table.Cell(worker.host ?? "", .dim),
            ])
        }
        return table
    }

    private var providers: Table {
        var table = Table(
            [
                Table.Column("provider", shrinks: true, importance: .key), Table.Column("class", importance: .high),
                Table.Column("state", importance: .high), Table.Column("calls", .trailing),
                Table.Column("failed", .trailing, importance: .high), Table.Column("throttled", .trailing),
                Table.Column("p50", .trailing, importance: .low), Table.Column("p99", .trailing, importance: .low),
            ])
        for provider in report.providers {
            func time(_ milliseconds: Double) -> String {
                milliseconds > 0 ? "\(Humane.decimal(milliseconds, places: milliseconds < 10 ? 1 : 0)) ms" : "-"
            }
            table.add([
                Table.Cell(provider.provider, .bold), Table.Cell(provider.name),
                Table.Cell(provider.stateText, provider.state == "closed" ? .green : .yellow),
                Table.Cell(PastReport.rounded(provider.calls)),
                Table.Cell(PastReport.rounded(provider.failures), provider.failures > 0 ? .red : .dim),
                Table.Cell(PastReport.rounded(provider.throttled)), Table.Cell(time(provider.p50)),
                Table.Cell(time(provider.p99)),
            ])
        }
        return table
    }

    private var storage: [String] {
        guard let storage = report.storage else { return ["not sampled around then"] }
        var lines = ["\(Humane.bytes(storage.bytes)), \(Humane.count(storage.dead)) dead rows in the hot tables"]
        if let age = storage.oldestTransaction, age > 0 {
            lines.append("oldest transaction: \(Humane.duration(.seconds(age)))")
        }
        let days = storage.historyDays.map { "\(Humane.decimal($0, places: 0)) days" } ?? "none"
        lines.append("partitions ahead: \(days), \(Humane.count(storage.jobIDs ?? 0)) job ids")
        return lines
    }
}

extension QueueSample {
    fileprivate func json(_ ended: PastRuns) -> JSONValue {
        [
            "queue": JSONValue(queue), "paused": .bool(paused), "ready": .double(ready), "due": .double(due),
            "scheduled": .double(scheduled), "running": .double(running), "oldest_seconds": .double(oldest),
            "succeeded_per_second": .double(ended.succeededPerSecond),
            "failed_share": ended.failedShare.map(JSONValue.double) ?? .null,
        ]
    }
}

extension WorkerSample {
    fileprivate var json: JSONValue {
        [
            "worker": JSONValue(worker), "session": JSONValue(session), "version": JSONValue(version),
            "host": JSONValue(host), "started_at": JSONValue(startedAt), "state": JSONValue(state),
            "running": .double(running), "waiting": .double(waiting), "stuck": .double(stuck), "slots": .double(slots),
        ]
    }
}

extension ProviderSample {
    fileprivate var json: JSONValue {
        [
            "provider": .string(provider), "class": .string(name), "state": .string(state), "calls": .double(calls),
            "failures": .double(failures), "throttled": .double(throttled), "slow": .double(slow),
            "unknown": .double(unknown), "p50_ms": .double(p50), "p99_ms": .double(p99),
        ]
    }
}

extension StorageSample {
    fileprivate var json: JSONValue {
        [
            "bytes": .int(bytes), "dead_rows": .int(dead),
            "oldest_transaction_seconds": oldestTransaction.map(JSONValue.double) ?? .null,
            "history_days": historyDays.map(JSONValue.double) ?? .null, "job_ids": JSONValue(jobIDs),
            "strays": JSONValue(strays),
        ]
    }
}

extension FleetEvent {
    var json: JSONValue {
        [
            "at": JSONValue(at), "event": .string(event), "subject": .string(subject), "version": JSONValue(version),
            "by": JSONValue(by), "detail": JSONValue(detail),
        ]
    }

    private var second: Date { Date(timeIntervalSince1970: at.timeIntervalSince1970.rounded(.down)) }

    static func table(_ events: [FleetEvent], in zone: Zone) -> Table {
        var table = Table(
            [
                Table.Column("at", importance: .key), Table.Column("event", importance: .key),
                Table.Column("subject", shrinks: true, importance: .high), Table.Column("version"),
                Table.Column("by", shrinks: true), Table.Column("detail", shrinks: true, importance: .low),
            ])
        for event in events {
            table.add([
                Table.Cell(ZonedText.spell(event.second, in: zone)), Table.Cell(event.event, .bold),
                Table.Cell(event.subject), Table.Cell(event.version ?? ""), Table.Cell(event.by ?? ""),
                Table.Cell(event.detail ?? "", .dim),
            ])
        }
        return table
    }
}
