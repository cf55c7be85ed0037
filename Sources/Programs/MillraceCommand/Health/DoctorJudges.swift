import Calendars
import CheckIns
import Encryption
import MillraceQueues
import Signatures
import Supervision
import Webhooks

/// The meaning of the facts; nothing here makes a query.
extension Doctor {
    static func judge(version: Int) -> Check.Result {
        version >= 140_000
            ? .ok("Postgres \(version / 10_000).\(version % 10_000)")
            : .problem("Postgres \(version / 10_000) is too old", advice: "use Postgres 14 or later")
    }

    static func judge(_ state: SchemaState) -> Check.Result {
        if let failure = SchemaCheck.mismatch(state) {
            return .problem(failure.sentence, advice: failure.hint ?? "run: millrace migrate")
        }
        if state.testClock {
            return .problem(
                "a test clock is installed: time is whatever a test has made of it",
                advice: "never in production; begin with a new database")
        }
        return .ok("version \(state.version); this program speaks \(Queue.schemaVersion)")
    }

    /// The zones of this machine: a worker needs them here.
    static func judge(_ zones: ZoneFiles) -> Check.Result {
        let count = zones.names.count
        return count > 0
            ? .ok("\(count) in \(zones.directory)")
            : .warning(
                "none in \(zones.directory): a worker here fires no schedules but those in UTC",
                advice: "install the package tzdata, or set TZDIR")
    }

    static func judge(_ facts: ServerFacts, skew: Double) -> [(Subject, Check.Result)] {
        var found: [(Subject, Check.Result)] = []
        if facts.isLocalSocket {
            found.append((.encryption, .ok("a local socket needs none")))
        } else if facts.tls == true {
            found.append((.encryption, .ok("TLS")))
        } else {
            found.append(
                (.encryption, .warning("none", advice: "add sslmode=verify-full, unless the network is private")))
        }
        let apart = Humane.duration(.seconds(skew.magnitude))
        found.append(
            (
                .clock,
                skew.magnitude < 2
                    ? .ok("\(apart) apart from the database's")
                    : .warning(
                        "\(apart) apart from the database's, whose time counts", advice: "let NTP set both clocks")
            ))
        found += settings(facts)
        found.append(
            (
                .notificationQueue,
                facts.notifyUsage < 0.25
                    ? .ok(Humane.percent(facts.notifyUsage))
                    : .warning(
                        "\(Humane.percent(facts.notifyUsage)) full: some session listens and never reads",
                        advice: "find the session that has been idle in a transaction for a long time, and end it")
            ))
        if facts.preparedTransactions > 0 {
            let age = Humane.duration(.seconds(facts.oldestPrepared ?? 0))
            found.append(
                (
                    .preparedTransactions,
                    .warning(
                        "\(facts.preparedTransactions), the oldest for \(age): they keep old row versions",
                        advice: "commit or roll them back: select * from pg_prepared_xacts")
                ))
        }
        if !facts.slots.isEmpty {
            found.append(
                (
                    .replicationSlots,
                    .warning(
                        "nobody reads \(facts.slots.joined(separator: ", ")): they keep old rows or logs",
                        advice: "drop those that are not needed: select pg_drop_replication_slot('…')")
                ))
        }
        return found
    }

    private static func settings(_ facts: ServerFacts) -> [(Subject, Check.Result)] {
        var found: [(Subject, Check.Result)] = []
        func expect(
            _ subject: Subject, _ isGood: (String) -> Bool, problem: Bool = false, _ why: String, _ advice: String
        ) {
            guard let value = facts.settings[subject.rawValue], !isGood(value) else { return }
            let sentence = "\(value): \(why)"
            found.append((subject, problem ? .problem(sentence, advice: advice) : .warning(sentence, advice: advice)))
        }
        expect(
            .transactionReadOnly, { $0 == "off" }, problem: true, "nothing can be enqueued or claimed here",
            "connect to the primary (target_session_attrs=read-write), or turn default_transaction_read_only off")
        expect(.fsync, { $0 == "on" }, problem: true, "a crash can destroy the database", "turn it on")
        expect(.fullPageWrites, { $0 == "on" }, problem: true, "a crash can destroy pages", "turn it on")
        expect(
            .synchronousCommit, { $0 != "off" }, "a crash loses jobs whose enqueue was confirmed",
            "turn it on; local does where there is no standby")
        expect(.autovacuum, { $0 == "on" }, problem: true, "queues slow down without end", "turn it on")
        expect(.trackCounts, { $0 == "on" }, problem: true, "autovacuum does nothing without it", "turn it on")
        expect(
            .maxConnections, { (Int($0) ?? 0) >= 50 && (Int($0) ?? 0) > facts.connections * 10 / 9 },
            "\(facts.connections) are in use", "raise it, or use fewer or smaller pools")
        expect(
            .defaultTransactionIsolation, { $0 == "read committed" },
            "we set read committed for ourselves; callers of millrace.enqueue may see serialization failures",
            "expect retries there")
        // Postgres's own default: reported, but no warning. Open transactions are checked separately.
        if facts.settings["idle_in_transaction_session_timeout"] == "0" {
            found.append(
                (.idleInTransactionSessionTimeout, .ok("0: a few minutes would end forgotten transactions")))
        }
        if found.isEmpty { found.append((.settings, .ok("nothing that hurts"))) }
        return found
    }

