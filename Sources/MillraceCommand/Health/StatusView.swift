import Queues
import Supervision

/// A report with its verdict, for machines and for people.
struct StatusView {
    let report: StatusReport
    let findings: [Finding]
    let severity: Severity

    init(_ report: StatusReport, failIf: FailIf?) {
        self.report = report
        let hits = failIf.map { report.hits(of: $0) } ?? []
        findings = (hits + report.findings).sorted { $0.severity > $1.severity }
        severity = findings.map(\.severity).max() ?? .ok
        exitCode = failIf == nil ? severity.exitCode : hits.isEmpty ? .done : .critical
    }

    /// With `--fail-if` its conditions alone decide.
    let exitCode: ExitCode

    func lines(width: Int?, colors: Bool) -> [String] {
        var lines = [severity.style.paint(severity.word, on: colors) + verdict]
        func title(_ text: String) { lines += ["", Style.bold.paint(text, on: colors)] }
        func missing(_ reason: String) { lines.append("  unavailable: \(DisplayWidth.harmless(reason))") }
        func table(_ table: Table) {
            lines += table.lines(width: width.map { $0 - 2 }, colors: colors).map { "  " + $0 }
        }

        title("queues")
        switch report.queues {
        case .known(let queues): table(QueueDepth.table(queues, rates: report.rates.value ?? [], cap: report.cap))
        case .unavailable(let reason): missing(reason)
        }
        if let reason = report.rates.reason { lines.append("  rates unavailable: \(DisplayWidth.harmless(reason))") }
        title("workers")
        switch report.workers {
        case .known(let workers): table(WorkerRow.table(workers))
        case .unavailable(let reason): missing(reason)
        }
        switch report.limits {
        case .known([]): break
        case .known(let limits):
            title("limits")
            table(LimitRow.table(limits))
        case .unavailable(let reason):
            title("limits")
            missing(reason)
        }
        switch report.schedules {
        case .known(let schedules):
            // Whoever has none need not read of it.
            if !schedules.isEmpty {
                title("schedules")
                table(ScheduleRow.table(Array(schedules.prefix(StatusReport.mostSchedules))))
                if schedules.count > StatusReport.mostSchedules { lines.append("  and more: millrace schedules list") }
            }
        case .unavailable(let reason):
            title("schedules")
            missing(reason)
        }
        switch report.providers {
        case .known([]): break
        case .known(let providers):
            title("providers")
            table(ProviderRow.table(Array(providers.prefix(StatusReport.mostSchedules))))
            if providers.count > StatusReport.mostSchedules { lines.append("  and more: millrace providers list") }
        case .unavailable(let reason):
            title("providers")
            missing(reason)
        }
        title("attention")
        lines += attention.map { "  " + DisplayWidth.harmless($0) }
        title("storage")
        lines += storage.map { "  " + DisplayWidth.harmless($0) }
        title("schema")
        switch report.schema {
        case .known(let state):
            lines.append("  version \(state.version); this program speaks \(Queue.schemaVersion)")
        case .unavailable(let reason): missing(reason)
        }
        return lines
    }

    private var verdict: String {
        guard let first = findings.first else { return "  nothing needs attention" }
        let more = findings.count > 3 ? "; and \(findings.count - 3) more" : ""
        return "  "
            + DisplayWidth.harmless(
                (findings.count == 1 ? first.sentence : findings.prefix(3).map(\.sentence).joined(separator: "; "))
                    + more)
    }

    private var attention: [String] {
        var lines: [String] = []
        switch report.orphans {
        case .known(let orphans):
            lines += orphans.map { "no worker for \($0.kind): \(Humane.count($0.waiting)) wait" }
        case .unavailable(let reason): lines.append("kinds without worker unavailable: \(reason)")
        }
        switch report.deadLastDay {
        case .known(0): break
        case .known(let dead):
            lines.append(
                "\(QueueDepth.counted(dead, cap: 10_000)) dead in the last day: millrace jobs list --state dead")
        case .unavailable(let reason): lines.append("dead jobs unavailable: \(reason)")
        }
        switch report.blocked {
        case .known(0): break
        case .known(let blocked):
            let wait = blocked == 1 ? "job waits" : "jobs wait"
            lines.append(
                "\(QueueDepth.counted(blocked, cap: 10_000)) \(wait) for other jobs: millrace jobs list --state blocked"
            )
        case .unavailable(let reason): lines.append("blocked jobs unavailable: \(reason)")
        }
        switch report.parked {
        case .known(0): break
        case .known(let parked):
            let wait = parked == 1 ? "job waits" : "jobs wait"
            lines.append("\(QueueDepth.counted(parked, cap: 10_000)) \(wait) for a limit key: millrace queues limit")
        case .unavailable(let reason): lines.append("parked jobs unavailable: \(reason)")
        }
        for worker in report.workers.value ?? [] {
            if worker.stuck > 0 { lines.append("\(worker.name) has \(worker.stuck) stuck handlers") }
            if worker.isSilent {
                lines.append("\(worker.name) has been silent for \(Humane.duration(.seconds(worker.beatAge)))")
            }
        }
        lines += (report.queues.value ?? []).filter { $0.pausedAt != nil }.map { "\($0.name) is paused" }
        return lines.isEmpty ? ["nothing"] : lines
    }

