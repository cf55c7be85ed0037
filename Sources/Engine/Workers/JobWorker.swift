package import Encryption
import FoundationEssentials
import Glibc
package import Jobs
package import Postgres
import Queues
import Synchronization
package import Telemetry
package import Threads

/// A worker process: claims jobs, runs them, records how they ended, and stops without losing any.
package final class JobWorker: Sendable {
    package struct Options: Sendable {
        package var database: ConnectionOptions
        /// Where LISTEN and session locks work, when `database` is a transaction pooler.
        package var direct: ConnectionOptions?
        /// What other rooms of the process hear by, too; the worker hosts it. It leads to where `direct` does.
        package var hearing: NotificationHub?
        /// None: every queue. A number bounds how many of a queue's jobs run here at once.
        package var queues: [(name: String, slots: Int?)] = []
        package var slots = 100
        /// Of queues that must not take all slots for themselves, where ``queues`` says nothing of them.
        package var bounds: [String: Int] = [:]
        package var name: String
        package var drainDeadline = Duration.seconds(30)
        package var poll = Duration.seconds(1)
        package var beat = Duration.seconds(2)
        package var watch = Watch.Limits()
        /// Whether it looks for what its floors may hide. Without that jobs are lost: only for the proof that this is noticed.
        package var sweeps = true
        /// What a claim's answer may take, and one that brings the contents of large jobs; what the contents of such jobs may take here
        /// altogether; what one job may: whoever has more ends without a run; and what any answer may, which is more than any should. In bytes.
        package var bytes = (claim: 8 << 20, read: 16 << 20, held: 64 << 20, job: 16 << 20, answer: 48 << 20)
        /// How long after its cancellation a handler counts as stuck.
        package var stuckGrace = Duration.seconds(5)
        package var cutOffAfter = Duration.seconds(20)
        /// Made or changed before the worker starts.
        package var schedules: [Schedule] = []
        /// What opens encrypted arguments.
        package var keys = Keyring.empty
        /// Who started us and wants to hear how we are.
        package var service: ServiceSocket?
        /// Who counts its runs.
        package var observer: Observer?
        /// What the process does beside these jobs, each with how: `["mail": "resend", "notices": "on"]`. `status` names what nobody does.
        package var rooms: [String: String] = [:]
        /// Which build of the program this is; `status` compares the newest with earlier ones.
        package var build: String?

        var versionText: String { build.map { "\(JobWorker.version)+\($0)" } ?? JobWorker.version }

        /// For so long it may try in vain to claim, to read, to record or to tell that it lives, until it is not ready: as long as one
        /// statement may take.
        var stallsAfter: Duration { min(database.statementDeadline, .seconds(10)) }

        package init(database: ConnectionOptions, name: String? = nil) {
            self.database = database
            self.name = name ?? "\(Self.host)-\(getpid())"
            build = getenv("MILLRACE_BUILD").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }

        package static var host: String {
            var buffer = [CChar](repeating: 0, count: 256)
            gethostname(&buffer, 255)
            return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "?" }
        }
    }

    package struct Report: Sendable, Equatable {
        package var finished: Int
        package var handedBack: Int
        package var refused: Int
        package var abandoned: Int
        /// Ends that could not be recorded because the database stayed away; those jobs will run again.
        package var unrecorded: Int
    }

    package enum Failure: Error, Sendable, CustomStringConvertible {
        case schema(found: Int?, needed: Int, oldest: Int?)
        case database(PostgresError)
        case noHandlers

        package var description: String {
            switch self {
            case .schema(nil, _, _): "The database has no Millrace schema. Run: millrace migrate"
            case .schema(.some(let found), let needed, _) where found < needed:
                "The schema is version \(found), and this worker needs \(needed). Run: millrace migrate"
            case .schema(.some(let found), let needed, let oldest):
                "The schema is version \(found) and serves workers from version \(oldest ?? found) on; this one is \(needed). Use a newer worker."
            case .database(let error): error.description
            case .noHandlers: "The worker has no handlers: register at least one kind of job."
            }
        }
    }

    package static let version = "0.1.0"

    let options: Options
    let handlers: [Handler]
    let middleware: [Middleware]
    /// By kind, for the kinds that are worked in chunks.
    let gatherers: [String: any ChunkRunning]
    let log: Log
    let desk: WorkerStateGuard
    let wakeups = Wakeups()
    let floors = Mutex(Floors())
    let outage: Outage
    let stalls = Stalls()
    /// For the contents of large jobs.
    let budget: ByteBudget
    let complaints: LogLimiter
    let claimLink: LoopConnection
    let flushLink: LoopConnection
    /// Signs of life and what follows from them, and nothing that could be slow.
    let beatLink: LoopConnection
    /// What a claim took and did not bring.
    let readLink: LoopConnection
    /// The contents of large jobs. Opened when there are some.
    let contentsLink: LoopConnection
    let houseLink: LoopConnection
    /// Its statements may walk far; they must not hold up a beat.
    let sweepLink: LoopConnection
    let listenLink: LoopConnection
    let hearing: NotificationHub
    /// Opened when a schedule is due, and no sooner.
    let clockLink: LoopConnection
    let doorman: QueueSleepLock
    let notebook: ReportWriter
    let abilities: Abilities
    let kinds = Mutex<[Int32: WorkedKind]>([:])
    let queues = Mutex(KnownQueues())
    let stops = StopRequests()
    let promotion = Signal()
    /// Something may have committed late.
    let samples = Signal()
    /// A schedule was changed.
    let timetables = Signal()
    let pulse = Signal()
    let sessionChanged = Signal()
    let started = Signal()
    let isUp = Mutex(false)
    /// The last error of a start that is still tried.
    let refusal = Mutex<String?>(nil)
    let sessionGone = Signal()
    /// Every session that the database may know: an opening whose answer was lost counts, and all are closed at the end.
    let opened = Mutex<Set<Int64>>([])
    /// The drain is over: what still cannot be recorded is given up.
    let isOver = Mutex(false)
    let gates = Gates()
    /// Fired when a job has ended that others wait for.
    let flowEnds = Signal()
    /// How long the last walk over the lanes took.
    let lanesWalk = Mutex(Duration.zero)
    /// Fired when the claim loop has ended: no claim is in flight any more.
    let claimsEnded = Signal()
    let misfit = Mutex<Failure?>(nil)

    package init(options: Options, handlers: [Handler], middleware: [Middleware] = [], log: Log) {
        self.options = options
        self.handlers = handlers
        self.middleware = middleware
        gatherers = Dictionary(
            handlers.compactMap { handler in handler.chunks.map { (handler.kind, $0.open(options.slots)) } },
            uniquingKeysWith: { first, _ in first })
        self.log = log.with("worker", options.name)
        desk = WorkerStateGuard(slots: options.slots)
        budget = ByteBudget(options.bytes.held)
        outage = Outage(log: self.log)
        complaints = LogLimiter(log: self.log)
        hearing = options.hearing ?? NotificationHub(options.direct ?? options.database)
        var bounded = options.database
        bounded.mostAnswerBytes = options.bytes.answer
        claimLink = LoopConnection(bounded, name: "mr-claim", outage: outage)
        flushLink = LoopConnection(bounded, name: "mr-flush", outage: outage)
        beatLink = LoopConnection(bounded, name: "mr-beat", outage: outage)
        readLink = LoopConnection(bounded, name: "mr-read", outage: outage)
        contentsLink = LoopConnection(bounded, name: "mr-contents", outage: outage)
        houseLink = LoopConnection(bounded, name: "mr-house", outage: outage)
        sweepLink = LoopConnection(bounded, name: "mr-sweep", outage: outage)
        listenLink = LoopConnection(hearing.options, name: "mr-listen", outage: outage)
        clockLink = LoopConnection(bounded, name: "mr-clock", outage: outage)
        doorman = QueueSleepLock(
            link: LoopConnection(hearing.options, name: "mr-door", outage: outage), wakeups: wakeups,
            poll: options.poll,
            log: self.log)
        notebook = ReportWriter(
            options.database, keys: options.keys, desk: desk, outage: outage, complaints: complaints, log: self.log)
        abilities = notebook.abilities
        _ = hearing.host()
        hearing.heed(["millrace"]) { [weak self] news in self?.heard(news) }
    }

    package var kindNames: [String] { handlers.map(\.kind) }

    /// Stops claiming, hands back what has not started, lets the rest finish until the deadline. A second call stops at once.
    package func drain() {
        stops.request()
    }

    /// Runs until drained. What it could not settle is in the report. A cancellation of the caller's task drains too: it stands for a
    /// request to stop, and what is under way ends in order.
    package func run() async throws -> Report {
        guard !handlers.isEmpty else { throw Failure.noHandlers }
        return try await withTaskCancellationHandler {
            // A task of its own, for its waits and statements would end at once in a cancelled one, and the jobs have to go back.
            try await Task { try await live() }.value
        } onCancel: {
            drain()
        }
    }

    private func live() async throws -> Report {
        let introduced: Bool?
        do {
            introduced = try await open()
        } catch {
            _ = await close()
            throw error
        }
        guard let direct = introduced else {
            tellStopping()
            return await close()
        }
        log.info(
            "worker started",
            [
                ("slots", "\(options.slots)"), ("kinds", handlers.map(\.kind).sorted().joined(separator: ",")),
                ("queues", options.queues.isEmpty ? "all" : options.queues.map(\.name).joined(separator: ",")),
                ("wakes", direct ? "notified" : "polling"),
            ])
        isUp.withLock { $0 = true }
        refusal.withLock { $0 = nil }
        started.fire()
        tellReady()
        await withTaskGroup(of: Void.self) { group in
            // The beat and the flush outlive the drain; the others end with it.
            let living = Task { await liveOn(direct: direct) }  // awaited below, after the drain
            group.addTask { await self.work(direct: direct) }
            await stops.firstRequest()
            await settle()
            group.cancelAll()
            await group.waitForAll()
            living.cancel()
            await living.value
        }
        return await close()
    }

    /// Returns when the worker has started; for tests.
    package func hasStarted() async {
        await started.wait()
    }

    private func work(direct: Bool) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.claimLink.run { await self.claimLoop() } }
            group.addTask { await self.readLoop() }
            group.addTask { await self.contentsLoop() }
            group.addTask { await self.sampleLoop() }
            group.addTask { await self.promoteLoop() }
            group.addTask { await self.sweepLoop() }
            group.addTask { await self.lanesLoop() }
            group.addTask { await self.gateLoop() }
            group.addTask { await self.scheduleLoop() }
            group.addTask { await self.flowLoop() }
            if direct {
                group.addTask { await self.doorman.run() }
            }
        }
    }

    private func liveOn(direct: Bool) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.beatLoop() }
            group.addTask { await self.watchLoop() }
            group.addTask { await self.flushLink.run { await self.flushLoop() } }
            group.addTask { await self.pulseLoop() }
            group.addTask { await self.notebook.run() }
            // Other rooms hear by it, and work until the last job has ended.
            if direct { group.addTask { await self.listenLink.run { await self.listenLoop() } } }
        }
    }
}

/// What the worker knows of queues.
struct KnownQueues: Sendable {
    var names: [Int32: String] = [:]
    /// Those it serves and that are not paused.
    var open: [Int32] = []
    var lines: [Int32: FairShares.Line] = [:]
    /// How many queues the lines belong to.
    var mains: Int { lines.count { $0.key == $0.value.main } }
    var serves: Set<Int32>?
    var limited: Set<Int32> = []
    var short: [Int32] = []
    var long: [Int32] = []

    /// The low bits of its leases' numbers: the retention class of their jobs.
    func leaseClass(of queue: Int32) -> Int64 { short.contains(queue) ? 0 : long.contains(queue) ? 2 : 1 }
}
