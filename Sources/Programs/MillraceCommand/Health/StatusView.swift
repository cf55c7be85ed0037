import CheckIns
import Documents
import Mail
import Notices
import Quests
import Queues
import Supervision
import Webhooks

/// A report with its verdict, for machines and for people.
struct StatusView {
    let report: StatusReport
    let findings: [Finding]
    let severity: Severity
    let failIf: FailIf?
    /// The conditions that hold.
    let hits: [Finding]

    init(_ report: StatusReport, failIf: FailIf?) {
        self.report = report
        self.failIf = failIf
        hits = failIf.map { report.hits(of: $0) } ?? []
        findings = (hits + report.findings).sorted { $0.severity > $1.severity }
        severity = findings.map(\.severity).max() ?? .ok
        exitCode = failIf == nil ? severity.exitCode : hits.isEmpty ? .done : .critical
    }

    /// With `--fail-if` its conditions alone decide.
    let exitCode: ExitCode

    func lines(width: Int?, colors: Bool) -> [String] {
        var lines = head(width: width, colors: colors)
        func title(_ text: String) { lines += ["", Style.bold.paint(text, on: colors)] }
        func text(_ content: String) {
            let columns = width.map { max(20, $0 - 2) } ?? .max
            lines += Wrapping.lines(DisplayWidth.harmless(content), columns: columns).map { "  " + $0 }
        }
        func missing(_ reason: String) { text("unavailable: \(reason)") }
        func table(_ table: Table) {
            lines += table.lines(width: width.map { $0 - 2 }, colors: colors).map { "  " + $0 }
        }

        // What needs a person comes first: a window may be too low for the rest.
        title("attention")
        attention.forEach(text)
        title("queues")
        switch report.queues {
        case .known(let queues): table(QueueDepth.table(queues, rates: report.rates.value ?? [], cap: report.cap))
        case .unavailable(let reason): missing(reason)
        }
        if let reason = report.rates.reason { text("rates unavailable: \(reason)") }
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
                if schedules.count > StatusReport.mostSchedules { text("and more: millrace schedules list") }
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
            if providers.count > StatusReport.mostSchedules { text("and more: millrace providers list") }
        case .unavailable(let reason):
            title("providers")
            missing(reason)
        }
        switch report.mail {
        case .known(let mail):
            if let mail, let current = mail.current {
                title("mail")
                let doubt = mail.unknown > 0 ? " · \(Humane.count(mail.unknown)) in doubt" : ""
                let parked = mail.parked > 0 ? " · \(Humane.count(mail.parked)) parked for a decision" : ""
                text(
                    "by \(current)\(mail.isSwitched ? ", not by \(mail.chosen ?? "?")" : "")\(doubt)\(parked)")
            }
        case .unavailable(let reason):
            title("mail")
            missing(reason)
        }
        switch report.documents {
        case .known(let documents):
            if let documents, documents.processing + documents.failedToday > 0 {
                title("documents")
                text(
                    "\(Humane.count(documents.processing)) being read · \(Humane.count(documents.waitingPages, "page")) to go · "
                        + "\(Humane.count(documents.failedToday)) failed in a day")
            }
        case .unavailable(let reason):
            title("documents")
            missing(reason)
        }
        switch report.checkIns {
        case .known(let state):
            // Whoever watches nobody need not read of it.
            if state.watches > 0 || state.open > 0 || state.beat != nil {
                title("check-ins")
                let beat =
                    state.beat.map { "watched over \(Humane.duration(.seconds($0))) ago" } ?? "watched over by nobody"
                text(
                    "\(Humane.count(state.watches)) watches · \(Humane.count(state.open)) open alarms · \(Humane.count(state.overdue)) overdue · \(beat)"
                )
            }
        case .unavailable(let reason):
            title("check-ins")
            missing(reason)
        }
        switch report.webhooks {
        case .known(let webhooks):
            if webhooks.targets > 0 {
                title("webhooks")
                let off = webhooks.disabled > 0 ? " · \(Humane.count(webhooks.disabled)) switched off" : ""
                text(
                    "\(Humane.count(webhooks.targets)) told of events\(off) · \(QueueDepth.counted(webhooks.waiting, cap: 10_000)) deliveries wait"
                )
            }
        case .unavailable(let reason):
            title("webhooks")
            missing(reason)
        }
        switch report.notices {
        case .known(let notices):
            if notices.alarms + notices.plain + notices.lost > 0 {
                title("notices")
                text(
                    "\(Humane.count(notices.alarms, "alarm")) and \(Humane.count(notices.plain)) others are due"
                        + (notices.lost > 0 ? " · \(Humane.count(notices.lost)) alarms lost in the last hour" : ""))
            }
        case .unavailable(let reason):
            title("notices")
            missing(reason)
        }
        title("storage")
        storage.forEach(text)
        title("schema")
        switch report.schema {
        case .known(let state):
            text("version \(state.version); this program speaks \(Queue.schemaVersion)")
        case .unavailable(let reason): missing(reason)
        }
        return lines
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
        case .unavailable(let reason): lines.append("jobs held back by a limit key unavailable: \(reason)")
        }
        switch report.retries {
        case .known(let rows):
            let retrying = rows.reduce(0) { $0 + $1.jobs }
            if retrying > 0 {
                lines.append(
                    "\(Humane.count(retrying)) \(retrying == 1 ? "job waits" : "jobs wait") for another attempt")
            }
        case .unavailable(let reason): lines.append("jobs that wait for another attempt unavailable: \(reason)")
        }
        if report.rooms.value?.contains(where: \.becomesFiles) ?? false {
            lines.append("mail becomes files at some worker: no service for mail is configured there")
        }
        if let reason = report.rooms.reason { lines.append("rooms without worker unavailable: \(reason)") }
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
            "exit_code": .int(Int(exitCode.rawValue)), "fail_if": conditions,
            "capped_at": JSONValue(report.cap),
            "queues": .of(report.queues) { queues in
                .array(queues.map { $0.json(rates: report.rates.value, retries: report.retries.value) })
            },
            "troubles": .of(report.troubles) { .array($0.map(\.json)) },
            "rooms": .of(report.rooms) { rooms in
                .array(
                    rooms.map {
                        [
                            "room": .string($0.name), "waiting": JSONValue($0.waiting), "used": .bool($0.isUsed),
                            "oldest_seconds": $0.oldest.map(JSONValue.double) ?? .null, "workers": .int($0.servers),
                            "unsure_workers": .int($0.unsure), "how": JSONValue($0.how),
                        ]
                    })
            },
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
            "mail": .of(report.mail) { mail in
                guard let mail else { return .null }
                return [
                    "chosen": JSONValue(mail.chosen), "current": JSONValue(mail.current),
                    "since": JSONValue(mail.since),
                    "reason": JSONValue(mail.reason), "parked": .int(mail.parked), "unknown": .int(mail.unknown),
                ]
            },
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
            "quests": .of(report.quests) {
                ["due": .int($0.due), "oldest_seconds": .double($0.lag), "broken": .int($0.broken)]
            },
            "documents": .of(report.documents) { documents in
                guard let documents else { return .null }
                return [
                    "processing": .int(documents.processing), "waiting_pages": .int(documents.waitingPages),
                    "failed_last_day": .int(documents.failedToday), "oldest": JSONValue(documents.oldest),
                ]
            },
            "check_ins": .of(report.checkIns) { state in
                [
                    "watches": .int(state.watches), "overdue": .int(state.overdue),
                    "oldest_seconds": .double(state.oldest),
                    "beat_seconds": state.beat.map(JSONValue.double) ?? .null, "open": .int(state.open),
                    "unreachable": .int(state.unreachable), "broken": .int(state.broken),
                ]
            },
            "notices": .of(report.notices) {
                [
                    "alarms": .int($0.alarms), "oldest_alarm_seconds": .double($0.alarmAge), "plain": .int($0.plain),
                    "oldest_plain_seconds": .double($0.plainAge), "alarms_lost": .int($0.lost),
                ]
            },
            "webhooks": .of(report.webhooks) {
                [
                    "targets": .int($0.targets), "disabled": .int($0.disabled), "waiting": .int($0.waiting),
                    "late_seconds": .double($0.late),
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
            ("mail", report.mail.reason),
            ("documents", report.documents.reason),
            ("orphans", report.orphans.reason),
            ("dead_last_hour", report.deadLastHour.reason),
            ("dead_last_day", report.deadLastDay.reason), ("blocked", report.blocked.reason),
            ("limits", report.limits.reason),
            ("parked", report.parked.reason),
            ("encryption_keys", report.sealed.reason), ("pins", report.pins.reason), ("tables", report.sizes.reason),
            ("partitions", report.partitions.reason), ("quests", report.quests.reason),
            ("check_ins", report.checkIns.reason),
            ("notices", report.notices.reason),
            ("webhooks", report.webhooks.reason),
            ("schema", report.schema.reason), ("troubles", report.troubles.reason),
            ("retries", report.retries.reason), ("rooms", report.rooms.reason),
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
    fileprivate func json(rates: [RateRow]?, retries: [RetryRow]?) -> JSONValue {
        guard case .object(var members) = json else { return json }
        let retrying = retries?.filter { $0.queue == name }.reduce(0) { $0 + $1.jobs }
        members.append(.init(key: "retrying", value: JSONValue(retrying)))
        guard let rates else { return .object(members) }
        let sum = RateSum(rates.filter { $0.queue == name })
        return .object(
            members + [
                .init(key: "succeeded_per_second", value: .double(sum.succeededPerSecond)),
                .init(key: "failed_share", value: sum.failedShare.map(JSONValue.double) ?? .null),
            ])
    }
}