    private var storage: [String] {
        var lines: [String] = []
        switch report.sizes {
        case .known(let sizes):
            let total = sizes.reduce(0) { $0 + $1.bytes }
            let largest = sizes.prefix(3).map { "\($0.name) \(Humane.bytes($0.bytes))" }.joined(separator: ", ")
            lines.append("\(Humane.bytes(total)) in \(sizes.count) tables; largest: \(largest)")
        case .unavailable(let reason): lines.append("sizes unavailable: \(reason)")
        }
        switch report.sealed {
        case .known(let keys):
            if !keys.isEmpty { lines.append("encrypted jobs by key: \(keys.map(\.summary).joined(separator: ", "))") }
        case .unavailable(let reason): lines.append("encryption keys unavailable: \(reason)")
        }
        switch report.pins {
        case .known(let pins):
            if let pin = pins.max(by: { $0.age < $1.age }) {
                lines.append(
                    "oldest transaction: \(Humane.duration(.seconds(pin.age))), pid \(pin.pid), \(pin.application ?? "?"), \(pin.state ?? "?")"
                )
            }
        case .unavailable(let reason): lines.append("open transactions unavailable: \(reason)")
        }
        switch report.partitions {
        case .known(let ahead):
            lines.append(
                "partitions ahead: \(ahead.historyDays.map { "\($0) days" } ?? "none"), \(Humane.count(ahead.jobIDs)) job ids"
            )
        case .unavailable(let reason): lines.append("partitions unavailable: \(reason)")
        }
        return lines
    }

    var json: JSONValue {
        [
            "verdict": .string(severity.word.lowercased()),
            "reasons": JSONValue(findings.map(\.sentence)),
            "capped_at": JSONValue(report.cap),
            "queues": .of(report.queues) { queues in .array(queues.map { $0.json(rates: report.rates.value) }) },
            "workers": .of(report.workers) { .array($0.map(\.json)) },
            "schedules": .of(report.schedules) {
                .array($0.prefix(StatusReport.mostSchedules).map(\.json))
            },
            "orphans": .of(report.orphans) { orphans in
                .array(orphans.map { ["kind": .string($0.kind), "waiting": .int($0.waiting)] })
            },
            "dead_last_hour": .of(report.deadLastHour) { .int($0) },
            "dead_last_day": .of(report.deadLastDay) { .int($0) },
            "blocked": .of(report.blocked) { .int($0) },
            "providers": .of(report.providers) { .array($0.map(\.json)) },
            "limits": .of(report.limits) { .array($0.map(\.json)) },
            "parked": .of(report.parked) { .int($0) },
            "encryption_keys": .of(report.sealed) { .array($0.map(\.json)) },
            "pins": .of(report.pins) { pins in
                .array(
                    pins.map {
                        [
                            "pid": .int($0.pid), "application": JSONValue($0.application), "user": JSONValue($0.user),
                            "state": JSONValue($0.state), "seconds": .double($0.age),
                        ]
                    })
            },
            "tables": .of(report.sizes) { sizes in
                .array(
                    sizes.map { ["name": .string($0.name), "bytes": .int($0.bytes), "dead_rows": .int($0.deadRows)] })
            },
            "partitions": .of(report.partitions) { ahead in
                [
                    "history_days": JSONValue(ahead.historyDays), "job_ids": .int(ahead.jobIDs),
                    "strays": .int(ahead.strays),
                ]
            },
            "schema": .of(report.schema) { .int($0.version) },
            "unavailable": .object(unavailable.map { .init(key: $0.0, value: .string($0.1)) }),
        ]
    }

    private var unavailable: [(String, String)] {
        let reasons: [(String, String?)] = [
            ("queues", report.queues.reason), ("rates", report.rates.reason), ("workers", report.workers.reason),
            ("schedules", report.schedules.reason), ("providers", report.providers.reason),
            ("orphans", report.orphans.reason),
            ("dead_last_hour", report.deadLastHour.reason),
            ("dead_last_day", report.deadLastDay.reason), ("blocked", report.blocked.reason),
            ("limits", report.limits.reason),
            ("parked", report.parked.reason),
            ("encryption_keys", report.sealed.reason), ("pins", report.pins.reason), ("tables", report.sizes.reason),
            ("partitions", report.partitions.reason), ("schema", report.schema.reason),
        ]
        return reasons.compactMap { name, reason in reason.map { (name, $0) } }
    }
}

extension JSONValue {
    fileprivate static func of<Value>(_ section: Section<Value>, _ json: (Value) -> JSONValue) -> JSONValue {
        section.value.map(json) ?? .null
    }
}

extension QueueDepth {
    fileprivate func json(rates: [RateRow]?) -> JSONValue {
        guard case .object(let members) = json, let rates else { return json }
        let sum = RateSum(rates.filter { $0.queue == name })
        return .object(
            members + [
                .init(key: "succeeded_per_second", value: .double(sum.succeededPerSecond)),
                .init(key: "failed_share", value: sum.failedShare.map(JSONValue.double) ?? .null),
            ])
    }
}
