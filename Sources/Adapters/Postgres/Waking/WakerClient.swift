import Synchronization
import Threads

/// What a worker says of itself to the waker.
package enum WakerState: String, Sendable {
    /// It has nothing to do, and wants to be woken.
    case asleep
    /// It looks by itself, and takes whatever it finds. Said again and again.
    case awake
    /// It can take nothing more, or not of each queue.
    case full
}

/// What the waker says to one worker. The words are those on the wire.
package enum WakerOrder: String, Sendable {
    /// There may be something that nobody was told of.
    case look
    /// Many jobs come: look by itself for a while.
    case watch
    /// Others look, and it may sleep.
    case enough
    /// While it sleeps it is told of each job, or others look for it.
    case covered
    case uncovered
}

/// Hears of a waker on this host what was notified, where a process has no connection that could listen.
package final class WakerClient: Sendable {
    private struct State {
        var socket: WakerSocket?
        var own: WakerState?
        var said = ContinuousClock.now
        var takes = ""
        var obey: (@Sendable (WakerOrder) -> Void)?
    }

    /// How often a worker that looks by itself says so.
    private static let pace = Duration.milliseconds(50)

    private let path: String
    private let interrupt = Interrupt()
    private let state = Mutex(State())

    package init(path: String) {
        self.path = path
    }

    /// Whether a waker is there now.
    package static func answers(at path: String) -> Bool { WakerSocket.connected(to: path) != nil }

    /// Calls `obey` for what the waker wants of this worker, on the receiving thread.
    package func heed(_ obey: @escaping @Sendable (WakerOrder) -> Void) {
        state.withLock { $0.obey = obey }
    }

    /// Workers that say the same take the same jobs, so that one can look for another. One word.
    package func takes(_ what: String) {
        state.withLock { state in
            guard state.takes != what else { return }
            state.takes = what
            _ = state.socket?.send("takes \(what)\n")
        }
    }

    /// What the process does now. That it sleeps is said each time: it was woken since, perhaps in vain.
    package func says(_ own: WakerState) {
        state.withLock { state in
            let isNews = state.own != own || own == .asleep
            guard isNews || own == .awake && state.said.duration(to: .now) > Self.pace else { return }
            state.own = own
            state.said = .now
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
                        obey(.uncovered)
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
            return socket.send("takes \(state.takes)\n" + (state.own.map { $0.rawValue + "\n" } ?? ""))
        }
        defer { state.withLock { $0.socket = nil } }
        guard isThere else { return }
        var lines = WakerLines()
        while !over.load(ordering: .acquiring) {
            guard !WakerSocket.wait(for: [socket], interrupt: interrupt).isEmpty else { continue }
            guard let bytes = socket.received(), let found = lines.add(bytes) else { return }
            for word in found.compactMap({ WakerWord($0) }) {
                if case .order(let order) = word { obey(order) } else { hear(word) }
            }
        }
    }

    private func obey(_ order: WakerOrder) {
        state.withLock { $0.obey }?(order)
    }
}
