package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    package static let loadLimits = scenario(
        "limits",
        summary: "Measure what limits cost those who use them",
        discussion: """
            A worker process drains the same jobs in turns: without limits, in a queue with a limit that is never \
            reached, and with 32 limit keys whose limits are never reached. The speed of a machine changes from \
            second to second, so the turns are short, each round is compared only with itself, and the medians are \
            printed. Use a database of its own.
            """,
        flags: [
            .count("jobs", 1000...10_000_000, 100_000, "Jobs to drain each time."),
            .count("rounds", 1...99, 15, "How many rounds."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [Example("millrace load limits --rounds 25", "medians of 25")]
    ) { invocation in
        let jobs = invocation.count("jobs")
        let rounds = invocation.count("rounds")
        let connection = try await invocation.connect()
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
        var rates: [[Double]] = [[], [], []]
        _ = try await Queue.setLimit(of: .queue("load.bounded"), to: Limit(concurrency: 1_000_000), on: connection)
        _ = try await Queue.setLimit(of: .key("load.*"), to: Limit(concurrency: 1_000_000), on: connection)
        let ways = [("load.free", []), ("load.bounded", []), ("load.keyed", (0..<32).map { "load.\($0)" })]
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        // The first round does not count: it warms up the worker and its statements.
        for round in 0...rounds {
            // Each way goes first in turn, because what one leaves to be vacuumed slows the next.
            for way in (0..<3).map({ ($0 + round) % 3 }) {
                let (queue, keys) = ways[way]
                let label = "round \(round) of \(rounds), \(queue):"
                let costs = try await draining.turn(of: queue, keys: keys, by: workers, label: label)
                guard round > 0 else { continue }
                rates[way].append(costs.perSecond)
                invocation.console.note("\(label) \(costs.summary)")
            }
        }
        try await workers.stop()
        let leaks = try await Queue.slotsHeld(on: connection)
        await connection.close()
        let medians = rates.map { percentile($0.sorted(), 0.5) }
        let shares = rates.map { way in percentile(zip(way, rates[0]).map { $0 / $1 }.sorted(), 0.5) }
        return invocation.report(
            "limits",
            [
                .atLeast(
                    "with a queue's limit, share of the free drain", 0.9, measured: shares[1],
                    unit: "×"),
                .atLeast("with a limit key for every job", 0.9, measured: shares[2], unit: "×"),
                .atMost("slots held at the end", 0, measured: Double(leaks), unit: ""),
            ],
            figures: [
                ("jobs", .init(jobs)), ("rounds", .init(rounds)), ("free_per_second", .double(medians[0])),
                ("bounded_per_second", .double(medians[1])), ("keyed_per_second", .double(medians[2])),
            ])
    }
}
