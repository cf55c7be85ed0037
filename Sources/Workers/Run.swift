package import Jobs
package import Queues
import Synchronization

/// One run of one job: what it may know, and the handle to cancel it.
package final class Run: Sendable {
    package let job: Claimed
    package let context: Context
    let started = ContinuousClock.now
    let deadline: ContinuousClock.Instant?
    let whenCutOff: WhenCutOff
    private let state = Mutex(State())

    private struct State {
        var task: Task<Void, Never>?
        var cancelledAt: ContinuousClock.Instant?
        var reportedStuck = false
    }

    package init(job: Claimed, context: Context, timeout: Duration? = nil, whenCutOff: WhenCutOff = .keepRunning) {
        self.job = job
        self.context = context
        deadline = timeout.map { ContinuousClock.now + $0 }
        self.whenCutOff = whenCutOff
    }

    func attach(_ task: Task<Void, Never>) {
        let late = state.withLock { state in
            state.task = task
            return state.cancelledAt != nil
        }
        if late { task.cancel() }
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
