import FoundationEssentials
import Jobs
import Postgres
import Queues

extension Command {
    static let loadLimits = Command(
        ["load", "limits"],
        summary: "Measure what limits cost those who use them",
        discussion: """
            Drains the same jobs in turn without limits, in a queue with a limit that is never reached, and with 32 limit keys \
            whose limits are never reached; a worker process. Each round is compared in itself, for a machine's pace changes; \
            prints the medians. Use a database of its own.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1000...10_000_000), environment: .none, fallback: "200000",
                help: "Jobs to drain each time."),
            .single("rounds", "N", .integer(1...25), environment: .none, fallback: "5", help: "How often each."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [Example("millrace load limits --rounds 9", "medians of nine")]
    ) { invocation in
        let jobs = invocation.parsed.integer("jobs") ?? 200_000
        let rounds = invocation.parsed.integer("rounds") ?? 3
        do {
            let connection = try await Connection.open(try invocation.connectionOptions(), name: "load")
            let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
            var rates: [[Double]] = [[], [], []]
            _ = try await Queue.setLimit(of: .queue("load.bounded"), to: Limit(concurrency: 1_000_000), on: connection)
            _ = try await Queue.setLimit(of: .key("load.*"), to: Limit(concurrency: 1_000_000), on: connection)
            let ways = [("load.free", []), ("load.bounded", []), ("load.keyed", (0..<32).map { "load.\($0)" })]
            for round in 1...rounds {
                // Each way goes first in turn: what one leaves to be vacuumed slows the next.
                for way in (0..<3).map({ ($0 + round) % 3 }) {
                    let (queue, keys) = ways[way]
                    try await draining.enqueue(
                        queue: queue, keys: keys, label: "round \(round) of \(rounds), \(queue):")
                    let costs = try await draining.drain(label: "round \(round) of \(rounds), \(queue):")
                    rates[way].append(costs.perSecond)
                    invocation.console.note("round \(round) of \(rounds), \(queue): \(costs.summary)")
                }
            }
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
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}
