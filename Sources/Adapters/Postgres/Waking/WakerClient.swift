import Synchronization
import Threads

/// Hears of a waker on this host what was notified, where a process has no connection that could listen.
package final class WakerClient: Sendable {
    private struct State {
        var socket: WakerSocket?
        var isAsleep = false
    }

    private let path: String
    private let interrupt = Interrupt()
    private let state = Mutex(State())

    package init(path: String) {
        self.path = path
    }

    /// Whether a waker is there now.
    package static func answers(at path: String) -> Bool { WakerSocket.connected(to: path) != nil }

    /// Says whether the process has something to do, so that others need to wake it only if not.
    package func sleeps(_ isAsleep: Bool) {
        state.withLock { state in
            guard state.isAsleep != isAsleep else { return }
            state.isAsleep = isAsleep
            // One that is lost is opened again, and then says so.
            _ = state.socket?.send(isAsleep ? "asleep\n" : "awake\n")
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
            return socket.send(state.isAsleep ? "asleep\n" : "awake\n")
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
