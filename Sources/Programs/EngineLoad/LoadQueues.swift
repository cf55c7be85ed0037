package import CommandKit
import LoadKit
import Postgres

extension Command {
    package static let loadQueues = scenario(
        "queues",
        summary: "Measure the drain of a thousand queues beside that of one",
        discussion: """
            Drains a thousand queues of a thousand jobs each with one worker process, then one queue with as many \
            jobs in all, then the same queue with hand-written statements. Prints medians of the rounds. Use a \
            database of its own: its queues stay.
            """,
        flags: [
            .count("queues", 2...20_000, 1000, "How many queues."),
            .count("each", 1...100_000, 1000, "Jobs in each."),
            .count("rounds", 1...25, 1, "How many rounds."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load queues", "a thousand and one"),
            Example("millrace load queues --queues 100 --each 100", "a first impression"),
        ]
    ) { invocation in
        let count = invocation.count("queues")
        let each = invocation.count("each")
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

    package static let loadMixed = scenario(
        "mixed",
        summary: "Measure the drain of tenants, priorities and queues mixed beside a plain one",
        discussion: """
            Drains jobs of 32 tenants in 9 priorities and 20 queues, enqueued in no order, with one worker process, then as many \
            plain jobs of one queue, then those again by hand-written statements. Prints medians of the rounds. Use a database \
            of its own: its queues stay.
            """,
        flags: [
            .count("jobs", 1...100_000_000, 500_000, "Jobs to drain each time."),
            .count("tenants", 1...1000, 32, "How many tenants."),
            .count("priorities", 1...10, 9, "How many priorities."),
            .count("queues", 1...1000, 20, "How many queues."),
            .count("rounds", 1...25, 1, "How many rounds."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load mixed", "32 tenants, 9 priorities, 20 queues"),
            Example("millrace load mixed --tenants 1 --priorities 1", "what 20 queues alone cost"),
        ]
    ) { invocation in
        let jobs = invocation.count("jobs")
        let tenants = invocation.count("tenants")
        let priorities = invocation.count("priorities")
        let queues = invocation.count("queues")
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
        let connection = try await invocation.connect()
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
        let plain = "load.\(name).plain"
        func filling(_ label: String) -> Filling {
            Filling(invocation, on: connection, label: "\(label) enqueued", total: jobs)
        }
        func fill(_ label: String) async throws {
            var filling = filling(label)
            try await filling.add("practice.nothing", count: jobs, queue: plain)
        }
        let costs = try await WaysInTurn(invocation).take([
            (
                "by hand",
                {
                    try await fill($0)
                    return try await draining.drainByHand(queue: plain)
                }
            ),
            (
                "spread",
                {
                    var filling = filling($0)
                    try await spread(&filling)
                    return try await draining.drain(label: $0)
                }
            ),
            (
                "plain",
                {
                    try await fill($0)
                    return try await draining.drain(label: $0)
                }
            ),
        ])
        await connection.close()
        let share = median(zip(costs[1], costs[2]).map { $0.perSecond / $1.perSecond })
        let promise: Bar =
            switch bar {
            case .time(let most): .atMost(what, most, measured: 1 / share, unit: "×")
            case .rate(let least): .atLeast(what, least, measured: share, unit: "×")
            }
        return invocation.report(
            name, [promise],
            figures: [("jobs", .init(jobs)), ("rounds", .init(costs[0].count))] + figures + [
                ("spread", .array(costs[1].map(\.json))), ("plain", .array(costs[2].map(\.json))),
                ("by_hand", .array(costs[0].map(\.json))),
            ])
    }
}
