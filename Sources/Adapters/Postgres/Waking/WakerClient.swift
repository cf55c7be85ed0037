import Synchronization
import Threads

/// What a worker says of itself to the waker.
package enum WakerState: String, Sendable {
    /// It has nothing to do, and wants to be woken.
    case asleep
    /// It looks by itself.
    case awake
    /// All its slots are taken.
    case full
}

/// Hears of a waker on this host what was notified, where a process has no connection that could listen.
package final class WakerClient: Sendable {
    private struct State {
        var socket: WakerSocket?
        var own = WakerState.awake
    }

    private let path: String
    private let interrupt = Interrupt()
    private let state = Mutex(State())

    package init(path: String) {
        self.path = path
    }

    /// Whether a waker is there now.
    package static func answers(at path: String) -> Bool { WakerSocket.connected(to: path) != nil }

    /// What the process does now. That it sleeps is said each time: it was woken since, perhaps in vain.
    package func says(_ own: WakerState) {
        state.withLock { state in
            guard state.own != own || own == .asleep else { return }
            state.own = own
            // A socket that is lost is opened again, and then it is said there.
            _ = state.socket?.send(own.rawValue + "\n")
        }
    }

    /// Until cancelled: hears, and comes back when the waker has gone.
    func run(_ hear: @escaping @Sendable (WakerWord) -> Void) async {
        let over = Atomic(false)
        await withTaskCancellationHandler {
            await Thread.run(name: "mr-woken") { [self] in
                while !over.load(ordering: .acquiring) {
                    if let socket = WakerSocket.connected(to: path) {
                        follow(socket, until: over, hear)
                        hear(.ended)
                    }
                    guard !over.load(ordering: .acquiring) else { return }
                    _ = WakerSocket.wait(for: [], interrupt: interrupt, atMost: 500)
                }
            }
        } onCancel: {
            over.store(true, ordering: .releasing)
            interrupt.fire()
        }
    }

    private func follow(_ socket: WakerSocket, until over: borrowing Atomic<Bool>, _ hear: (WakerWord) -> Void) {
        let isThere = state.withLock { state in
            state.socket = socket
            return socket.send(state.own.rawValue + "\n")
        }
        defer { state.withLock { $0.socket = nil } }
        guard isThere else { return }
        var lines = WakerLines()
        while !over.load(ordering: .acquiring) {
            guard !WakerSocket.wait(for: [socket], interrupt: interrupt).isEmpty else { continue }
            guard let bytes = socket.received(), let found = lines.add(bytes) else { return }
            for word in found.compactMap({ WakerWord($0) }) { hear(word) }
        }
    }
}
