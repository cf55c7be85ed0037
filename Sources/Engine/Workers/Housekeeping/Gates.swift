import MillraceQueues
import Synchronization
import Threads

/// The gates to ask about: keys whose slots were given back or whose jobs were parked; and whether a queue's or tenant's gate
/// holds this worker back.
final class Gates: Sendable {
    struct Questions: Sendable {
        var named: Set<Int64> = []
        var all = false
        var held = false
    }

    private let state = Mutex(Questions())
    let signal = Wakeup()

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

    /// A claim got less than it wanted because of a queue's or tenant's limit.
    func holdBack() {
        let isNew = state.withLock { state in
            defer { state.held = true }
            return !state.held
        }
        if isNew { signal.fire() }
    }

    /// Still held back: to be asked about again, without haste.
    func stayHeld() {
        state.withLock { $0.held = true }
    }

    func take() -> Questions {
        state.withLock { state in
            defer { state = Questions() }
            return state
        }
    }
}
