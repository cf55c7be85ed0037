package import CheckIns
import Gateway
import JSON
import Mail
import Notices
import Quests
import Queues
import Supervision
import Webhooks

/// How serious it is; the worst of all findings is the verdict.
package enum Severity: Int, Sendable, Comparable {
    case ok, degraded, critical

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    package var word: String {
        switch self {
        case .ok: "OK"
        case .degraded: "DEGRADED"
        case .critical: "CRITICAL"
        }
    }

    package var exitCode: ExitCode {
        switch self {
        case .ok: .done
        case .degraded: .degraded
        case .critical: .critical
        }
    }
}

/// Everything that may be wrong. deploy/guides/operating.md has a heading for each, with what to do.
package enum Alarm: String, Sendable, CaseIterable {
    case condition = "a condition of --fail-if holds"
    case unknownState = "the queues or the workers cannot be told"
    case noWorker = "no worker lives"
    case noPartitions = "no partition lies ahead"
    case fewConnections = "the database has hardly a connection left"
    case lateQueue = "the oldest job waits too long"
    case deadJobs = "jobs died in the last hour"
    case unknownKind = "no worker knows a kind"
    case strandedBuild = "no worker has a build"
    case stuckHandlers = "stuck handlers"
    case endsWorkers = "a job ends workers"
    case cancelIgnored = "a cancelled job still runs"
    case silentWorker = "a worker is silent"
    case notWritable = "the database takes no writes"
    case workerClock = "a worker's clock is wrong"
    case brokenSchedule = "a schedule cannot fire"
    case overdueSchedule = "a schedule is overdue"
    case missedTimes = "a schedule missed times"
    case providerOpen = "a provider is not called"
    case providerForced = "an operator has forced a provider"
    case mailSwitched = "mail goes by another service"
    case mailParked = "messages wait for a human"
    case lateMidnight = "families wait for their midnight"
    case brokenFamily = "a family cannot be taken over its midnight"
    case lateAlarm = "alarms are late"
    case noWatchman = "nobody watches over the check-ins"
    case unreachableAlarm = "an alarm reaches nobody"
    case brokenWatch = "a watch cannot be dealt with"
    case alarmsWait = "alarms wait to be handed over"
    case alarmsLost = "nobody was told of an alarm"
    case noticesWait = "notices wait to be sent"
    case webhookOff = "a webhook is switched off"
    case lateWebhooks = "events wait for their webhooks"
    case gatewaySilent = "a gateway is silent"
    case openTransaction = "a transaction has been open for long"
    case strayHistory = "history lies in a default partition"
    case testClock = "a test clock is installed"
    case failingRuns = "runs of a kind fail"
    case failingBuild = "the newest build fails"
    case retries = "retries pile up"
    case pausedQueue = "a paused queue has waiting jobs"
    case unservedRoom = "something waits that no worker does"
    case mailFiles = "mail becomes files"
    case failingHook = "a room's hook fails"
}

package struct Finding: Sendable, Equatable {
    package let alarm: Alarm
    package let severity: Severity
    package let sentence: String
    /// One to run, which remedies it or shows the next thing.
    package let command: String

    /// - Parameter command: if not given, what looks at all that this alarm may be about.
    package init(alarm: Alarm, severity: Severity, sentence: String, command: String? = nil) {
        self.alarm = alarm
        self.severity = severity
        self.sentence = sentence
        self.command = command ?? alarm.look
    }
}

