import Synchronization
package import Threads

/// Tells the workers of this host what was notified, over a socket. It serves on a thread of its own; anybody may tell.
package final class WakerServer: Sendable {
    private struct Client {
        let socket: WakerSocket
        var lines = WakerLines()
        var isAsleep = false
        /// It was woken, and has not fallen asleep since.
        var isTold = false
    }

    private struct State {
        var clients: [Int: Client] = [:]
        var last = 0
        var turns: WakerTurns
        var groups = WakerGroups()

        mutating func tell(_ id: Int, _ line: String) {
            clients[id]?.isTold = true
            if clients[id]?.socket.send(line) == false { forget(id) }
        }

        mutating func tell(_ orders: WakerGroups.Orders) {
            for (id, order) in orders where clients[id]?.socket.send(WakerWord.order(order).line) == false {
                forget(id)
            }
        }

        /// What a worker says of itself.
        mutating func heed(_ id: Int, _ line: String) {
            guard let said = WakerState(rawValue: line) else {
                if line.hasPrefix("takes ") { tell(groups.takes(id, String(line.dropFirst(6)), at: .now)) }
                return
            }
            clients[id]?.isAsleep = said == .asleep
            tell(groups.said(id, said, at: .now))
            switch said {
            case .asleep:
                clients[id]?.isTold = false
                for told in turns.fellAsleep(id) { tell(id, told) }
            case .full: turns.isOut(id)
            case .awake: break
            }
        }

        mutating func forget(_ id: Int) {
            clients[id] = nil
            turns.isOut(id)
            groups.left(id)
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

    /// Whether the locks must be held that make writers notify. If not, they may be given back.
    package func needsNotes() -> Bool {
        state.withLock { state in
            let isNeeded = state.groups.needsNotes(at: .now)
            if !isNeeded { state.groups.gives() }
            return isNeeded
        }
    }

    /// From now on writers notify.
    package func holds() {
        state.withLock { $0.tell($0.groups.holds(at: .now)) }
    }

    /// Some writers notify, and others do not yet.
    package func waits() {
        state.withLock { $0.tell($0.groups.waits(at: .now)) }
    }

    /// Writers may not notify.
    package func gives() { state.withLock { $0.groups.gives() } }

    /// From now on everything is heard, and earlier changes must be looked for.
    package func began() {
        tell(.began) { $0.groups.isHeard = true }
    }

    /// There may be something that nobody was told of.
    package func look() {
        if state.withLock({ $0.groups.isHeard }) { tell(.began) }
    }

    package func ended() {
        tell(.ended) { $0.groups.isHeard = false }
    }

    package func said(_ notification: Notification) {
        let word = WakerWord.said(channel: notification.channel, payload: notification.payload)
        // New jobs in a lane, as `7.4 ready`; the rest is rare, or for everybody.
        guard notification.channel == "millrace", notification.payload.contains(".") else { return tell(word) }
        let line = word.line
        let isSooner = state.withLock { state in
            let (now, due) = (ContinuousClock.now, state.turns.due)
            state.tell(state.groups.noted(at: now))
            let asleep = state.groups.uncovered(at: now).filter { id in
                state.clients[id].map { $0.isAsleep && !$0.isTold } ?? false
            }
            for id in state.turns.said(line, asleep: asleep, at: now) { state.tell(id, line) }
            return due == nil
        }
        // The thread that serves waits no longer than until the others are told.
        if isSooner { interrupt.fire() }
    }

    /// Tells what is due; how many milliseconds are left until the next time, -1 if there is none.
    private func settle() -> Int32 {
        let (left, isNews) = state.withLock { state in
            let now = ContinuousClock.now
            state.tell(state.groups.settle(at: now))
            for (line, others) in state.turns.settle(among: state.groups.uncovered(at: now), at: now) {
                for id in others { state.tell(id, line) }
            }
            let due = [state.turns.due, state.groups.due(at: now)].compactMap(\.self).min()
            let left = due.map { Int32(clamping: max(0, Int64(now.duration(to: $0) / .milliseconds(1))) + 1) } ?? -1
            return (left, state.groups.needsNotes(at: now) != state.groups.isHeld)
        }
        if isNews { changed.fire() }
        return left
    }

    /// A worker that does not read what it is told is let go: it comes back, and looks for itself.
    private func tell(_ word: WakerWord, _ change: (inout State) -> Void = { _ in }) {
        let line = word.line
        // Sent under the lock, so that each worker hears everything in one order; a send never waits.
        let isGone = state.withLock { state in
            change(&state)
            let deaf = state.clients.filter { !$0.value.socket.send(line) }.keys
            for id in deaf { state.forget(id) }
            state.tell(state.groups.settle(at: .now))
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
            guard socket.send((state.groups.isHeard ? WakerWord.began : .ended).line) else { return }
            state.last += 1
            state.clients[state.last] = Client(socket: socket)
            state.groups.came(state.last, at: .now)
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
            for line in lines { state.heed(id, line) }
            return state.clients[id]?.isAsleep != before
        }
        if isNews { changed.fire() }
    }
}
