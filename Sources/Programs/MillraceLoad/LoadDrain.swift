import CommandKit
import Postgres

extension Command {
    static let loadDrain = Command(
        ["load", "drain"],
        summary: "Measure how fast a worker process works through waiting jobs",
        discussion: """
            Enqueues practice.nothing jobs in bulk and runs a worker process until all have ended, with arguments \
            decoded and history kept; then the same with two worker processes; then a bare C loop of hand-written \
            statements does the same over the same tables, indexes and history. The queue is paused until the \
            workers are up. Prints medians of the rounds. Use a database of its own on a quiet machine.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1...100_000_000), environment: .none, fallback: "500000",
                help: "Jobs to drain each time."),
            .single("rounds", "N", .integer(1...25), environment: .none, fallback: "1", help: "How many rounds."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load drain --rounds 5", "what deploy/bench/results.md quotes"),
            Example("millrace load drain --jobs 1000000", "memory over a million jobs"),
        ]
    ) { invocation in
        do {
            return try await DrainScenario(invocation: invocation).run()
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

private struct DrainScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let jobs = invocation.parsed.integer("jobs") ?? 500_000
        let rounds = invocation.parsed.integer("rounds") ?? 1
        let connection = try await Connection.open(try invocation.connectionOptions(), name: "load")
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
        var one: [Costs] = []
        var two: [Costs] = []
        var byHand: [Costs] = []
        var growth: [Double] = []
        for round in 1...rounds {
            // Each way goes first in turn, because what one leaves to be vacuumed slows the next.
            for way in (0..<3).map({ ($0 + round) % 3 }) {
                let label = "round \(round) of \(rounds), \(["by hand", "one worker", "two workers"][way]):"
                try await draining.enqueue(queue: "load.drain", label: "\(label) enqueued")
                switch way {
                case 0: byHand.append(try await draining.drainByHand(queue: "load.drain"))
                case 1:
                    var early: Double?
                    var late = 0.0
                    one.append(
                        try await draining.drain("load.drain", label: label) { done, usage in
                            if done >= jobs / 5, early == nil { early = usage.resident }
                            late = usage.resident
                        })
                    if let early { growth.append(late / early) }
                default: two.append(try await draining.drain("load.drain", workers: 2, label: label))
                }
                invocation.console.note("\(label) \(((way == 0 ? byHand : way == 1 ? one : two).last?.summary) ?? "")")
            }
        }
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
                ("jobs", .init(jobs)), ("rounds", .init(rounds)), ("one_worker", .array(one.map(\.json))),
                ("two_workers", .array(two.map(\.json))), ("by_hand", .array(byHand.map(\.json))),
            ])
    }
}
