import FoundationEssentials
package import MillraceJobs
package import MillraceQueues
import Synchronization
import Traces

/// One run of one job: what it may know, and the handle to cancel it.
package final class Run: Sendable {
    package let job: Claimed
    package let context: Context
    let started = ContinuousClock.now
    let deadline: ContinuousClock.Instant?
    let whenCutOff: WhenCutOff
    /// nil: the worker does not know it.
    let kind: WorkedKind?
    /// nil: it is not recorded.
    let span: TraceSpan?
    private let state = Mutex(State())
    private let placement = Atomic(-1)
    /// Its index among the running ones; `WorkerState` sets it.
    var place: Int {
        get { placement.load(ordering: .relaxed) }
        set { placement.store(newValue, ordering: .relaxed) }
    }

    private struct State {
        var task: Task<Void, Never>?
        var cancelledAt: ContinuousClock.Instant?
        var reportedStuck = false
        var over = false
    }

    package convenience init(job: Claimed, context: Context) {
        self.init(job: job, context: context, kind: nil)
    }

    init(
        job: Claimed, context: Context, kind: WorkedKind?, timeout: Duration? = nil,
        whenCutOff: WhenCutOff = .keepRunning, span: TraceSpan? = nil
    ) {
        self.span = span
        self.job = job
        self.context = context
        self.kind = kind
        deadline = timeout.map { ContinuousClock.now + $0 }
        self.whenCutOff = whenCutOff
    }

    /// How long the job waited from its enqueuing until this run began, in milliseconds. Only for the first run of a job that could run at
    /// once: one that was scheduled, put back or held back stands in line under a later number than its own, and its wait was wanted.
    var waited: Int32? {
        guard job.seq == job.id, job.attempt == 0, job.crashes == 0 else { return nil }
        let inLine = max(0, job.claimedAt.timeIntervalSince(job.enqueuedAt))
        return Int32(clamping: Int64(min(inLine * 1000, 2e9)) + Int64((started - job.receivedAt) / .milliseconds(1)))
    }

    func attach(_ task: Task<Void, Never>) {
        let late = state.withLock { state in
            guard !state.over else { return false }
            state.task = task
            return state.cancelledAt != nil
        }
        if late { task.cancel() }
    }

    /// The run is over: from here on a cancellation does not reach the task. False if it was cancelled before.
    func detach() -> Bool {
        state.withLock { state in
            state.over = true
            state.task = nil
            return state.cancelledAt == nil
        }
    }

    /// The first reason stays.
    func cancel(_ reason: CancelReason) {
        guard context.cancel(reason) else { return }
        let task = state.withLock { state in
            state.cancelledAt = ContinuousClock.now
            return state.task
        }
        task?.cancel()
    }

    /// True once, when the handler has ignored its cancellation for `grace`.
    func turnsStuck(at now: ContinuousClock.Instant, grace: Duration) -> Bool {
        state.withLock { state in
            guard let since = state.cancelledAt, !state.reportedStuck, since.duration(to: now) > grace else {
                return false
            }
            state.reportedStuck = true
            return true
        }
    }

    var isStuck: Bool {
        state.withLock { $0.reportedStuck }
    }
}

extension Run {
    /// Its end, where its handler has not come to one.
    func abandoned(jitter: Double) -> Ended {
        let released = Ended(job: job, outcome: .released, wait: .zero)
        guard let reason = context.cancelReason else { return released }
        let mapper = OutcomeMapper(
            retries: kind?.handler.retries ?? .standard, maxAttempts: context.maxAttempts)
        return mapper.end(
            job, said: .threw("the handler ignored its cancellation until its worker stopped", .usual),
            cancelled: reason, milliseconds: Int32(clamping: Int64(started.duration(to: .now) / .milliseconds(1))),
            jitter: jitter) ?? released
    }
}
