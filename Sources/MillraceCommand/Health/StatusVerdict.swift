import Queues
import Supervision

/// How serious it is; the worst of all findings is the verdict.
enum Severity: Int, Sendable, Comparable {
    case ok, degraded, critical

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    var word: String {
        switch self {
        case .ok: "OK"
        case .degraded: "DEGRADED"
        case .critical: "CRITICAL"
        }
    }

    var exitCode: ExitCode {
        switch self {
        case .ok: .done
        case .degraded: .degraded
        case .critical: .critical
        }
    }

    var style: Style {
        switch self {
        case .ok: .green
        case .degraded: .yellow
        case .critical: .red
        }
    }
}

/// Everything that may be wrong. deploy/README.md has a heading for each, with what to do.
enum Alarm: String, Sendable, CaseIterable {
    case condition = "a condition of --fail-if holds"
    case unknownState = "the queues or the workers cannot be told"
    case noWorker = "no worker lives"
    case noPartitions = "no partition lies ahead"
    case lateQueue = "the oldest job waits too long"
    case deadJobs = "jobs died in the last hour"
    case unknownKind = "no worker knows a kind"
    case stuckHandlers = "stuck handlers"
    case silentWorker = "a worker is silent"
    case brokenSchedule = "a schedule cannot fire"
    case overdueSchedule = "a schedule is overdue"
    case missedTimes = "a schedule missed times"
    case providerOpen = "a provider is not called"
    case providerForced = "an operator has forced a provider"
    case openTransaction = "a transaction has been open for long"
    case strayHistory = "history lies in a default partition"
    case testClock = "a test clock is installed"
}

struct Finding: Sendable, Equatable {
    let alarm: Alarm
    let severity: Severity
    let sentence: String
}

extension StatusReport {
    /// What is wrong, by the rules that hold without `--fail-if`.
    var findings: [Finding] {
        var found: [Finding] = []
        func say(_ alarm: Alarm, _ severity: Severity, _ sentence: String) {
            found.append(Finding(alarm: alarm, severity: severity, sentence: sentence))
        }
        // Silence would be taken for health.
        if queues.value == nil { say(.unknownState, .degraded, "the queues cannot be told") }
        if workers.value == nil { say(.unknownState, .degraded, "the workers cannot be told") }
        if let queues = queues.value, let workers = workers.value, workers.isEmpty {
            let waiting = queues.filter { $0.pausedAt == nil }.reduce(0) { $0 + $1.ready }
            if waiting > 0 {
                say(
                    .noWorker, .critical,
                    "\(Humane.count(waiting, "job")) \(waiting == 1 ? "waits" : "wait") and no worker lives")
            }
        }
        if let days = partitions.value.map({ $0.historyDays ?? -1 }), days < 1 {
            say(.noPartitions, .critical, "no partition of history lies ahead")
        }
        if let left = partitions.value?.jobIDs, left < 1 {
            say(.noPartitions, .critical, "no partition of job lies ahead")
        }
        for queue in queues.value ?? [] where queue.isLate && queue.pausedAt == nil {
            say(
                .lateQueue, .degraded,
                "\(queue.name): the oldest job waits for \(Humane.duration(.seconds(queue.oldestAge ?? 0)))")
        }
        if let dead = deadLastHour.value, dead > 0 {
            say(.deadJobs, .degraded, "\(Humane.count(dead, "job")) died in the last hour")
        }
        if let workers = workers.value, !workers.isEmpty {
            for orphan in orphans.value ?? [] { say(.unknownKind, .degraded, "no worker knows \(orphan.kind)") }
        }
        for worker in workers.value ?? [] {
            if worker.stuck > 0 { say(.stuckHandlers, .degraded, "\(worker.name): \(worker.stuck) stuck handlers") }
            if worker.isSilent {
                say(.silentWorker, .degraded, "\(worker.name): silent for \(Humane.duration(.seconds(worker.beatAge)))")
            }
        }
        for schedule in schedules.value ?? [] {
            if let problem = schedule.problem {
                say(.brokenSchedule, .degraded, "schedule \(schedule.name) cannot fire: \(problem)")
            }
            if schedule.isOverdue {
                say(.overdueSchedule, .degraded, "schedule \(schedule.name) is overdue: no worker fires it")
            }
            if schedule.missedLately {
                say(.missedTimes, .degraded, "schedule \(schedule.name) missed times in the last hour")
            }
        }
        for provider in providers.value ?? [] {
            switch provider.state {
            case "open", "probing":
                say(
                    .providerOpen, provider.isGrave ? .critical : .degraded,
                    "\(provider.label) is not called: \(provider.reason ?? "no reason given")")
            case "forced_open", "forced_closed", "observing":
                say(
                    .providerForced, .degraded,
                    "\(provider.label) is \(provider.stateText), by \(provider.forcedBy ?? "?"): \(provider.reason ?? "")"
                )
            default: break
            }
        }
        if let pin = pins.value?.max(by: { $0.age < $1.age }), pin.age > 900 {
            say(
                .openTransaction, .degraded,
                "a transaction has been open for \(Humane.duration(.seconds(pin.age))) (pid \(pin.pid)) and keeps old row versions"
            )
        }
        if let strays = partitions.value?.strays, strays > 0 {
            say(.strayHistory, .degraded, "\(Humane.count(strays)) rows of history lie in a default partition")
        }
        if schema.value?.testClock == true { say(.testClock, .degraded, "a test clock is installed") }
        return found
    }

    /// The conditions that hold; one that cannot be judged is told as one that does.
    func hits(of failIf: FailIf) -> [Finding] {
        failIf.conditions.compactMap { condition in
            guard let now = measure(condition.metric) else {
                return Finding(alarm: .condition, severity: .critical, sentence: "\(condition.text) cannot be judged")
            }
            guard condition.comparison.holds(now.value, condition.value) else { return nil }
            return Finding(alarm: .condition, severity: .critical, sentence: "\(condition.text): it is \(now.text)")
        }
    }

    private func measure(_ metric: FailIf.Metric) -> (value: Double, text: String)? {
        func count(_ number: Int?) -> (value: Double, text: String)? {
            number.map { (Double($0), Humane.count($0)) }
        }
        switch metric {
        case .oldest:
            guard let queues = queues.value else { return nil }
            let oldest = queues.filter { $0.pausedAt == nil }.compactMap(\.oldestAge).max() ?? 0
            return (oldest, Humane.duration(.seconds(oldest)))
        case .failed:
            guard let rates = rates.value else { return nil }
            let share = RateSum(rates).failedShare ?? 0
            return (share, Humane.percent(share))
        case .ready: return count(queues.value.map { $0.reduce(0) { $0 + $1.ready } })
        case .running: return count(queues.value.map { $0.reduce(0) { $0 + $1.running } })
        case .dead: return count(deadLastDay.value)
        case .workers: return count(workers.value?.count)
        }
    }
}