    /// The living workers beside the waiting jobs.
    static func judge(_ workers: [WorkerRow], waiting queues: [QueueDepth], unknown: [String]) -> Check.Result {
        let waiting = queues.filter { $0.pausedAt == nil }.reduce(Amount()) { $0 + $1.amount(cap: QueueDepth.cap) }
        let awake = workers.filter { !$0.isSilent }
        guard !awake.isEmpty else {
            guard waiting.count > 0 else { return .ok("none is running, and no job waits") }
            return .problem(
                "none is running, and \(waiting.text) \(waiting.count == 1 ? "job waits" : "jobs wait")",
                advice: "start one: systemctl start millrace, your program, or millrace worker")
        }
        if !unknown.isEmpty {
            let more = unknown.count > 3 ? " and \(unknown.count - 3) more" : ""
            return .warning(
                "none of \(Humane.count(awake.count)) knows \(unknown.prefix(3).joined(separator: ", "))\(more), of which jobs wait",
                advice: "start the worker that handles it: millrace workers list shows what each knows")
        }
        let unserved = queues.filter { queue in
            queue.ready > 0 && queue.pausedAt == nil
                && !awake.contains { $0.queues.isEmpty || $0.queues.contains(queue.name) }
        }
        if let one = unserved.first {
            return .warning(
                "none of \(Humane.count(awake.count)) takes from the queue \(one.name), in which jobs wait",
                advice: "start a worker for it: millrace why --queue \(one.name)")
        }
        let stuck = awake.reduce(0) { $0 + $1.stuck }
        if stuck > 0 {
            return .warning(
                "\(Humane.count(stuck, "handler")) ignore their cancellation and hold slots",
                advice: "restart these workers: millrace status names them")
        }
        return .ok("\(Humane.count(awake.count, "worker")) for \(waiting.text) waiting")
    }

    static func judge(_ workers: [WorkerRow]) -> Check.Result {
        let wrong = workers.filter { !$0.isSilent && $0.isClockWrong }
        guard let worst = wrong.max(by: { ($0.clockAhead?.magnitude ?? 0) < ($1.clockAhead?.magnitude ?? 0) }) else {
            return .ok(workers.isEmpty ? "no worker is running" : "within a minute of the database's")
        }
        return .warning(
            "\(worst.name) on \(worst.host): \(worst.clockSentence)"
                + (wrong.count > 1 ? ", and \(wrong.count - 1) more are wrong" : ""),
            advice: "let NTP set the clock there")
    }

    static func judge(_ providers: [ProviderRow]) -> Check.Result {
        let shut = providers.filter { ["open", "probing", "forced_open"].contains($0.state) }
        guard let worst = shut.first(where: \.isGrave) ?? shut.first else {
            return .ok(
                providers.isEmpty
                    ? "none has been called yet" : "\(Humane.count(providers.count)) known, all are called")
        }
        let sentence = "\(worst.label) is not called: \(worst.reason ?? "no reason given")"
        let advice = "see millrace providers show \(worst.provider)"
        return worst.isGrave ? .problem(sentence, advice: advice) : .warning(sentence, advice: advice)
    }

    static func judge(_ state: CheckInAdmin.State, links: Links?, deadman: Bool) -> Check.Result {
        if let worst = state.findings.first {
            return .problem(worst.sentence, advice: "see \(worst.alarm.name) in deploy/guides/operating.md")
        }
        guard state.watches > 0 || state.open > 0 else { return .ok("nobody is watched over") }
        guard links?.isUsable == true else {
            return .warning(
                "contacts are sent no links to answer with",
                advice: "set MILLRACE_PUBLIC_URL (https) and MILLRACE_SECRET")
        }
        guard deadman else {
            return .warning(
                "nobody outside notices when all workers are down",
                advice: "set MILLRACE_DEADMAN_URL to a service that raises the alarm when it hears nothing")
        }
        return .ok("\(Humane.count(state.watches)) watches, \(Humane.count(state.open)) open alarms")
    }

