import Synchronization

/// Many callers, one request: for reads only (a token, a template, a flag, a probe), never for sends. A cancelled caller leaves without
/// an effect on the others; the work is cancelled when nobody waits for it any more. No result is kept, and no error.
///
/// There is one in a process, its supervisor's: rooms read by ``Supervisor/read(_:_:)`` or ``Call/read(_:_:)``.
final class Coalescer<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Value, any Error>, Never>

    private struct State {
        var flights = Flights<Key>()
        var waiters: [Int64: Waiter] = [:]
        var tasks: [Int64: Task<Void, Never>] = [:]
        /// Results that came before the joining caller had stored its continuation.
        var early: [Int64: Result<Value, any Error>] = [:]
        var lastCaller: Int64 = 0
    }

    private let state = Mutex(State())

    init() {}

    var inFlight: Int { state.withLock { $0.flights.count } }

    var waiting: Int { state.withLock { $0.waiters.count } }

    func value(
        for key: Key, _ load: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        let (caller, joined) = state.withLock { state in
            state.lastCaller += 1
            return (state.lastCaller, state.flights.join(key, state.lastCaller))
        }
        if case .started(let flight) = joined { start(flight, load) }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                let early: Result<Value, any Error>? = state.withLock { state in
                    if let early = state.early.removeValue(forKey: caller) { return early }
                    state.waiters[caller] = waiter
                    return nil
                }
                if let early { waiter.resume(returning: early) }
            }
        } onCancel: {
            leave(joined.flight, caller)
        }
        return try result.get()
    }

    /// An unstructured task, because it belongs to all waiting callers and outlives each of them.
    private func start(_ flight: Int64, _ load: @escaping @Sendable () async throws -> Value) {
        let task = Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await load())
            } catch {
                result = .failure(error)
            }
            self.land(flight, result)
        }
        let isNeeded = state.withLock { state in
            guard state.flights.isUp(flight) else { return false }
            state.tasks[flight] = task
            return true
        }
        if !isNeeded { task.cancel() }
    }

    private func land(_ flight: Int64, _ result: Result<Value, any Error>) {
        let waiters: [Waiter] = state.withLock { state in
            state.tasks[flight] = nil
            return state.flights.land(flight).compactMap { caller in
                if let waiter = state.waiters.removeValue(forKey: caller) { return waiter }
                state.early[caller] = result
                return nil
            }
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    private func leave(_ flight: Int64, _ caller: Int64) {
        let (waiter, task): (Waiter?, Task<Void, Never>?) = state.withLock { state in
            guard let wasLast = state.flights.leave(flight, caller) else { return (nil, nil) }
            let waiter = state.waiters.removeValue(forKey: caller)
            if waiter == nil { state.early[caller] = .failure(CancellationError()) }
            return (waiter, wasLast ? state.tasks.removeValue(forKey: flight) : nil)
        }
        task?.cancel()
        waiter?.resume(returning: .failure(CancellationError()))
    }
}
