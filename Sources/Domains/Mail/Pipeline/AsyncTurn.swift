import Synchronization

/// Lets one non-urgent sender at a time wait for a provider's rate limit. So an urgent mail waits behind at most one of them.
package final class AsyncTurn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var last = 0
        var gone: Set<Int> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// False: cancelled before its turn came.
    package func enter() async -> Bool {
        let id = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if state.gone.remove(id) != nil { return false }
                    if !state.isTaken {
                        state.isTaken = true
                        return true
                    }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let left = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
                    state.gone.insert(id)
                    return nil
                }
                return state.waiting.remove(at: index).continuation
            }
            left?.resume(returning: false)
        }
    }

    package func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if state.waiting.isEmpty {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}

/// A held turn. The first call of `leave` gives it up; later calls do nothing.
package final class TurnPlace: Sendable {
    private let held: Mutex<AsyncTurn?>

    package init(_ turn: AsyncTurn?) {
        held = Mutex(turn)
    }

    package func leave() {
        let turn = held.withLock { held in
            defer { held = nil }
            return held
        }
        turn?.leave()
    }
}
