package import Encryption
import FoundationEssentials
public import MillraceJobs
import Synchronization
package import Telemetry
import Threads
import Traces
package import Workers

/// A worker process: give it handlers, and run it.
///
/// ```swift
/// let worker = Worker(database: .environment)
/// worker.handle(SendReceipt.self, queue: "mail") { job, context in
///     try await receipts.send(job.order)
///     return .done
/// }
/// try await worker.run()
/// ```
public final class Worker: Sendable {
    /// How much the worker says on stderr.
    public enum LogLevel: Sendable {
        /// Every run.
        case debug
        /// What an operator may want to know.
        case info
        /// Something that needs attention.
        case warning
        /// Nothing.
        case silent
    }

    /// Work around every run of every kind. Call `next` once.
    public typealias Middleware =
        @Sendable (_ context: Context, _ next: @Sendable () async throws -> Verdict) async throws -> Verdict

    private struct State {
        var handlers: [Handler] = []
        var middleware: [Middleware] = []
        var schedules: [Schedule] = []
        var engine: Workers.JobWorker?
        var stopRequests = 0
    }

    private let database: Database
    private let keys: EncryptionKeys
    private let slots: Int
    private let queues: [String: Int?]
    private let drainTimeout: Duration
    private let onlyBuild: Bool
    private let log: Log
    private let metrics: (any MetricsReceiver)?
    private let spans: (any SpanReceiver)?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - database: The database of the queue.
    ///   - slots: How many jobs run at the same time.
    ///   - queues: The queues to serve; none means all. A number bounds how many jobs of a queue run here at once.
    ///   - keys: The keys that decrypt arguments.
    ///   - drainTimeout: How long running jobs may continue once the worker is told to stop.
    ///   - log: The lowest level to log.
    ///   - logReceiver: The receiver of the log; nil: stderr.
    ///   - metrics: The receiver of the metrics; nil: none.
    ///   - spans: The receiver of the spans; nil: none are recorded.
    ///   - onlyBuild: Take new jobs only while this build is the promoted one, and go on only with jobs that it began: see
    ///     `millrace versions`. `MILLRACE_BUILD` names the build, else the hash of the executable does.
    public init(
        database: Database = .environment, slots: Int = 100, queues: [String: Int?] = [:],
        drainTimeout: Duration = .seconds(30), keys: EncryptionKeys = .environment, log: LogLevel = .info,
        logReceiver: (any LogReceiver)? = nil, metrics: (any MetricsReceiver)? = nil,
        spans: (any SpanReceiver)? = nil, onlyBuild: Bool = false
    ) {
        self.database = database
        self.keys = keys
        self.slots = max(1, slots)
        self.queues = queues
        self.drainTimeout = drainTimeout
        self.onlyBuild = onlyBuild
        self.log = log.log(to: logReceiver)
        self.metrics = metrics
        self.spans = spans
    }

    /// Registers the handler of a kind. Its jobs go to `queue` when the enqueuing client names no queue.
    public func handle<Work: Job>(
        _ type: Work.Type, queue: String? = nil, _ body: @escaping @Sendable (Work, Context) async throws -> Verdict
    ) {
        let handler = Handler(type, queue: queue, body: body).takingUndos
        state.withLock { $0.handlers.append(handler) }
    }

    /// Has a job enqueued by the clock. The schedule is made, or changed if it was another, when the worker starts; it outlives the
    /// worker, and any worker fires it. The parameters are those of ``Client/schedule(_:_:zone:_:catchUp:overlap:jitter:queue:priority:tenant:)``.
    public func schedule<Work: Job>(
        _ name: String, _ expression: String, zone: String = "UTC", _ job: Work,
        catchUp: Schedule.CatchUp = .latest, overlap: Schedule.Overlap = .allow, jitter: Duration = .zero,
        queue: String? = nil, priority: Int? = nil, tenant: String? = nil
    ) throws(QueueError) {
        var schedule = Schedule(name, expression, zone: zone, kind: Work.kind, args: try Client.encode(job))
        schedule.encrypted = Work.encrypted
        schedule.catchUp = catchUp
        schedule.overlap = overlap
        schedule.jitter = jitter
        schedule.queue = queue
        schedule.priority = priority
        schedule.tenant = tenant
        try schedule.check()
        let made = schedule
        state.withLock { state in
            state.schedules.removeAll { $0.name == made.name }
            state.schedules.append(made)
        }
    }

