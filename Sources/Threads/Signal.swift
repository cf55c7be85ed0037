import Synchronization

/// One waiter, any number of callers: a call made before the wait is not lost, many calls are one.
package final class Signal: Sendable {
    private struct State {
        var fired = false
        var turn: UInt64 = 0
        var waiter: CheckedContinuation<Bool, Never>?
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
        let timer = limit.map { limit in
            Task {  // ends with the wait: cancelled on the way out
                try await Task.sleep(for: limit)
                resume(by: turn)
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: Bool? = state.withLock { state in
                    if state.fired {
                        state.fired = false
                        return true
                    }
                    if Task.isCancelled || state.turn != turn { return false }
                    state.waiter = continuation
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            resume(by: turn)
        }
    }

    /// `turn` is given by a timer or a cancellation, and ends only that very wait.
    private func resume(by turn: UInt64?) {
        let waiter: CheckedContinuation<Bool, Never>? = state.withLock { state in
            if let turn {
                guard state.turn == turn else { return nil }
                if state.waiter == nil { state.turn += 1 }  // it came before the wait itself
            } else if state.waiter == nil {
                state.fired = true
            }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: turn == nil)
    }
}
