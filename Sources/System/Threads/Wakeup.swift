import Synchronization

/// One waiter, any number of callers: a call made before the wait is not lost, many calls are one.
package final class Wakeup: Sendable {
    private struct State {
        var fired = false
        var turn: UInt64 = 0
        var waiter: CheckedContinuation<Bool, Never>?
        /// The waiter's.
        var deadline: ContinuousClock.Instant?
        var timers: [Timer] = []
    }

    /// Looks at the clock when the limit of a wait comes. It is not called off when that ends before, which would wake a thread just when there is
    /// something else to do, but serves the next; so of several that are under way each is due before those that began earlier.
    private struct Timer {
        var number: UInt64
        var due: ContinuousClock.Instant
    }

    private let state = Mutex(State())

    package init() {}

    package func fire() {
        resume(by: nil)
    }

    /// Waits until fired, at most for `limit`; true when it was fired. A cancelled task returns at once.
    @discardableResult
    package func wait(for limit: Duration? = nil) async -> Bool {
        let turn: UInt64? = state.withLock { state in
            if state.fired {
                state.fired = false
                return nil
            }
            state.turn += 1
            return state.turn
        }
        guard let turn else { return true }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let deadline = limit.map { ContinuousClock.now + $0 }
                let (early, timer): (Bool?, Timer?) = state.withLock { state in
                    if state.fired {
                        state.fired = false
                        return (true, nil)
                    }
                    if Task.isCancelled || state.turn != turn { return (false, nil) }
                    state.waiter = continuation
                    state.deadline = deadline
                    guard let deadline, !state.timers.contains(where: { $0.due <= deadline }) else { return (nil, nil) }
                    state.timers.append(Timer(number: turn, due: deadline))
                    return (nil, state.timers.last)
                }
                if let early { continuation.resume(returning: early) }
                if let timer { start(timer) }
            }
        } onCancel: {
            resume(by: turn)
        }
    }

    private func start(_ timer: Timer) {
        Task { [weak self] in
            var due = timer.due
            while true {
                try? await Task.sleep(until: due, clock: .continuous)
                guard let next = self?.look(timer.number) else { return }
                due = next
            }
        }
    }

    /// Ends the wait if its limit has come. Returns when to look again; nil: never, because nobody waits or another timer does it.
    private func look(_ number: UInt64) -> ContinuousClock.Instant? {
        let (next, waiter): (ContinuousClock.Instant?, CheckedContinuation<Bool, Never>?) = state.withLock { state in
            state.timers.removeAll { $0.number == number }
            guard let deadline = state.deadline else { return (nil, nil) }
            if deadline > .now {
                guard !state.timers.contains(where: { $0.due <= deadline }) else { return (nil, nil) }
                state.timers.append(Timer(number: number, due: deadline))
                return (deadline, nil)
            }
            defer { (state.waiter, state.deadline) = (nil, nil) }
            return (nil, state.waiter)
        }
        waiter?.resume(returning: false)
        return next
    }

    /// `turn` is given by a cancellation, and ends only that very wait.
    private func resume(by turn: UInt64?) {
        let waiter: CheckedContinuation<Bool, Never>? = state.withLock { state in
            if let turn {
                guard state.turn == turn else { return nil }
                if state.waiter == nil { state.turn += 1 }  // it came before the wait itself
            } else if state.waiter == nil {
                state.fired = true
            }
            defer { (state.waiter, state.deadline) = (nil, nil) }
            return state.waiter
        }
        waiter?.resume(returning: turn == nil)
    }
}