    /// asked: how many open questions were asked of people by name.
    static func judge(asked: Int, links: Links?) -> Check.Result {
        guard asked > 0 else { return .ok("nobody is asked by name") }
        guard links?.isUsable == true else {
            return .warning(
                "people are asked \(Humane.count(asked, "question")) and are sent no links to answer with",
                advice: "set MILLRACE_PUBLIC_URL (https) and MILLRACE_SECRET, here and where workers run")
        }
        return .ok("\(Humane.count(asked, "question")) open")
    }

    static func judge(_ findings: [RoomFinding]) -> Check.Result {
        guard let first = findings.first else { return .ok("each is as this program has it") }
        let more = findings.count > 1 ? ", and \(findings.count - 1) more: millrace rooms check" : ""
        return .warning("\(first.room): \(first.sentence)\(more)", advice: first.advice)
    }

    /// strays: how many slots too many are counted at each limit where that is so; below zero, too few.
    static func judge(strays: [Int]) -> Check.Result {
        guard !strays.isEmpty else { return .ok("what they count is what runs") }
        let most = strays.reduce(0) { $0 + max($1, 0) }
        let least = strays.reduce(0) { $0 + max(-$1, 0) }
        return .warning(
            "at \(strays.count) limits the count is not what runs: \(most) too many, \(least) too few",
            advice: "a worker corrects it within a minute; if it comes back, report it with the worker's log")
    }

    static func judge(_ pins: [PinRow]) -> Check.Result {
        guard let pin = pins.filter(\.isTooOld).max(by: { $0.age < $1.age }) ?? pins.max(by: { $0.age < $1.age }) else {
            return .ok("none")
        }
        let what = "\(Humane.duration(.seconds(pin.age))), pid \(pin.pid), \(pin.owner)\(pin.isIdle ? ", idle" : "")"
        guard pin.isTooOld else { return .ok("the oldest: \(what)") }
        return .warning(
            "the oldest: \(what); it keeps old row versions", advice: "end it: select pg_terminate_backend(\(pin.pid))")
    }

    static func judge(_ ahead: Partitions) -> Check.Result {
        let days = ahead.historyDays ?? -1
        let advice = "start a worker, which makes them each minute, or run: millrace migrate"
        guard days >= 1, ahead.jobIDs > 0 else { return .problem("none lies ahead", advice: advice) }
        if ahead.strays > 0 {
            return .warning(
                "\(Humane.count(ahead.strays)) rows of history lie in a default partition", advice: advice)
        }
        let sentence = "\(days) days of history and \(Humane.count(ahead.jobIDs)) job ids ahead"
        return days < 2 ? .warning(sentence, advice: advice) : .ok(sentence)
    }

    static func judge(_ needed: [SealedKey], keys: Keyring) -> Check.Result {
        guard !needed.isEmpty else { return .ok("no job's arguments are encrypted") }
        let missing = needed.filter { !keys.has($0.id) }
        guard !missing.isEmpty else {
            return .ok("every key that jobs need is here: " + needed.map(\.id).joined(separator: ", "))
        }
        let said = missing.map { "key \($0.id) (\(SealedKey.counted($0.living, "waiting job")))" }
        let sentence = "not in this environment: \(said.joined(separator: ", "))"
        let advice = "add it to MILLRACE_ENCRYPTION_KEY, here and where workers run; millrace keys list counts jobs"
        // Without any key here, this may be a machine that should not have one.
        return keys.keys.isEmpty || missing.allSatisfy { $0.living == 0 }
            ? .warning(sentence, advice: advice) : .problem(sentence, advice: advice)
    }

    static func judge(_ sizes: [SizeRow]) -> Check.Result {
        let hot = sizes.filter { ["ready", "lease", "timer"].contains($0.name) }
        let said = hot.map { "\($0.name) \(Humane.count($0.deadRows))" }.joined(separator: ", ")
        guard hot.contains(where: { $0.deadRows > 1_000_000 }) else { return .ok(said) }
        return .warning(
            "\(said): vacuum cannot keep up",
            advice: "look for the transaction that keeps them above; then: vacuum millrace.ready, millrace.lease")
    }
}
