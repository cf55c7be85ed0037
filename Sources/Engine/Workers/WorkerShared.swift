import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// What the parts of a worker share: its state, its connections, and the signals that the parts sleep on.
final class WorkerShared: Sendable {
    let options: JobWorker.Options
    let kindNames: [String]
    let log: Log
    let limitedLog: LogLimiter
    /// The jobs that the worker holds.
    let state: WorkerStateGuard
    /// What it knows of kinds and queues.
    let catalog: WorkCatalog
    let links: WorkerLinks
    let outage: Outage
    let stalls = Stalls()
    let hub: NotificationHub
    let sleepLock: QueueSleepLock
    let wakeups = Wakeups()
    /// Below which place of each lane nothing is left to claim.
    let floors = Mutex(Floors())
    let gates = Gates()
    let stops = StopRequests()

    /// Something may have come due.
    let promotion = Wakeup()
    /// Something may have committed late.
    let samples = Wakeup()
    /// A schedule was changed.
    let timetables = Wakeup()
    /// A run with a time limit has started.
    let pulse = Wakeup()
    /// A job has ended that others wait for.
    let flowEnds = Wakeup()
    /// Somebody has sent a signal.
    let signals = Wakeup()
    /// An operation was started, resumed or is to be undone.
    let operations = Wakeup()
    /// The database does not know this session any more.
    let sessionGone = Wakeup()
    let sessionChanged = Wakeup()
    let started = Wakeup()
    /// The claim loop has ended: no claim is in flight any more.
    let claimsEnded = Wakeup()

    let isUp = Mutex(false)
    /// The last error of a start that is still tried.
    let refusal = Mutex<String?>(nil)
    /// The drain is over: what still cannot be recorded is given up.
    let isOver = Mutex(false)

    init(_ options: JobWorker.Options, kindNames: [String], log: Log) {
        self.options = options
        self.kindNames = kindNames
        self.log = log.with("worker", options.name)
        state = WorkerStateGuard(slots: options.slots, share: options.share)
        outage = Outage(log: self.log)
        limitedLog = LogLimiter(log: self.log)
        hub = options.hearing ?? NotificationHub(options.direct ?? options.database)
        links = options.kept?.take() ?? WorkerLinks(options, hub: hub, outage: outage)
        sleepLock = QueueSleepLock(
            link: links.sleepLock, wakeups: wakeups, poll: options.poll, waker: hub.waker, log: self.log)
        catalog = WorkCatalog(options, links.house, state, sleepLock, wakeups)
    }

    /// What its notifications say.
    func heard(_ news: NotificationHub.News) {
        switch news {
        case .began: wakeups.lookEverywhere()
        case .said(let payload): heed(payload)
        case .ended: break
        }
    }

    private func heed(_ payload: String) {
        if payload == "schedules" { return timetables.fire() }
        let parts = payload.split(separator: ".").map { Int32($0) }
        switch (parts.first ?? nil, parts.count > 1 ? parts[1] : nil) {
        case (let queue?, let code?):
            guard catalog.serves(queue) else { return }
            wakeups.hint(Lane(queue: queue, code: code))
            // A third part says that the job is in the lane; without, it may be about to come due.
            if parts.count == 2 { promotion.fire() }
        case (_?, nil): wakeups.lookEverywhere()
        default:
            switch payload {
            case "limits":
                wakeups.lookEverywhere()
                gates.askAll()
            case "flows": flowEnds.fire()
            case "signals": signals.fire()
            case "operations": operations.fire()
            case "versions": sessionGone.fire()  // a beat looks at them
            default: sleepLock.signal.fire()
            }
        }
    }

    func hasStarted(direct: Bool) {
        log.info(
            "worker started",
            [
                ("build", options.buildText), ("slots", "\(options.slots)"),
                ("kinds", kindNames.sorted().joined(separator: ",")),
                ("queues", options.queues.isEmpty ? "all" : options.queues.map(\.name).joined(separator: ",")),
                ("wakes", direct ? "notified" : hub.waker == nil ? "polling" : "by a waker"),
            ])
        isUp.withLock { $0 = true }
        refusal.withLock { $0 = nil }
        started.fire()
        tellReady()
    }

    func hasStopped(unrecorded: Int) -> JobWorker.Report {
        let totals = state.totals
        let report = JobWorker.Report(
            finished: totals.finished, handedBack: totals.handedBack, refused: totals.refused,
            abandoned: totals.abandoned, unrecorded: unrecorded)
        guard isUp.withLock({ $0 }) else { return report }
        log.info(
            "worker stopped",
            [
                ("finished", "\(report.finished)"), ("handed_back", "\(report.handedBack)"),
                ("refused", "\(report.refused)"), ("abandoned", "\(report.abandoned)"),
                ("unrecorded", "\(report.unrecorded)"),
            ])
        return report
    }
}

/// The connections of a worker, each with the loops that use it.
final class WorkerLinks: Sendable {
    let claim: LoopConnection
    /// Ends are recorded on it.
    let flush: LoopConnection
    /// Signs of life and what follows from them, and nothing that could be slow.
    let beat: LoopConnection
    /// Reads what a claim took and did not bring.
    let read: LoopConnection
    /// Reads the contents of large jobs. Opened when there are some.
    let contents: LoopConnection
    let house: LoopConnection
    /// Its statements may walk far; they must not hold up a beat.
    let sweep: LoopConnection
    let listen: LoopConnection
    /// Opened when a schedule is due, and no sooner.
    let clock: LoopConnection
    /// Opened when the worker falls asleep; `QueueSleepLock` closes it.
    let sleepLock: LoopConnection

    init(_ options: JobWorker.Options, hub: NotificationHub, outage: Outage) {
        var bounded = options.database
        bounded.mostAnswerBytes = options.bytes.answer
        func open(_ name: String, _ urgency: Urgency) -> LoopConnection {
            LoopConnection(bounded.urgent(urgency), name: name, outage: outage)
        }
        claim = open("mr-claim", .claims)
        flush = open("mr-flush", .urgent)
        beat = open("mr-beat", .urgent)
        read = open("mr-read", .claims)
        contents = open("mr-contents", .claims)
        house = open("mr-house", .claims)
        sweep = open("mr-sweep", .late)
        clock = open("mr-clock", .claims)
        listen = LoopConnection(hub.options, name: "mr-listen", outage: outage)
        sleepLock = LoopConnection(hub.options, name: "mr-door", outage: outage)
    }

    func close() async {
        for link in [claim, flush, beat, read, contents, house, sweep, listen, clock] { await link.close() }
    }
}

/// The connections that a worker leaves to the next one of its process, with what their sessions have planned: opening them takes many times
/// as long as a short drain. Of one database, and of workers with the same options.
package final class KeptConnections: Sendable {
    private let links = Mutex<WorkerLinks?>(nil)

    package init() {}

    /// One worker has them at a time; another that runs meanwhile opens its own.
    func take() -> WorkerLinks? {
        links.withLock { links in
            defer { links = nil }
            return links
        }
    }

    func keep(_ others: WorkerLinks) async {
        let old = links.withLock { links in
            defer { links = others }
            return links
        }
        await old?.close()
    }

    package func close() async {
        await take()?.close()
    }
}
