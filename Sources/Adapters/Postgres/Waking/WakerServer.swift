import Synchronization
package import Threads

/// Tells the workers of this host what was notified, over a socket. It serves on a thread of its own; anybody may tell.
package final class WakerServer: Sendable {
    private struct Client {
        let socket: WakerSocket
        var lines = WakerLines()
        /// It has nothing to do, and wants to be woken.
        var isAsleep = false
        /// It was woken, and has not fallen asleep since.
        var isTold = false
    }

    private struct State {
        var clients: [Int: Client] = [:]
        var last = 0
        var hears = false
        var turns: WakerTurns

        mutating func tell(_ id: Int, _ line: String) {
            clients[id]?.isTold = true
            if clients[id]?.socket.send(line) == false { forget(id) }
        }

        mutating func forget(_ id: Int) {
            clients[id] = nil
            turns.isOut(id)
        }
    }

    private let door: WakerSocket
    private let interrupt = Interrupt()
    private let state: Mutex<State>
    /// A worker has come, gone, fallen asleep or woken up.
    package let changed = Wakeup()

    /// - Parameter pause: how long after the first few the others are told of new jobs.
    package init(path: String, pause: Duration = .milliseconds(20)) throws(WakerFailure) {
        state = Mutex(State(turns: WakerTurns(pause: pause)))
        door = try WakerSocket.listening(at: path)
    }

    /// How many workers are connected, and how many of them sleep.
    package var workers: (all: Int, asleep: Int) {
        state.withLock { ($0.clients.count, $0.clients.values.count(where: \.isAsleep)) }
    }

    /// From now on everything is heard, and earlier changes must be looked for.
    package func began() {
        tell(.began) { $0.hears = true }
    }

    /// There may be something that nobody was told of.
    package func look() {
        if state.withLock({ $0.hears }) { tell(.began) }
    }

    package func ended() {
        tell(.ended) { $0.hears = false }
    }

    package func said(_ notification: Notification) {
        let word = WakerWord.said(channel: notification.channel, payload: notification.payload)
        // New jobs in a lane, as `7.4 ready`; the rest is rare, or for everybody.
        guard notification.channel == "millrace", notification.payload.contains(".") else { return tell(word) }
        let line = word.line
        let isSooner = state.withLock { state in
            let due = state.turns.due
            let asleep = state.clients.filter { $0.value.isAsleep && !$0.value.isTold }.map(\.key)
            for id in state.turns.said(line, asleep: asleep, at: .now) { state.tell(id, line) }
            return due == nil
        }
        // The thread that serves waits no longer than until the others are told.
        if isSooner { interrupt.fire() }
    }

    /// Tells the others, when it is time; how many milliseconds are left until the next time, -1 if there is none.
    private func settle() -> Int32 {
        state.withLock { state in
            for (line, others) in state.turns.settle(among: state.clients.keys, at: .now) {
                for id in others { state.tell(id, line) }
            }
            guard let due = state.turns.due else { return -1 }
            return Int32(clamping: max(0, Int64(ContinuousClock.now.duration(to: due) / .milliseconds(1))) + 1)
        }
    }

    /// A worker that does not read what it is told is let go: it comes back, and looks for itself.
    private func tell(_ word: WakerWord, _ change: (inout State) -> Void = { _ in }) {
        let line = word.line
        // Sent under the lock, so that each worker hears everything in one order; a send never waits.
        let isGone = state.withLock { state in
            change(&state)
            let deaf = state.clients.filter { !$0.value.socket.send(line) }.keys
            for id in deaf { state.forget(id) }
            return !deaf.isEmpty
        }
        if isGone {
            interrupt.fire()
            changed.fire()
        }
    }

    /// Until cancelled.
    package func run() async {
        let over = Atomic(false)
        await withTaskCancellationHandler {
            await Thread.run(name: "mr-waker") { [self] in
                while !over.load(ordering: .acquiring) { serve() }
            }
        } onCancel: {
            over.store(true, ordering: .releasing)
            interrupt.fire()
        }
        // Nobody is let in any more, and another may take the place, even while this object is still held.
        door.shut()
        state.withLock { $0.clients = [:] }
    }

    private func serve() {
        let left = settle()
        let clients = state.withLock { $0.clients.map { (id: $0.key, socket: $0.value.socket) } }
        let ready = WakerSocket.wait(for: [door] + clients.map(\.socket), interrupt: interrupt, atMost: left)
        _ = interrupt.take()
        for index in ready {
            if index == 0 { welcome() } else { read(clients[index - 1].id, clients[index - 1].socket) }
        }
    }

    private func welcome() {
        guard let socket = door.accepted() else { return }
        state.withLock { state in
            guard socket.send((state.hears ? WakerWord.began : .ended).line) else { return }
            state.last += 1
            state.clients[state.last] = Client(socket: socket)
        }
        changed.fire()
    }

    private func read(_ id: Int, _ socket: WakerSocket) {
        let bytes = socket.received()
        let isNews = state.withLock { state in
            guard let bytes, let lines = state.clients[id]?.lines.add(bytes) else {
                state.forget(id)
                return true
            }
            let before = state.clients[id]?.isAsleep
            for line in lines {
                state.clients[id]?.isAsleep = line == WakerState.asleep.rawValue
                switch WakerState(rawValue: line) {
                case .asleep:
                    state.clients[id]?.isTold = false
                    for told in state.turns.fellAsleep(id) { state.tell(id, told) }
                case .full: state.turns.isOut(id)
                case .awake, nil: break
                }
            }
            return state.clients[id]?.isAsleep != before
        }
        if isNews { changed.fire() }
    }
}
