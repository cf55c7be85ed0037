import MillraceQueues
import Supervision

/// A report with its verdict, for machines and for people.
struct StatusView {
    let report: StatusReport
    /// Ranked, as their groups are.
    let findings: [Finding]
    let groups: [FindingGroup]
    let severity: Severity
    let failIf: FailIf?
    /// The conditions that hold.
    let hits: [Finding]

    init(_ report: StatusReport, failIf: FailIf?) {
        self.report = report
        self.failIf = failIf
        hits = failIf.map { report.hits(of: $0) } ?? []
        groups = FindingGroup.all(of: hits + report.findings)
        findings = groups.flatMap(\.findings).enumerated()
            .sorted { ($0.element.severity, $1.offset) > ($1.element.severity, $0.offset) }.map(\.element)
        severity = findings.map(\.severity).max() ?? .ok
        exitCode = failIf == nil ? severity.exitCode : hits.isEmpty ? .done : .critical
    }

    /// With `--fail-if` its conditions alone decide.
    let exitCode: ExitCode

    var json: JSONValue {
        guard case .object(let members) = ownJSON else { return ownJSON }
        return .object(
            members + report.roomMembers + [
                .init(key: "unavailable", value: .object(unavailable.map { .init(key: $0.0, value: .string($0.1)) }))
            ])
    }

    /// What is the core's.
    private var ownJSON: JSONValue {
        [
            "verdict": .string(severity.word.lowercased()),
            "reasons": JSONValue(findings.map(\.sentence)),
            "findings": .array(
                findings.map {
                    [
                        "alarm": .string($0.alarm.name), "severity": .string($0.severity.word.lowercased()),
                        "sentence": .string($0.sentence), "command": .string($0.command),
                    ]
                }),
            "exit_code": .int(Int(exitCode.rawValue)), "fail_if": conditions,
            "capped_at": JSONValue(report.cap),
            "queues": .of(report.queues) { queues in
                .array(
                    queues.map {
                        $0.json(
                            rates: report.rates.value, retries: report.retries.value,
                            why: report.whys[$0.name] ?? .null)
                    })
            },
            "troubles": .of(report.troubles) { .array($0.map(\.json)) },
            "runs": .of(report.runTroubles) { runs in
                .array(
                    runs.map {
                        [
                            "trouble": .string($0.trouble.rawValue), "job": .int(Int($0.job)), "kind": .string($0.kind),
                            "queue": .string($0.queue), "worker": JSONValue($0.worker), "host": JSONValue($0.host),
                            "pid": JSONValue($0.pid), "seconds": $0.seconds.map(JSONValue.double) ?? .null,
                            "crashes": JSONValue($0.crashes),
                        ]
                    })
            },
            "hooks": .of(report.hooks) { hooks in
                .array(
                    hooks.map {
                        [
                            "event": .string($0.event), "room": .string($0.room), "function": .string($0.function),
                            "times": .int($0.times), "sentence": .string($0.sentence),
                        ]
                    })
            },
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
            "lanes": .of(report.lanes) { .array($0.map(\.json)) },
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
            "builds": .of(report.builds) { _ in .array(report.runningBuilds.map(\.json)) },
            "connections": .of(report.connections) {
                ["left": .int($0.left), "limit": .string($0.limit.rawValue), "name": JSONValue($0.name)]
            },
            "schema": .of(report.schema) { .int($0.version) },
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
            ("partitions", report.partitions.reason),
            ("builds", report.builds.reason),
            ("schema", report.schema.reason), ("troubles", report.troubles.reason),
            ("retries", report.retries.reason), ("runs", report.runTroubles.reason),
            ("hooks", report.hooks.reason), ("rooms", report.rooms.reason),
            ("lanes", report.lanes.reason), ("connections", report.connections.reason),
        ]
        return (reasons + report.parts.map { ($0.name, $0.state.reason) }).compactMap { name, reason in
            reason.map { (name, $0) }
        }
    }
}

extension JSONValue {
    fileprivate static func of<Value>(_ section: Section<Value>, _ json: (Value) -> JSONValue) -> JSONValue {
        section.value.map(json) ?? .null
    }
}

extension QueueDepth {
    fileprivate func json(rates: [RateRow]?, retries: [RetryRow]?, why: JSONValue) -> JSONValue {
        guard case .object(var members) = json else { return json }
        let retrying = retries?.filter { $0.queue == name }.reduce(0) { $0 + $1.jobs }
        members.append(.init(key: "retrying", value: JSONValue(retrying)))
        members.append(.init(key: "why", value: why))
        guard let rates else { return .object(members) }
        let sum = RateSum(rates.filter { $0.queue == name })
        return .object(
            members + [
                .init(key: "succeeded_per_second", value: .double(sum.succeededPerSecond)),
                .init(key: "failed_share", value: sum.failedShare.map(JSONValue.double) ?? .null),
            ])
    }
}
