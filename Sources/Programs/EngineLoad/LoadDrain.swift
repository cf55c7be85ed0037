package import CommandKit
import LoadKit
import Postgres

extension Command {
    package static let loadDrain = scenario(
        "drain",
        summary: "Measure how fast a worker process works through waiting jobs",
        discussion: """
            Enqueues practice.nothing jobs in bulk and runs a worker process until all have ended, with arguments \
            decoded and history kept; then the same with two worker processes; then a bare C loop of hand-written \
            statements does the same over the same tables, indexes and history. The queue is paused until the \
            workers are up. Prints medians of the rounds. Use a database of its own on a quiet machine.
            """,
        flags: [
            .count("jobs", 1...100_000_000, 500_000, "Jobs to drain each time."),
            .count("rounds", 1...25, 1, "How many rounds."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load drain --rounds 5", "what deploy/bench/results.md quotes"),
            Example("millrace load drain --jobs 1000000", "memory over a million jobs"),
        ]
    ) { invocation in
        try await DrainScenario(invocation: invocation).run()
    }
}

private struct DrainScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let jobs = invocation.count("jobs")
        let connection = try await invocation.connect()
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
        var growth: [Double] = []
        func filled(_ label: String) async throws {
            try await draining.enqueue(queue: "load.drain", label: "\(label) enqueued")
        }
        let costs = try await WaysInTurn(invocation).take([
            (
                "by hand",
                {
                    try await filled($0)
                    return try await draining.drainByHand(queue: "load.drain")
                }
            ),
            (
                "one worker",
                {
                    try await filled($0)
                    var early: Double?
                    var late = 0.0
                    let costs = try await draining.drain("load.drain", label: $0) { done, usage in
                        if done >= jobs / 5, early == nil { early = usage.resident }
                        late = usage.resident
                    }
                    if let early { growth.append(late / early) }
                    return costs
                }
            ),
            (
                "two workers",
                {
                    try await filled($0)
                    return try await draining.drain("load.drain", workers: 2, label: $0)
                }
            ),
        ])
        let (byHand, one, two) = (costs[0], costs[1], costs[2])
        await connection.close()
        let rate = median(one.map(\.perSecond))
        return invocation.report(
            "drain",
            [
                .atLeast("jobs per second, one worker process", 100_000, measured: rate, unit: "/s"),
                .atLeast(
                    "share of the hand-written limit", 0.6,
                    measured: median(zip(one, byHand).map { $0.perSecond / $1.perSecond }), unit: "×"),
                .atLeast(
                    "two worker processes, share of one", 1,
                    measured: median(zip(two, one).map { $0.perSecond / $1.perSecond }), unit: "×"),
                .atMost(
                    "processor time of the worker, per job", 8, measured: median(one.compactMap(\.workerProcessor)),
                    unit: "µs"),
                .atMost(
                    "resident memory at the most", 60,
                    measured: one.compactMap { $0.workers?.mostResident }.max() ?? .nan,
                    unit: "MB"),
                .atMost(
                    "resident memory at the end, share of that at a fifth", 1.1, measured: median(growth), unit: "×"),
            ],
            figures: [
                ("jobs", .init(jobs)), ("rounds", .init(one.count)), ("one_worker", .array(one.map(\.json))),
                ("two_workers", .array(two.map(\.json))), ("by_hand", .array(byHand.map(\.json))),
            ])
    }
}