    /// Registers the handler of a kind that takes up to `chunks` jobs in one call, and returns a verdict for each, in the same order. A
    /// thrown error counts for each of them. The first job waits at most `waiting` for others.
    ///
    /// Each job has its own slot, attempt and ``ChunkItem/context``; the task is cancelled when all of its jobs are. A job that may have
    /// crashed workers comes alone.
    public func handle<Work: Job>(
        chunks: Int, of type: Work.Type, queue: String? = nil, waiting: Duration = .milliseconds(20),
        _ body: @escaping @Sendable ([ChunkItem<Work>]) async throws -> [Verdict]
    ) {
        state.withLock {
            $0.handlers.append(Handler(chunks: chunks, of: type, queue: queue, waiting: waiting, body: body))
        }
    }

    /// Registers the handler of a workflow: what it returns is the job's result. An error that it throws is tried again as usual, unless it
    /// says otherwise; ``Discarded`` ends the job for good.
    ///
    /// ```swift
    /// worker.handle(workflow: PlaceOrder.self) { order, context in
    ///     try await context.step("charge") { try await charge(order) }
    ///     return Receipt(order: order.number)
    /// }
    /// ```
    public func handle<Flow: Workflow>(
        workflow type: Flow.Type, queue: String? = nil,
        _ body: @escaping @Sendable (Flow, Context) async throws -> Flow.Result
    ) {
        handle(type, queue: queue) { flow, context in
            try context.result(try await body(flow, context))
            return .done
        }
    }

    /// Handlers that a room of ours has made.
    package func handle(_ handlers: [Handler]) {
        state.withLock { $0.handlers += handlers }
    }

    /// Schedules that a room has made.
    package func schedule(_ schedules: [Schedule]) {
        state.withLock { $0.schedules += schedules }
    }

    /// Wraps every run; what is added first is outermost.
    public func use(_ middleware: @escaping Middleware) {
        state.withLock { $0.middleware.append(middleware) }
    }

