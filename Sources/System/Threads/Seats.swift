import Synchronization

/// A bounded number of seats, in all and for each name. A seat counts from the moment it is taken; nobody waits for one.
package final class Seats: Sendable {
    package enum Refusal: Error, Sendable, Equatable {
        /// This name has its seats.
        case ofName
        /// All are taken.
        case inAll
    }

    private struct State {
        var taken = 0
        var names: [String: Int] = [:]
    }

    package let inAll: Int
    package let perName: Int
    private let state = Mutex(State())

    package init(inAll: Int, perName: Int) {
        (self.inAll, self.perName) = (inAll, perName)
    }

    package func take(_ name: String) throws(Refusal) -> Seat {
        try state.withLock { state throws(Refusal) in
            guard state.names[name, default: 0] < perName else { throw .ofName }
            guard state.taken < inAll else { throw .inAll }
            state.taken += 1
            state.names[name, default: 0] += 1
        }
        return Seat { [self] in leave(name) }
    }

    package var taken: Int { state.withLock { $0.taken } }

    private func leave(_ name: String) {
        state.withLock { state in
            state.taken -= 1
            let left = state.names[name, default: 1] - 1
            state.names[name] = left > 0 ? left : nil
        }
    }
}

/// A seat until it is left, or until nothing holds it any more: an answer that is never sent leaves its seat, too.
package final class Seat: Sendable {
    private let left: Mutex<(@Sendable () -> Void)?>

    fileprivate init(_ leave: @escaping @Sendable () -> Void) { left = Mutex(leave) }

    deinit { leave() }

    package func leave() { left.withLock { $0.take() }?() }
}
