public import FoundationEssentials
import Synchronization
package import Traces

/// What a run knows about itself.
public final class Context: Sendable {
    /// The job's number.
    public let id: Int64
    /// The kind it was enqueued as.
    public let kind: String
    /// The queue it came from.
    public let queue: String
    /// Which run this is, counted from 1; snoozes, hand-backs and crashes do not count.
    public let attempt: Int
    /// How many counted runs a job may have before it is dead.
    public let maxAttempts: Int
    /// How often a worker was lost while it held this job.
    public let crashes: Int
    /// When it was enqueued.
    public let enqueuedAt: Date
    /// When this run's lease was taken.
    public let claimedAt: Date
    /// The fence of this run. It is never used again, so it is good as part of an idempotency key for one run.
    public var token: String { "\(String(UInt64(bitPattern: session), radix: 16))-\(number)-\(id)" }
    /// The tenant given at enqueue.
    public let tenant: String?
    /// The labels given at enqueue.
    public let tags: [String]
    /// The metadata object given at enqueue, as JSON text.
    public let metadata: [UInt8]?

    /// The version of the arguments, see ``Job/version``; nil: the job has none.
    public let version: Int?

    /// What this run undoes; nil: it does its job's work.
    package let undo: Undo?
    /// Its kind takes jobs that undo steps.
    let takesUndos: Bool

    package let session: Int64
    package let number: Int64
    /// The run's own place in its trace, or its enqueuer's where this worker records none; nil: the job has no trace.
    package let trace: TraceContext?
    /// nil: this worker records no traces.
    let tracer: Tracer?
    let backend: RunBackend
    private let state = Mutex(State())

    private struct State {
        var reason: CancelReason?
        var steps = RecordedSteps()
        var result: [UInt8]?
        var reports = false
        var waitsAt: String?
        var undone = false
        var calls: Int64 = 0
    }

    /// Why this run is being cancelled; nil while it is not. Set before the task is cancelled.
    public var cancelReason: CancelReason? {
        state.withLock { $0.reason }
    }

    package func cancel(_ why: CancelReason) -> Bool {
        state.withLock { state in
            if state.reason != nil { return false }
            state.reason = why
            return true
        }
    }

    /// What the handler has left: a result as JSON text, and whether it has reported anything.
    package var leavings: (result: [UInt8]?, reports: Bool) {
        state.withLock { ($0.result, $0.reports) }
    }

    func withSteps<Value: Sendable>(_ body: (inout RecordedSteps) -> Value) -> Value {
        state.withLock { body(&$0.steps) }
    }

    func keep(_ result: [UInt8]) {
        state.withLock { $0.result = result }
    }

    /// The database has recorded this run's end: the job waits.
    package var isWaiting: Bool { waitsAt != nil }

    private var waitsAt: String? {
        state.withLock { $0.waitsAt }
    }

    func markWaiting(at step: String) {
        state.withLock { $0.waitsAt = step }
    }

    /// What middleware gets of a handler: a wait is one way to end a run and no error, whatever the handler has made of it.
    package nonisolated(nonsending) func end(of handler: () async throws -> Verdict) async throws -> Verdict {
        do {
            let verdict = try await handler()
            return waitsAt.map { .waiting(step: $0) } ?? verdict
        } catch {
            guard let step = waitsAt else { throw error }
            return .waiting(step: step)
        }
    }

    /// This run has undone what it was for.
    package var hasUndone: Bool {
        state.withLock { $0.undone }
    }

    func markUndone() {
        state.withLock { $0.undone = true }
    }

    /// Counts the values that this run publishes.
    func nextCall() -> Int64 {
        state.withLock { state in
            state.calls += 1
            return state.calls
        }
    }

    func markReporting() {
        state.withLock { $0.reports = true }
    }

    package init(
        id: Int64, kind: String, queue: String, attempt: Int, maxAttempts: Int, crashes: Int, enqueuedAt: Date,
        claimedAt: Date,
        session: Int64, number: Int64, tenant: String?, tags: [String], metadata: [UInt8]?,
        undo: Undo? = nil, takesUndos: Bool = true, version: Int? = nil, trace: TraceContext? = nil,
        tracer: Tracer? = nil, backend: RunBackend = .unimplemented
    ) {
        self.trace = trace
        self.tracer = tracer
        self.takesUndos = takesUndos
        self.version = version
        self.undo = undo
        self.id = id
        self.kind = kind
        self.queue = queue
        self.attempt = attempt
        self.maxAttempts = maxAttempts
        self.crashes = crashes
        self.enqueuedAt = enqueuedAt
        self.claimedAt = claimedAt
        self.session = session
        self.number = number
        self.tenant = tenant
        self.tags = tags
        self.metadata = metadata
        self.backend = backend
    }
}

/// Why a run is cancelled from outside.
public enum CancelReason: String, Sendable {
    /// Somebody cancelled the job.
    case requested
    /// The run took longer than its timeout.
    case timeout
    /// The worker stops, and its drain deadline has passed; the job is handed back.
    case stopping
    /// The lease is gone: another worker may already run the job. Everything that this run still reports is refused.
    case leaseLost = "lease lost"
    /// The worker has been cut off from the database for too long, and the kind is strict about it.
    case cutOff = "cut off"
}
