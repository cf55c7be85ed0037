import Synchronization

/// Lets a few callers of each name go on at once. The others of that name wait in a line of their own, in the order in which they came; callers
/// of other names never wait for them.
package final class Turns: Sendable {
    package enum Refusal: Error, Sendable, Equatable {
        /// As many of this name wait already as may.
        case full
        /// The turn did not come in time.
        case late
        /// The caller's task was cancelled.
        case cancelled
    }

    private struct State {
        var lines: TurnLines
        var waiting: [UInt64: CheckedContinuation<Refusal?, Never>] = [:]
        /// Whose time was up before they had joined their line.
        var late: Set<UInt64> = []
        var last: UInt64 = 0
    }

    package let atOnce: Int
    private let patience: Duration
    private let state: Mutex<State>

    /// - Parameters:
    ///   - waiting: the most that wait in the line of a name.
    ///   - patience: how long one waits.
    package init(atOnce: Int, waiting: Int, patience: Duration) {
        self.atOnce = atOnce
        self.patience = patience
        state = Mutex(State(lines: TurnLines(atOnce: atOnce, mostWaiting: waiting)))
    }

    package func withTurn<Value, Failure: Error>(
        of name: String, _ body: () async throws(Failure) -> Value
    ) async throws -> Value {
        try await take(name)
        defer { give(name) }
        return try await body()
    }

    /// How many names have somebody who goes on; for tests.
    package var names: Int { state.withLock { $0.lines.count } }

    /// How many wait in the line of a name; for tests.
    package func waiting(of name: String) -> Int { state.withLock { $0.lines.waiting(of: name) } }

    /// Returns when the turn has come. Each is given back by `give`.
    package func take(_ name: String) async throws(Refusal) {
        if state.withLock({ $0.lines.grant(name) }) { return }
        if let refusal = await wait(name) { throw refusal }
    }

    /// nil: its turn has come.
    private func wait(_ name: String) async -> Refusal? {
        let id = state.withLock { state in
            state.last += 1
            return state.last
        }
        let timer = Task { [self, patience] in  // ends with the wait: cancelled on the way out
            try await Task.sleep(for: patience)
            leave(name, id, .late)
        }
        defer {
            timer.cancel()
            _ = state.withLock { $0.late.remove(id) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: Refusal?? = state.withLock { state in
                    if Task.isCancelled { return .some(.cancelled) }
                    if state.late.contains(id) { return .some(.late) }
                    switch state.lines.ask(name, id) {
                    case .granted: return .some(nil)
                    case .full: return .some(.full)
                    case .waits:
                        state.waiting[id] = continuation
                        return nil
                    }
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            leave(name, id, .cancelled)
        }
    }

    private func leave(_ name: String, _ id: UInt64, _ refusal: Refusal) {
        let waiter = state.withLock { state -> CheckedContinuation<Refusal?, Never>? in
            if state.lines.giveUp(name, id) { return state.waiting.removeValue(forKey: id) }
            if refusal == .late { state.late.insert(id) }
            return nil
        }
        waiter?.resume(returning: refusal)
    }

    package func give(_ name: String) {
        let next = state.withLock { state in
            state.lines.end(name).flatMap { state.waiting.removeValue(forKey: $0) }
        }
        next?.resume(returning: nil)
    }
}
