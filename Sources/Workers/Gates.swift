import Queues
import Synchronization
import Threads

/// The gates to ask about: their slots were given back, or jobs were parked at them.
final class Gates: Sendable {
    private struct State {
        var named: Set<Int64> = []
        var all = false
    }

    private let state = Mutex(State())
    let signal = Signal()

    func ask(_ gates: some Sequence<Int64>) {
        let asked = state.withLock { state in
            let before = state.named.count
            state.named.formUnion(gates)
            return state.named.count > before
        }
        if asked { signal.fire() }
    }

    func askAll() {
        state.withLock { $0.all = true }
        signal.fire()
    }

    func take() -> (named: Set<Int64>, all: Bool) {
        state.withLock { state in
            defer { state = State() }
            return (state.named, state.all)
        }
    }
}
