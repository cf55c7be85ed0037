import CommandKit
import FoundationEssentials
import LoadKit
import MillraceQueues
import Postgres
import Synchronization

/// Enqueues jobs of every shape and remembers the answers.
struct LedgerProducer: Sendable {
    let options: ConnectionOptions
    let rate: Int
    let numbers: LedgerNumbers
    let signals: LedgerSignals

    /// Until the time is over; returns what it knows.
    func run(seed: UInt64, until end: ContinuousClock.Instant) async throws -> [LedgerIntent] {
        var random = SeededChoices(seed: seed)
        var intents: [LedgerIntent] = []
        var connection: Connection?
        let began = ContinuousClock.now
        var made = 0
        var owed: [LedgerSignal] = []
        // What jobs wait for is sent even after the time.
        while ContinuousClock.now < end || (!owed.isEmpty && ContinuousClock.now < end + .seconds(120)) {
            let ahead = Double(made) / Double(rate) - began.duration(to: .now) / .seconds(1)
            if ahead > 0 { try await Task.sleep(for: .seconds(min(ahead, 1))) }
            let shape = random.pick(Self.weights) ?? .plain
            let count =
                shape == .plain ? Int.random(in: 50...300, using: &random) : Int.random(in: 1...5, using: &random)
            do throws(PostgresError) {
                if connection == nil { connection = try await Connection.open(options, name: "producer") }
            } catch {
                try await Task.sleep(for: .milliseconds(100))
                continue
            }
            guard let open = connection else { continue }
            do {
                try await pay(&owed, on: open, &random)
            } catch {
                guard error.isOutage || error.outcomeUnknown else { throw Failure("a signal was refused: \(error)") }
                await open.close()
                connection = nil
                continue
            }
            guard ContinuousClock.now < end else {
                try await Task.sleep(for: .milliseconds(20))
                continue
            }
            var intent = LedgerIntent(
                shape: shape, numbers: numbers.take(count), ids: [], outcome: .unknown, called: MachineClock.now(),
                answered: .infinity)
            do {
                try await call(&intent, &owed, on: open, &random)
            } catch let error as PostgresError {
                if !error.isOutage, !error.outcomeUnknown, error != .cancelled {
                    throw Failure("a producer was refused: \(error)")
                }
                await open.close()
                connection = nil
            }
            intent.answered = MachineClock.now()
            made += count
            intents.append(intent)
        }
        await connection?.close()
        return intents
    }

    private static let weights: [(LedgerIntent.Shape, Int)] = [
        (.plain, 20), (.delayed, 8), (.failing, 8), (.snoozing, 5), (.steps, 8), (.unique, 10), (.limited, 12),
        (.flow, 6), (.fan, 4), (.cancelled, 6), (.rolledBack, 6), (.late, 4),
        (.deleted, 6), (.successor, 4),
        (.sleeping, 5), (.signalled, 10), (.timed, 8), (.asking, 4), (.parent, 4), (.order, 8),
    ]

