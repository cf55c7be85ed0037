import CommandKit
import Postgres

extension Command {
    static let loadQueues = Command(
        ["load", "queues"],
        summary: "Measure the drain of a thousand queues beside that of one",
        discussion: """
            Drains a thousand queues of a thousand jobs each with one worker process, then one queue with as many \
            jobs in all, then the same queue with hand-written statements. Prints medians of the rounds. Use a \
            database of its own: its queues stay.
            """,
        flags: [
            .single(
                "queues", "N", .integer(2...20_000), environment: .none, fallback: "1000", help: "How many queues."),
            .single("each", "N", .integer(1...100_000), environment: .none, fallback: "1000", help: "Jobs in each."),
            .single("rounds", "N", .integer(1...25), environment: .none, fallback: "1", help: "How many rounds."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load queues", "a thousand and one"),
            Example("millrace load queues --queues 100 --each 100", "a first impression"),
        ]
    ) { invocation in
        let count = invocation.parsed.integer("queues") ?? 1000
        let each = invocation.parsed.integer("each") ?? 1000
        return try await SpreadScenario(
            invocation: invocation, name: "queues", jobs: count * each,
            what: "\(Humane.count(count)) queues: time to drain, share of that of one queue", bar: .time(1.25),
            figures: [("queues", .init(count)), ("each", .init(each))]
        ) { filling throws(PostgresError) in
            for queue in 0..<count {
                try await filling.add("practice.nothing", count: each, queue: "load.queues.\(queue)")
            }
        }.run()
    }

    static let loadMixed = Command(
        ["load", "mixed"],
        summary: "Measure the drain of tenants, priorities and queues mixed beside a plain one",
        discussion: """
            Drains jobs of 32 tenants in 9 priorities and 20 queues, enqueued in no order, with one worker process, then as many \
            plain jobs of one queue, then those again by hand-written statements. Prints medians of the rounds. Use a database \
            of its own: its queues stay.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1...100_000_000), environment: .none, fallback: "500000",
                help: "Jobs to drain each time."),
            .single("tenants", "N", .integer(1...1000), environment: .none, fallback: "32", help: "How many tenants."),
            .single(
                "priorities", "N", .integer(1...10), environment: .none, fallback: "9", help: "How many priorities."),
            .single("queues", "N", .integer(1...1000), environment: .none, fallback: "20", help: "How many queues."),
            .single("rounds", "N", .integer(1...25), environment: .none, fallback: "1", help: "How many rounds."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load mixed", "32 tenants, 9 priorities, 20 queues"),
            Example("millrace load mixed --tenants 1 --priorities 1", "what 20 queues alone cost"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let jobs = parsed.integer("jobs") ?? 500_000
        let tenants = parsed.integer("tenants") ?? 32
        let priorities = parsed.integer("priorities") ?? 9
        let queues = parsed.integer("queues") ?? 20
        return try await SpreadScenario(
            invocation: invocation, name: "mixed", jobs: jobs,
            what:
                "\(tenants) tenants, \(priorities) priorities, \(queues) queues: jobs per second, share of the plain drain",
            bar: .rate(0.7),
            figures: [("tenants", .init(tenants)), ("priorities", .init(priorities)), ("queues", .init(queues))]
        ) { filling throws(PostgresError) in
            // The same order in every run, but none that a claim could profit from.
            var order = Scatter(seed: 1)
            var left = jobs
            while left > 0 {
                let chunk = min(25, left)
                let place = order.next(below: tenants * priorities * queues)
                try await filling.add(
                    "practice.nothing", (left - chunk..<left).map { Array("{\"n\": \($0)}".utf8) },
                    queue: "load.mixed.\(place % queues)", priority: place / queues % priorities,
                    tenant: "tenant-\(place / queues / priorities)")
                left -= chunk
            }
        }.run()
    }
}

/// Numbers in no order, the same each time.
struct Scatter: Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next(below bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(bound))
    }
}

/// The drain of jobs that are spread out in some way, beside a drain of as many in one queue, and a drain by hand.
private struct SpreadScenario: Sendable {
    enum Promise {
        /// The time is at most this many times that of the plain drain.
        case time(Double)
        /// The rate is at least this share of it.
        case rate(Double)
    }

    let invocation: Invocation
    let name: String
    let jobs: Int
    let what: String
    let bar: Promise
    let figures: [(String, JSONValue)]
    let spread: @Sendable (inout Filling) async throws(PostgresError) -> Void

    func run() async throws -> ExitCode {
        do {
            return try await measure()
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }

    private func measure() async throws -> ExitCode {
        let rounds = invocation.parsed.integer("rounds") ?? 1
        let connection = try await Connection.open(try invocation.connectionOptions(), name: "load")
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
        let plain = "load.\(name).plain"
        var costs: [[Costs]] = [[], [], []]
        for round in 1...rounds {
            // Each way goes first in turn, because what one leaves to be vacuumed slows the next.
            for way in (0..<3).map({ ($0 + round) % 3 }) {
                let label = "round \(round) of \(rounds), \(["by hand", "spread", "plain"][way]):"
                var filling = Filling(invocation, on: connection, label: "\(label) enqueued", total: jobs)
                if way == 1 {
                    try await spread(&filling)
                } else {
                    try await filling.add("practice.nothing", count: jobs, queue: plain)
                }
                costs[way].append(
                    way == 0
                        ? try await draining.drainByHand(queue: plain) : try await draining.drain(label: label))
                invocation.console.note("\(label) \(costs[way].last?.summary ?? "")")
            }
        }
        await connection.close()
        let share = median(zip(costs[1], costs[2]).map { $0.perSecond / $1.perSecond })
        let promise: Bar =
            switch bar {
            case .time(let most): .atMost(what, most, measured: 1 / share, unit: "×")
            case .rate(let least): .atLeast(what, least, measured: share, unit: "×")
            }
        return invocation.report(
            name, [promise],
            figures: [("jobs", .init(jobs)), ("rounds", .init(rounds))] + figures + [
                ("spread", .array(costs[1].map(\.json))), ("plain", .array(costs[2].map(\.json))),
                ("by_hand", .array(costs[0].map(\.json))),
            ])
    }
}
