import Composition
import FoundationEssentials
public import Millrace
import Postgres
public import RoomKit
import Synchronization
import Telemetry
import Threads
import Workers

/// Everything that `millrace worker` is, with your own handlers: it sends mail, reads documents, sends notices and events, serves
/// check-ins, answers `/livez`, `/readyz` and `/metrics`, and uses the same settings.
///
/// ```swift
/// let worker = try CompleteWorker()
/// worker.handle(SendReceipt.self, queue: "receipts") { job, context in
///     try await receipts.send(job.order)
///     return .done
/// }
/// try await worker.run()
/// ```
/// A ``Millrace/Worker`` only runs handlers. Use a CompleteWorker instead of `millrace worker`, or run both.
public final class CompleteWorker: Sendable {
    private struct State {
        var engine: Workers.JobWorker?
        var stopRequests = 0
    }

    private let options: Options
    /// nil: this process is rehearsed, and has none of the settings.
    private let composer: Composer?
    private let jobs: Millrace.Worker
    private let state = Mutex(State())

    /// Reads and checks all settings; everything that is wrong with them is in the one error.
    public init(_ options: Options = Options()) throws(QueueError) {
        self.options = options
        composer = RehearsalServer.descriptor() == nil ? try options.composer() : nil
        jobs = Worker(keys: .none, log: .silent)
    }

    /// A worker of these rooms, Millrace's and yours, and no others, by the settings of the environment.
    public convenience init(rooms: Set<Room>) throws(QueueError) {
        var options = Options()
        options.rooms = rooms
        try self.init(options)
    }

    /// Registers the handler of a kind: see ``Millrace/Worker/handle(_:queue:_:)``.
    public func handle<Work: Job>(
        _ type: Work.Type, queue: String? = nil, _ body: @escaping @Sendable (Work, Context) async throws -> Verdict
    ) {
        jobs.handle(type, queue: queue, body)
    }

    /// Registers the handler of a kind, for many jobs in one call: see ``Millrace/Worker/handle(chunks:of:queue:waiting:_:)``.
    public func handle<Work: Job>(
        chunks: Int, of type: Work.Type, queue: String? = nil, waiting: Duration = .milliseconds(20),
        _ body: @escaping @Sendable ([ChunkItem<Work>]) async throws -> [Verdict]
    ) {
        jobs.handle(chunks: chunks, of: type, queue: queue, waiting: waiting, body)
    }

    /// Wraps every run, including those of the rooms; what is added first is outermost.
    public func use(_ middleware: @escaping Millrace.Worker.Middleware) {
        jobs.use(middleware)
    }

    /// Has a job enqueued by the clock: see ``Millrace/Worker/schedule(_:_:zone:_:catchUp:overlap:jitter:queue:priority:tenant:)``.
    public func schedule<Work: Job>(
        _ name: String, _ expression: String, zone: String = "UTC", _ job: Work,
        catchUp: Schedule.CatchUp = .latest, overlap: Schedule.Overlap = .allow, jitter: Duration = .zero,
        queue: String? = nil, priority: Int? = nil, tenant: String? = nil
    ) throws(QueueError) {
        try jobs.schedule(
            name, expression, zone: zone, job, catchUp: catchUp, overlap: overlap, jitter: jitter, queue: queue,
            priority: priority, tenant: tenant)
    }

    /// Runs until it is drained: by ``drain()``, by a cancellation of its task, or by SIGTERM or SIGINT unless `handlesSignals` is
    /// false. A second request stops at once. The rooms and the listener go on until the last job has ended.
    @discardableResult
    public func run(handlesSignals: Bool = true) async throws(QueueError) -> WorkReport {
        if let descriptor = RehearsalServer.descriptor() { return try await jobs.rehearse(on: descriptor) }
        do {
            let worker = try await composed()
            let early = state.withLock { state in
                state.engine = worker.engine
                return state.stopRequests
            }
            for _ in 0..<early { worker.engine.drain() }
            if handlesSignals {
                UnixSignals.ignorePipe()
                UnixSignals.onStop { _ in worker.engine.drain() }
            }
            return WorkReport(try await worker.run())
        } catch let error as QueueError {
            throw error
        } catch let failure as Workers.JobWorker.Failure {
            throw QueueError(failure)
        } catch let failure as any CommandFailure {
            throw QueueError(failure)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }

    /// Stops claiming, hands back jobs that have not started, and lets the others finish. A second call stops at once.
    public func drain() {
        let engine = state.withLock { state in
            state.stopRequests += 1
            return state.engine
        }
        engine?.drain()
    }

    private func composed() async throws -> ComposedWorker {
        guard let composer else { throw QueueError(.misconfigured, "This process is rehearsed, and has no settings.") }
        let registered = try jobs.registry(keys: composer.settings.keys)
        return try await composer.worker(registered.handlers, middleware: registered.middleware, name: options.name) {
            $0.schedules = registered.schedules
            $0.observer = options.metrics.map { .init($0) }
        }
    }
}

extension QueueError {
    /// The failure that a command would have printed before it ended.
    init(_ failure: any CommandFailure) {
        let kind: Class =
            switch failure.exitCode {
            case .misused: .misconfigured
            case .unreachable: .unreachable
            case .schemaMismatch: .schema
            case .notFound: .notFound
            case .conflict: .conflict
            case .timedOut: .timedOut
            case .done, .failed, .jobDied, .degraded, .critical: .refused
            }
        self.init(kind, failure.hint.map { "\(failure.sentence): \($0)" } ?? failure.sentence)
    }
}
