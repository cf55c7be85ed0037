import JSON
import MillraceQueues
import Supervision

extension StatusReport {
    /// The findings, by the rules without `--fail-if`.
    package var findings: [Finding] {
        var found: [Finding] = []
        func say(
            _ alarm: Alarm, _ severity: Severity, _ sentence: String, command: String? = nil,
            about subject: FindingSubject? = nil, age: Double? = nil
        ) {
            found.append(
                Finding(
                    alarm: alarm, severity: severity, sentence: sentence, command: command, about: subject, age: age))
        }
        // Silence would be taken for health.
        if queues.value == nil { say(.unknownState, .degraded, "the queues cannot be read") }
        if workers.value == nil { say(.unknownState, .degraded, "the workers cannot be read") }
        if let refusal = writeRefusal { say(.notWritable, .critical, refusal) }
        if let queues = queues.value, let workers = workers.value, workers.isEmpty {
            let waiting = queues.filter { $0.pausedAt == nil }.reduce(Amount()) { $0 + $1.amount(cap: cap) }
            if waiting.count > 0 {
                say(
                    .noWorker, .critical,
                    "\(waiting.text) \(waiting.count == 1 ? "job waits" : "jobs wait") and no worker is running",
                    command: Alarm.noWorker.look)
            }
        }
        if let days = partitions.value.map({ $0.historyDays ?? -1 }), days < 1 {
            say(.noPartitions, .critical, "no partition of history lies ahead")
        }
        if let left = partitions.value?.jobIDs, left < 1 {
            say(.noPartitions, .critical, "no partition of job lies ahead")
        }
        if let connections = connections.value, connections.left < StatusReport.connectionsOfWorker {
            say(.fewConnections, .degraded, connections.sentence + mostConnections)
        }
        for queue in queues.value ?? [] where queue.isLate && queue.pausedAt == nil {
            say(
                .lateQueue, .degraded,
                "\(queue.name): the oldest job waits for \(Humane.duration(.seconds(queue.oldestAge ?? 0)))"
                    + (whys[queue.name]?["sentence"]?.text.map { "; \($0)" } ?? ""),
                command: whys[queue.name]?["command"]?.text ?? "millrace why --queue \(queue.name)",
                about: .queue(queue.name), age: queue.oldestAge)
        }
        found += runFindings
        found += troubleFindings
        if let dead = deadLastHour.value, dead > 0 {
            say(
                .deadJobs, .degraded,
                "\(Humane.count(dead, "job")) died in the last hour"
                    + (latestDead.map { "; the latest, job \($0.job): \($0.sentence)" } ?? ""),
                command: latestDead?.command, about: latestDead.map { .job($0.job) })
        }
        if let workers = workers.value, !workers.isEmpty {
            for orphan in unnamedOrphans {
                say(
                    .unknownKind, .degraded, "no worker knows \(orphan.kind)", command: "millrace workers list",
                    about: .kind(orphan.kind))
            }
        }
        for build in builds.value ?? [] {
            if let complaint = build.complaint {
                say(
                    .strandedBuild, .degraded, complaint.sentence, command: complaint.command,
                    about: .build(build.build))
            }
        }
        for worker in workers.value ?? [] {
            if worker.stuck > 0 {
                say(
                    .stuckHandlers, .degraded,
                    "\(worker.name): \(Humane.count(worker.stuck, "stuck handler"))" + longestRuns(of: worker),
                    command: "kill \(worker.pid)", about: .worker(worker.name))
            }
            if worker.isSilent {
                say(
                    .silentWorker, .degraded, "\(worker.name): silent for \(Humane.duration(.seconds(worker.beatAge)))",
                    about: .worker(worker.name), age: worker.beatAge)
            } else if worker.isClockWrong {
                say(
                    .workerClock, .degraded, "\(worker.name): \(worker.clockSentence)", about: .worker(worker.name))
            }
        }
        for schedule in schedules.value ?? [] {
            if let problem = schedule.problem {
                say(
                    .brokenSchedule, .degraded, "schedule \(schedule.name) cannot fire: \(problem)",
                    command: "millrace schedules show \(schedule.name)", about: .schedule(schedule.name))
            }
            if schedule.isOverdue {
                say(
                    .overdueSchedule, .degraded, "schedule \(schedule.name) is overdue: no worker fires it",
                    command: workers.value?.isEmpty == true ? Alarm.noWorker.look : "millrace workers list",
                    about: .schedule(schedule.name), age: schedule.untilNext.map { -$0 })
            }
            if schedule.missedLately {
                say(
                    .missedTimes, .degraded,
                    "schedule \(schedule.name) missed times in the last hour, and does not catch them up",
                    command: "millrace schedules run \(schedule.name)", about: .schedule(schedule.name))
            }
        }
        for provider in providers.value ?? [] {
            switch provider.state {
            case "open", "probing":
                say(
                    .providerOpen, provider.isGrave ? .critical : .degraded,
                    "\(provider.label) is not called: \(provider.reason ?? "no reason given")",
                    command: "millrace providers show \(provider.provider)",
                    about: .provider(provider.provider, class: provider.name), age: provider.stateAge)
            case "forced_open", "forced_closed", "observing":
                say(
                    .providerForced, .degraded,
                    "\(provider.label) is \(provider.stateText), by \(provider.forcedBy ?? "?"): \(provider.reason ?? "")",
                    command: "millrace providers reset \(provider.provider)",
                    about: .provider(provider.provider, class: provider.name), age: provider.stateAge)
            default: break
            }
        }
        for part in parts {
            found += (part.state.value ?? nil)?.findings ?? []
            if let reason = part.state.reason, let finding = part.status.unreadable?(reason) { found.append(finding) }
        }
        if let pin = pins.value?.filter(\.isTooOld).max(by: { $0.age < $1.age }) {
            say(
                .openTransaction, .degraded,
                "a transaction of \(pin.owner) (pid \(pin.pid)) has been open for \(Humane.duration(.seconds(pin.age)))"
                    + "\(pin.isIdle ? ", is idle" : "") and keeps old row versions",
                command: "psql -c 'select pg_terminate_backend(\(pin.pid))'", age: pin.age)
        }
        found += dangerFindings
        if let reason = dangers.reason {
            say(.unknownState, .degraded, "what holds the database up is unavailable: \(reason)")
        }
        if let strays = partitions.value?.strays, strays > 0 {
            say(.strayHistory, .degraded, "\(Humane.count(strays)) rows of history lie in a default partition")
        }
        if schema.value?.testClock == true { say(.testClock, .degraded, "a test clock is installed") }
        return found
    }
}
