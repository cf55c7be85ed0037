import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Synchronization

extension LedgerProducer {
    /// Jobs that wait. Each that waits for a signal without a timeout has one for it, whatever becomes of its enqueue.
    func enqueueWaiting(
        _ intent: inout LedgerIntent, _ owed: inout [LedgerSignal], on connection: Connection,
        _ random: inout SeededChoices
    ) async throws {
        let wait = LedgerWait.kind
        switch intent.shape {
        case .sleeping:
            let seconds = Double.random(in: 1...4, using: &random)
            intent.ids = try await enqueue(
                intent.numbers, kind: wait, args: ["sleep": .double(seconds)], on: connection)
        case .signalled:
            let key = "k\(Int.random(in: 0..<20, using: &random))"
            let comesFirst = random.chance(0.4)
            let due = comesFirst ? 0 : MachineClock.now() + Double.random(in: 0...2, using: &random)
            owed += intent.numbers.map { LedgerSignal(n: $0, key: key, due: due) }
            if comesFirst { try await pay(&owed, on: connection, &random) }
            intent.ids = try await enqueue(intent.numbers, kind: wait, args: ["key": .string(key)], on: connection)
        case .timed:
            let n = intent.numbers.lowerBound
            intent.numbers = n...n
            let timeout = Double.random(in: 1...3, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                owed.append(LedgerSignal(n: n, key: "t\(n)"))
                try await pay(&owed, on: connection, &random)
            case 1:
                let due = MachineClock.now() + Double.random(in: 0...(timeout + 1), using: &random)
                owed.append(LedgerSignal(n: n, key: "t\(n)", due: due))
            default: break  // nobody sends it
            }
            intent.ids = try await enqueue(
                intent.numbers, kind: wait, args: ["key": .string("t\(n)"), "timeout": .double(timeout)],
                on: connection)
        case .asking:
            intent.ids = try await enqueue(intent.numbers, kind: wait, args: ["asks": true], on: connection)
        case .parent:
            let children = Int.random(in: 1...3, using: &random)
            intent.ids = try await enqueue(
                intent.numbers, kind: wait, args: ["children": .init(children)], on: connection)
        default: try await order(&intent, on: connection, &random)
        }
    }

    /// One that is refused, delivered, or cancelled somewhere on its way.
    private func order(
        _ intent: inout LedgerIntent, on connection: Connection, _ random: inout SeededChoices
    ) async throws {
        let isCancelled = random.chance(0.3)
        var args: [String: JSONValue] = ["refused": .bool(random.chance(0.5))]
        if isCancelled || random.chance(0.3) { args["sleep"] = .double(Double.random(in: 1...2, using: &random)) }
        intent.ids = try await enqueue(intent.numbers, kind: LedgerOrder.kind, args: args, on: connection)
        guard isCancelled else { return }
        intent.outcome = .committed
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &random)))
        for id in intent.ids { try await connection.execute("select millrace.cancel($1)", [.int8(id)]) }
    }

    /// Sends the signals that are due. Some are sent twice; after a lost answer it is sent again, too.
    func pay(
        _ owed: inout [LedgerSignal], on connection: Connection, _ random: inout SeededChoices
    ) async throws(PostgresError) {
        let now = MachineClock.now()
        while let place = owed.firstIndex(where: { $0.due <= now }) {
            var signal = owed[place]
            func send() async throws(PostgresError) -> Bool {
                try await Queue.signal(
                    LedgerWait.signal, key: signal.key, payload: Array("\(signal.n)".utf8), id: "\(signal.n)",
                    on: connection)
            }
            _ = try await send()
            signal.sent = MachineClock.now()
            if random.chance(0.2) { signal.wasNewAgain = try await send() }
            owed.remove(at: place)
            signals.note(signal)
        }
    }
}

/// The signals that all producers have sent.
final class LedgerSignals: Sendable {
    private let sent = Mutex<[LedgerSignal]>([])

    func note(_ signal: LedgerSignal) { sent.withLock { $0.append(signal) } }

    var all: [LedgerSignal] { sent.withLock { $0 } }
}