    private func call(
        _ intent: inout LedgerIntent, _ owed: inout [LedgerSignal], on connection: Connection,
        _ random: inout SeededChoices
    ) async throws {
        switch intent.shape {
        case .plain:
            // The ids are known by their first and last alone, and others draw from the same sequence: found by number later.
            _ = try await Queue.enqueueBulk(
                kind: LedgerWork.kind, args: intent.numbers.map { Array("{\"n\": \($0)}".utf8) }, on: connection)
        case .delayed:
            let due = (MachineClock.now() + Double.random(in: 1...6, using: &random)).rounded(.up)
            intent.due = due
            intent.ids = try await enqueue(intent.numbers, extra: ["run_at": .string(Self.text(due))], on: connection)
        case .failing:
            intent.ids = try await enqueue(
                intent.numbers, args: ["fail": .init(Int.random(in: 1...3, using: &random))], on: connection)
        case .snoozing: intent.ids = try await enqueue(intent.numbers, args: ["snooze": 1], on: connection)
        case .steps:
            intent.ids = try await enqueue(
                intent.numbers, args: ["steps": .init(Int.random(in: 1...4, using: &random)), "ms": 20], on: connection)
        case .unique:
            let key = "u\(Int.random(in: 0..<40, using: &random))"
            intent.key = key
            intent.numbers = intent.numbers.lowerBound...intent.numbers.lowerBound
            let made = try await insert(
                [job(intent.numbers.lowerBound, args: ["ms": 30], extra: ["unique_key": .string(key)])], on: connection)
            intent.ids = made.filter(\.created).map(\.id)
        case .limited:
            let key = "ledger.\(Int.random(in: 0..<4, using: &random))"
            intent.ids = try await enqueue(
                intent.numbers, args: ["ms": .init(Int.random(in: 5...60, using: &random))],
                extra: ["limit_key": .string(key)], on: connection)
        case .flow:
            let first = LedgerIntent(
                shape: .plain, numbers: numbers.take(3), ids: [], outcome: .unknown, called: 0, answered: 0)
            let before = try await enqueue(first.numbers, args: ["ms": 50], on: connection)
            intent.after = before
            intent.ids = try await enqueue(
                intent.numbers, extra: ["options": ["after": .array(before.map { .init(Int($0)) })]], on: connection)
        case .fan: intent.ids = try await enqueue(intent.numbers, args: ["spawn": 3], on: connection)
        case .cancelled:
            let due = (MachineClock.now() + 40).rounded(.up)
            let ids = try await enqueue(intent.numbers, extra: ["run_at": .string(Self.text(due))], on: connection)
            intent.ids = ids
            intent.outcome = .committed
            intent.due = due
            for id in ids {
                _ = try await connection.query("select millrace.cancel($1)", [.int8(id)]) { row throws(PostgresError) in
                    try row.bool(0)
                }
            }
            intent.wasCancelled = MachineClock.now() < due - 5
        case .deleted: try await delete(&intent, on: connection)
        case .successor: try await cancelSuccessor(&intent, on: connection)
        case .sleeping, .signalled, .timed, .asking, .parent, .order:
            try await enqueueWaiting(&intent, &owed, on: connection, &random)
        case .rolledBack:
            intent.outcome = .rolledBack
            try await connection.execute("begin")
            intent.ids = try await enqueue(intent.numbers, on: connection)
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &random)))
            try await connection.execute("rollback")
        case .late:
            try await connection.execute("begin")
            let ids: [Int64]
            do {
                ids = try await enqueue(intent.numbers, on: connection)
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...4000, using: &random)))
            } catch {
                intent.outcome = .rolledBack  // no commit was ever sent
                throw error
            }
            try await connection.execute("commit")
            intent.ids = ids
        }
        if intent.outcome == .unknown { intent.outcome = .committed }
    }

    /// If the job is running, the deletion is refused and the job ends as usual. A late deletion may follow a rescue while the first run
    /// goes on without a lease: it proves nothing.
    private func delete(_ intent: inout LedgerIntent, on connection: Connection) async throws {
        let ids = try await enqueue(intent.numbers, args: ["ms": 200], on: connection)
        var kept: [Int64] = []
        for id in ids {
            let asked = MachineClock.now()
            do throws(PostgresError) {
                try await connection.execute("select millrace.job_delete($1)", [.int8(id)])
                intent.deleted[id] = MachineClock.now() - asked < 3 ? MachineClock.now() : .infinity
            } catch {
                guard error.sqlState == "55000" else { throw error }
                kept.append(id)
            }
        }
        intent.ids = kept
    }

    private func cancelSuccessor(_ intent: inout LedgerIntent, on connection: Connection) async throws {
        let n = intent.numbers.lowerBound
        intent.numbers = n...n
        let key: [String: JSONValue] = ["unique_key": .string("s\(n)"), "on_conflict": "replace"]
        let holder = try await insert([job(n, args: ["ms": 300], extra: key)], on: connection)
        try await Task.sleep(for: .milliseconds(100))
        let next = try await insert([job(n, args: ["ms": 300], extra: key)], on: connection)
        let options: JSONValue = [
            "after": ["jobs": .array(next.map { .init(Int($0.id)) }), "when": "ended"]
        ]
        let last = try await insert([job(n, args: [:], extra: ["options": options])], on: connection)
        for one in next { try await connection.execute("select millrace.cancel($1)", [.int8(one.id)]) }
        intent.ids = (holder + next + last).map(\.id)
    }

    func enqueue(
        _ numbers: ClosedRange<Int>, kind: String = LedgerWork.kind, args: [String: JSONValue] = [:],
        extra: [String: JSONValue] = [:], on connection: Connection
    ) async throws -> [Int64] {
        try await insert(numbers.map { job($0, kind: kind, args: args, extra: extra) }, on: connection).map(\.id)
    }

    private func job(
        _ n: Int, kind: String = LedgerWork.kind, args: [String: JSONValue], extra: [String: JSONValue]
    ) -> JSONValue {
        var fields = [JSONValue.Member(key: "kind", value: .string(kind))]
        fields.append(
            .init(
                key: "args",
                value: .object([.init(key: "n", value: .init(n))] + args.map { .init(key: $0.key, value: $0.value) })))
        fields += extra.map { .init(key: $0.key, value: $0.value) }
        return .object(fields)
    }

    private func insert(_ jobs: [JSONValue], on connection: Connection) async throws -> [(id: Int64, created: Bool)] {
        try await connection.query(
            "select id, created from millrace.enqueue_many($1)", [.json(JSONValue.array(jobs).compact)]
        ) { row throws(PostgresError) in (try row.int(0), try row.bool(1)) }
    }

    private static func text(_ seconds: Double) -> String {
        Date(timeIntervalSince1970: seconds).formatted(.iso8601)
    }
}

/// Numbers that no two calls share.
final class LedgerNumbers: Sendable {
    private let next = Mutex(1)

    func take(_ count: Int) -> ClosedRange<Int> {
        next.withLock { next in
            defer { next += count }
            return next...next + count - 1
        }
    }

    var taken: Int { next.withLock { $0 - 1 } }
}