extension StatusReport {
    /// The findings, by the rules without `--fail-if`.
    package var findings: [Finding] {
        var found: [Finding] = []
        func say(_ alarm: Alarm, _ severity: Severity, _ sentence: String, command: String? = nil) {
            found.append(Finding(alarm: alarm, severity: severity, sentence: sentence, command: command))
        }
        // Silence would be taken for health.
        if queues.value == nil { say(.unknownState, .degraded, "the queues cannot be told") }
        if workers.value == nil { say(.unknownState, .degraded, "the workers cannot be told") }
        if let refusal = writeRefusal { say(.notWritable, .critical, refusal) }
        if let queues = queues.value, let workers = workers.value, workers.isEmpty {
            let waiting = queues.filter { $0.pausedAt == nil }.reduce(Amount()) { $0 + $1.amount(cap: cap) }
            if waiting.count > 0 {
                say(
                    .noWorker, .critical,
                    "\(waiting.text) \(waiting.count == 1 ? "job waits" : "jobs wait") and no worker lives",
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
            say(.fewConnections, .degraded, connections.sentence)
        }
        for queue in queues.value ?? [] where queue.isLate && queue.pausedAt == nil {
            say(
                .lateQueue, .degraded,
                "\(queue.name): the oldest job waits for \(Humane.duration(.seconds(queue.oldestAge ?? 0)))"
                    + (whys[queue.name]?["sentence"]?.text.map { "; \($0)" } ?? ""),
                command: whys[queue.name]?["command"]?.text ?? "millrace why --queue \(queue.name)")
        }
        found += runFindings
        found += troubleFindings
        if let dead = deadLastHour.value, dead > 0 {
            say(
                .deadJobs, .degraded,
                "\(Humane.count(dead, "job")) died in the last hour"
                    + (latestDead.map { "; the latest, job \($0.job): \($0.sentence)" } ?? ""),
                command: latestDead?.command)
        }
        if let workers = workers.value, !workers.isEmpty {
            for orphan in unnamedOrphans {
                say(.unknownKind, .degraded, "no worker knows \(orphan.kind)", command: "millrace workers list")
            }
        }
        for build in builds.value ?? [] {
            if let complaint = build.complaint {
                say(.strandedBuild, .degraded, complaint.sentence, command: complaint.command)
            }
        }
        for worker in workers.value ?? [] {
            if worker.stuck > 0 {
                say(
                    .stuckHandlers, .degraded,
                    "\(worker.name): \(Humane.count(worker.stuck, "stuck handler"))" + longestRuns(of: worker),
                    command: "kill \(worker.pid)")
            }
            if worker.isSilent {
                say(.silentWorker, .degraded, "\(worker.name): silent for \(Humane.duration(.seconds(worker.beatAge)))")
            } else if worker.isClockWrong {
                say(.workerClock, .degraded, "\(worker.name): \(worker.clockSentence)")
            }
        }
        for schedule in schedules.value ?? [] {
            if let problem = schedule.problem {
                say(
                    .brokenSchedule, .degraded, "schedule \(schedule.name) cannot fire: \(problem)",
                    command: "millrace schedules show \(schedule.name)")
            }
            if schedule.isOverdue {
                say(
                    .overdueSchedule, .degraded, "schedule \(schedule.name) is overdue: no worker fires it",
                    command: workers.value?.isEmpty == true ? Alarm.noWorker.look : "millrace workers list")
            }
            if schedule.missedLately {
                say(
                    .missedTimes, .degraded,
                    "schedule \(schedule.name) missed times in the last hour, and does not catch them up",
                    command: "millrace schedules run \(schedule.name)")
            }
        }
        for provider in providers.value ?? [] {
            switch provider.state {
            case "open", "probing":
                say(
                    .providerOpen, provider.isGrave ? .critical : .degraded,
                    "\(provider.label) is not called: \(provider.reason ?? "no reason given")",
                    command: "millrace providers show \(provider.provider)")
            case "forced_open", "forced_closed", "observing":
                say(
                    .providerForced, .degraded,
                    "\(provider.label) is \(provider.stateText), by \(provider.forcedBy ?? "?"): \(provider.reason ?? "")",
                    command: "millrace providers reset \(provider.provider)")
            default: break
            }
        }
        if let mail = mail.value ?? nil {
            if mail.isSwitched {
                say(
                    .mailSwitched, .degraded,
                    "mail goes by \(mail.current ?? "?"), not by \(mail.chosen ?? "?"): \(mail.reason ?? "no reason given")"
                )
            }
            if mail.parked > 0 {
                say(
                    .mailParked, .degraded,
                    "\(Humane.count(mail.parked, "message")) \(mail.parked == 1 ? "waits" : "wait") for a human: nobody knows whether they were sent",
                    command: "millrace mail list --status parked")
            }
        }
        if let quests = quests.value {
            // A wave of a hundred thousand takes a minute; a worker that is there begins within seconds.
            if quests.due > 0, quests.lag > 300 {
                say(
                    .lateMidnight, .degraded,
                    "\(Humane.count(quests.due)) families wait for their midnight, for \(Humane.duration(.seconds(quests.lag)))"
                )
            }
            if quests.broken > 0 {
                say(
                    .brokenFamily, .degraded,
                    "\(Humane.count(quests.broken)) families cannot be taken over their midnight")
            }
        }
        for one in checkIns.value?.findings ?? [] { say(one.alarm, one.severity, one.sentence) }
        // A life may hang on it: not to know is as bad as to be late.
        if let reason = checkIns.reason { say(.noWatchman, .critical, "the check-ins cannot be told: \(reason)") }
        if let notices = notices.value {
            if notices.alarms > 0, notices.alarmAge > 10 {
                say(
                    .alarmsWait, .critical,
                    "\(Humane.count(notices.alarms, "alarm")) \(notices.alarms == 1 ? "waits" : "wait") to be handed over, for \(Humane.duration(.seconds(notices.alarmAge)))"
                )
            }
            if notices.lost > 0 {
                say(
                    .alarmsLost, .critical,
                    "\(Humane.count(notices.lost, "alarm")) of the last hour could not be handed over to anybody")
            }
            if notices.plain > 0, notices.plainAge > 900 {
                say(
                    .noticesWait, .degraded,
                    "\(Humane.count(notices.plain, "notice")) \(notices.plain == 1 ? "waits" : "wait") to be sent, for \(Humane.duration(.seconds(notices.plainAge)))"
                )
            }
        }
        if let webhooks = webhooks.value {
            if webhooks.disabled > 0 {
                say(
                    .webhookOff, .degraded,
                    "\(Humane.count(webhooks.disabled, "webhook")) \(webhooks.disabled == 1 ? "is" : "are") switched off"
                )
            }
            // A living worker takes due work at once.
            if webhooks.late > 300 {
                say(
                    .lateWebhooks, .degraded,
                    "events wait for their webhooks for \(Humane.duration(.seconds(webhooks.late)))")
            }
        }
        let silent = (gateways.value ?? []).filter(\.isSilent)
        // One that was killed and replaced is forgotten soon; that none is left stays said.
        if let last = silent.min(by: { $0.silence < $1.silence }),
            silent.count == gateways.value?.count || last.silence < 600
        {
            say(
                .gatewaySilent, .degraded,
                "the gateway \(last.name) has said nothing for \(Humane.duration(.seconds(last.silence)))"
                    + (silent.count == gateways.value?.count ? ", and no other serves apps" : ""))
        }
        if let pin = pins.value?.filter(\.isTooOld).max(by: { $0.age < $1.age }) {
            say(
                .openTransaction, .degraded,
                "a transaction of \(pin.owner) (pid \(pin.pid)) has been open for \(Humane.duration(.seconds(pin.age)))"
                    + "\(pin.isIdle ? ", is idle" : "") and keeps old row versions",
                command: "psql -c 'select pg_terminate_backend(\(pin.pid))'")
        }
        if let strays = partitions.value?.strays, strays > 0 {
            say(.strayHistory, .degraded, "\(Humane.count(strays)) rows of history lie in a default partition")
        }
        if schema.value?.testClock == true { say(.testClock, .degraded, "a test clock is installed") }
        return found
    }
}

extension CheckInAdmin.State {
    /// A living worker raises due alarms within a second, and reports every two seconds.
    package var findings: [Finding] {
        var found: [Finding] = []
        func say(_ alarm: Alarm, _ sentence: String) {
            found.append(Finding(alarm: alarm, severity: .critical, sentence: sentence))
        }
        if overdue > 0, oldest > 30 {
            say(
                .lateAlarm,
                "\(Humane.count(overdue)) \(overdue == 1 ? "alarm is" : "alarms are") late, the oldest by \(Humane.duration(.seconds(oldest)))"
            )
        }
        if watches > 0 || open > 0, beat.map({ $0 > 60 }) ?? true {
            say(
                .noWatchman,
                "nobody watches over the check-ins"
                    + (beat.map { " since \(Humane.duration(.seconds($0)))" } ?? ": no worker has ever looked"))
        }
        if unreachable > 0 {
            say(
                .unreachableAlarm,
                "\(Humane.count(unreachable)) \(unreachable == 1 ? "alarm reaches" : "alarms reach") nobody")
        }
        if broken > 0 {
            say(
                .brokenWatch,
                "\(Humane.count(broken)) \(broken == 1 ? "watch or alarm" : "watches or alarms") cannot be dealt with")
        }
        return found
    }
}
