package import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadSteady = scenario(
        "steady",
        summary: "Measure latencies and sizes while jobs come at a steady rate",
        discussion: """
            Enqueues jobs at a steady rate from several callers, one call and one transaction each. Each call has an \
            intended time that does not depend on the earlier calls; measures from that time to the start of the \
            job's handler. Watches the sizes of the queue's tables: those for waiting and running jobs must not \
            grow, the others must grow by the same amount for each job. Meanwhile a caller commits a few bytes 50 \
            times a second and does nothing else: no queue can be faster than the slowest of these commits. Use a \
            database of its own on a quiet machine.
            """,
        flags: [
            .count("rate", 1...100_000, 2000, "Jobs a second."),
            .count("minutes", 1...10_080, 10, "How long."),
            .count("seconds", 1...604_800, "How long, instead of --minutes."),
            .count("callers", 1...64, 8, "How many callers enqueue."),
            .count("workers", 1...32, 1, "Worker processes."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load steady", "2,000 a second for ten minutes"),
            Example("millrace load steady --rate 500 --seconds 30", "a short look"),
        ]
    ) { invocation in
        try await SteadyScenario(invocation: invocation).run()
    }
}

private struct SteadyScenario: Sendable {
    let invocation: Invocation

    /// Bare commits a second, the limit.
    private static let commits = 50.0

    private var rate: Int { invocation.count("rate") }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        let workers = try await LoadWorkers.start(
            invocation.count("workers"), invocation,
            arguments: invocation.slotArguments, on: connection)
        let jobs = rate * Int(invocation.span / .seconds(1))
        let starts = try Starts(path: workers.marksPath, jobs: jobs)
        let pacer = try await Pacer.open(
            try invocation.connectionOptions(), callers: invocation.count("callers"))
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let cadence = Cadence(began: PracticeMarks.now() + 500_000_000, perSecond: Double(rate), calls: jobs)
        async let offered = pacer.run(cadence) { number, connection in
            try await connection.execute(
                "select millrace.enqueue('practice.mark', $1, queue => 'load.steady')",
                [.json("{\"n\": \(number)}")])
        }
        async let bare = commit(from: cadence.began)
        let growth = try await watch(cadence, starts: starts, on: connection)
        let outcome = try await offered
        let commits = try await bare
        try await starts.wait(forCount: jobs, atMost: .seconds(30))
        guard starts.count == jobs else {
            throw Failure("only \(starts.count) of \(jobs) jobs were started within half a minute of the last call")
        }
        let costs = Costs(
            jobs: jobs, seconds: invocation.span / .seconds(1), server: try await meter.read() - before,
            workers: workers.usage())
        try await workers.stop()
        await connection.close()
        return report(
            starts, cadence: cadence, growth: growth, outcome: outcome, commits: commits.answered, costs: costs)
    }

    /// The time that the log and its disk take for an almost empty commit.
    private func commit(from began: Int64) async throws -> Pacer.Outcome {
        let cadence = Cadence(
            began: began, perSecond: Self.commits, calls: max(1, Int(invocation.span / .seconds(1) * Self.commits)))
        return try await Pacer.open(try invocation.connectionOptions(), callers: 1).run(cadence) { _, connection in
            try await connection.execute("select pg_logical_emit_message(true, 'millrace', 'a commit')")
        }
    }

    /// Samples until the rate has been offered: every ten seconds, and eight times at least.
    private func watch(_ cadence: Cadence, starts: Starts, on connection: Connection) async throws -> Growth {
        let live = invocation.console.live()
        var tenths = Tenths()
        var growth = Growth()
        let pause = min(.seconds(10), invocation.span / 8)
        while true {
            starts.follow()
            growth.add(
                Growth.Sample(
                    at: max(0, Double(PracticeMarks.now() - cadence.began) / 1e9), jobs: starts.count,
                    sizes: try await TableSizes.read(on: connection)))
            if tenths.pass(starts.count, of: cadence.calls) {
                live.update(["\(Humane.count(starts.count)) of \(Humane.count(cadence.calls))"])
            }
            guard PracticeMarks.now() < cadence.end else { break }
            // The last sample comes right at the end.
            try await Task.sleep(
                for: min(pause, .nanoseconds(max(0, cadence.end - PracticeMarks.now())) + .milliseconds(5)))
        }
        live.update([])
        return growth
    }

    private func report(
        _ starts: Starts, cadence: Cadence, growth: Growth, outcome: Pacer.Outcome, commits: Histogram, costs: Costs
    ) -> ExitCode {
        var whole = Histogram()
        var quarters = [Histogram](repeating: Histogram(), count: 4)
        for n in 0..<cadence.calls {
            guard let time = starts.time(of: n) else { continue }
            let wait = UInt64(max(0, time - cadence.due(n)))
            whole.record(nanoseconds: wait)
            quarters[cadence.part(of: n, parts: 4)].record(nanoseconds: wait)
        }
        let offered = Double(cadence.calls) / (Double(max(outcome.ended, cadence.end) - cadence.began) / 1e9)
        if invocation.console.format == .human {
            invocation.console.print(growth.table)
            invocation.console.print()
        }
        invocation.console.note("intended call → start: \(whole.summary); \(costs.summary)")
        invocation.console.note("a bare commit, by hand: \(commits.summary)")
        return invocation.report(
            "steady",
            [
                .atMost("intended call → start, p99", 50, measured: whole.milliseconds(at: 0.99), unit: "ms"),
                .atLeast("rate that was offered and kept up with", Double(rate) * 0.99, measured: offered, unit: "/s"),
            ] + growth.bars,
            figures: [
                ("rate", .init(rate)), ("jobs", .init(cadence.calls)), ("started", .init(starts.count)),
                ("started_again", .init(starts.again)), ("offered_per_second", .double(offered)),
                ("latency", whole.json), ("quarters", .array(quarters.map(\.json))),
                ("by_hand", commits.json),
                ("p99_ratio", .double(whole.milliseconds(at: 0.99) / commits.milliseconds(at: 0.99))),
                ("enqueue", outcome.answered.json), ("behind", outcome.behind.json), ("costs", costs.json),
                ("samples", growth.json),
            ])
    }
}