    /// Runs until it is drained: by ``drain()``, by a cancellation of its task, or by SIGTERM or SIGINT unless `handlesSignals` is
    /// false. A second request stops at once. Waits for a database that is away; throws when the schema does not match or the settings
    /// are wrong.
    ///
    /// A drain always ends: running jobs have the drain timeout, then five seconds to react to their cancellation; if the database is unreachable,
    /// it has ten more seconds to come back and record the ended jobs. Jobs that it has not recorded run again.
    @discardableResult
    public func run(handlesSignals: Bool = true) async throws(QueueError) -> WorkReport {
        if let descriptor = RehearsalServer.descriptor() { return try await rehearse(on: descriptor) }
        let engine = try makeEngine()
        let early = state.withLock { state in
            state.engine = engine
            return state.stopRequests
        }
        for _ in 0..<early { engine.drain() }
        if handlesSignals {
            UnixSignals.ignorePipe()
            UnixSignals.onStop { _ in engine.drain() }
        }
        do {
            return WorkReport(try await engine.run())
        } catch let failure as Workers.JobWorker.Failure {
            throw QueueError(failure)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }

    /// Whether `millrace rehearse` or `millrace dev --replay` has started this process to ask its handlers. It has neither a database nor a
    /// network, so a program with a server then runs its worker alone.
    public static var isRehearsed: Bool { RehearsalServer.descriptor() != nil }

    /// Runs handlers for `millrace rehearse`, which has started this process: without a database, and without doing the work of any step.
    package func rehearse(on descriptor: Int32) async throws(QueueError) -> WorkReport {
        let handlers = try registeredHandlers().handlers
        await RehearsalServer(handlers, descriptor: descriptor).run()
        return WorkReport(Workers.JobWorker.Report.nothing)
    }

    /// Stops claiming, hands back jobs that have not started, and lets the others finish. A second call stops at once.
    public func drain() {
        let engine = state.withLock { state in
            state.stopRequests += 1
            return state.engine
        }
        engine?.drain()
    }

    func makeEngine(quiet: Bool = false, kept: KeptConnections? = nil) throws(QueueError) -> Workers.JobWorker {
        let (location, direct) = try database.options()
        var options = Workers.JobWorker.Options(database: location)
        options.direct = direct
        options.kept = kept
        options.keys = try keys.ring()
        if !quiet { options.service = ServiceSocket(environment: ProcessInfo.processInfo.environment) }
        options.slots = slots
        options.queues = queues.map { (name: $0.key, slots: $0.value) }
        options.drainDeadline = drainTimeout
        options.isPinned = onlyBuild
        options.observer = metrics.map { .init($0) }
        options.tracer = spans.map { Tracer(outside: ReceivingTracer($0)) }
        let (handlers, middleware, schedules) = try registry(keys: options.keys)
        options.schedules = schedules
        return Workers.JobWorker(
            options: options, handlers: handlers, middleware: middleware, log: quiet ? .silent : log)
    }

    /// All that was registered; the schedules as the database may see them.
    package func registry(
        keys: Keyring
    ) throws(QueueError) -> (handlers: [Handler], middleware: [Middleware], schedules: [Schedule]) {
        var sealed: [Schedule] = []
        for schedule in schedules { sealed.append(try schedule.sealed(with: keys)) }
        let (handlers, middleware) = try registeredHandlers()
        return (handlers, middleware, sealed)
    }

    private func registeredHandlers() throws(QueueError) -> (handlers: [Handler], middleware: [Middleware]) {
        let (handlers, middleware) = state.withLock { ($0.handlers, $0.middleware) }
        let kinds = Set(handlers.map(\.kind))
        guard kinds.count == handlers.count else {
            throw QueueError(.misconfigured, "A kind has two handlers; register each kind once.")
        }
        return (handlers, middleware)
    }

    func keyring() throws(QueueError) -> Keyring { try keys.ring() }

    func handler(for kind: String) -> Handler? {
        state.withLock { $0.handlers.first { $0.kind == kind } }
    }

    var layers: [Middleware] { state.withLock { $0.middleware } }
    var schedules: [Schedule] { state.withLock { $0.schedules } }
}

extension Worker.LogLevel {
    package func log(to receiver: (any LogReceiver)?) -> Log {
        let threshold: Log.Level
        switch self {
        case .debug: threshold = .debug
        case .info: threshold = .info
        case .warning: threshold = .warning
        case .silent: return .silent
        }
        guard let receiver else { return .standardError(threshold: threshold) }
        return Log(threshold: threshold) { receiver.log(WorkerLogLine($0)) }
    }
}

/// What a worker did while it ran.
public struct WorkReport: Sendable, Equatable {
    /// Runs whose end was recorded.
    public let finished: Int
    /// Jobs given back untouched, or cancelled by the stop; no attempt was used up.
    public let handedBack: Int
    /// Ends that were refused because the lease was lost: another worker has, or had, the job.
    public let refused: Int
    /// Handlers that ignored their cancellation and were left behind.
    public let abandoned: Int
    /// Ends that could not be recorded; those jobs run again.
    public let unrecorded: Int

    package init(_ report: Workers.JobWorker.Report) {
        finished = report.finished
        handedBack = report.handedBack
        refused = report.refused
        abandoned = report.abandoned
        unrecorded = report.unrecorded
    }
}
