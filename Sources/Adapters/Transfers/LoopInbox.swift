import Synchronization
import Threads

/// Commands for the loop's thread. The thread is woken only when it sleeps.
final class LoopInbox: Sendable {
    enum Command: Sendable {
        case start(Transfer, TransferReceiver)
        case giveUp(Transfer)
        case goOn(Transfer)
        case close
    }

    private struct State {
        var commands: [Command] = []
        var isAsleep = false
        var isClosed = false
    }

    private let state = Mutex(State())
    let census = Census()
    let bell = Interrupt()

    /// False when the loop is closed: the command will not be handled.
    @discardableResult
    func post(_ command: Command) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            if state.isClosed { return (false, false) }
            if case .close = command { state.isClosed = true }
            state.commands.append(command)
            defer { state.isAsleep = false }
            return (true, state.isAsleep)
        }
        if wakes { bell.fire() }
        return isTaken
    }

    func take(into commands: inout [Command]) {
        commands.removeAll(keepingCapacity: true)
        state.withLock { state in
            state.isAsleep = false
            swap(&state.commands, &commands)
        }
    }

    /// From now on a command rings the bell; false when one is there already.
    func sleeps() -> Bool {
        state.withLock { state in
            state.isAsleep = state.commands.isEmpty
            return state.isAsleep
        }
    }
}

/// The counts of a loop, readable from other threads.
final class Census: Sendable {
    let transfers = Atomic(0)
    let handles = Atomic(0)
}
