package import CommandKit
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadPinned = scenario(
        "pinned",
        summary: "Measure whether a transaction that is held open slows the queue",
        discussion: """
            Holds a repeatable-read transaction with a snapshot open, so that no dead row can be cleaned up, while \
            jobs of mixed kinds come at a steady rate: plain, scheduled, failing once, with limit keys, with unique \
            keys whose holder is replaced. They come fifty to a call, because single calls at such a rate would need \
            more than two cores. Shows whether the rate is kept, whether latencies grow, and how many rows claims \
            walk over. With --late, a transaction inserts a job and commits long after, while many others pass: \
            measures how soon that job then starts. Use a database of its own on a quiet machine.
            """,
        flags: [
            .count("rate", 10...1_000_000, 5000, "Jobs a second."),
            .count("minutes", 1...10_080, 20, "How long."),
            .count("seconds", 1...604_800, "How long, instead of --minutes."),
            .count("tens", 1...100, 5, "Jobs in each call, in tens."),
            .count("callers", 1...64, 4, "How many callers enqueue."),
            .toggle("free", environment: .none, help: "Hold no transaction open, for comparison."),
            .toggle("late", environment: .none, help: "Instead, measure a job that commits late."),
            .single(
                "hold", "DURATION", .duration(.seconds(1) ... .seconds(86_400)), environment: .none, fallback: "5m",
                help: "With --late: how long before it commits."),
            .count("jobs", 100...100_000_000, 1_000_000, "With --late: how many jobs pass meanwhile."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load pinned", "20 minutes at 5,000 a second"),
            Example("millrace load pinned --rate 1000 --seconds 60", "a short look"),
            Example("millrace load pinned --late", "a job that commits five minutes late, while a million pass"),
        ]
    ) { invocation in
        invocation.parsed.isOn("late")
            ? try await LateScenario(invocation: invocation).run()
            : try await PinnedScenario(invocation: invocation).run()
    }
}

private struct PinnedScenario: Sendable {
    let invocation: Invocation

    struct Sample: Sendable {
        var at: Double
        var started: Int
        var dead: Int
        var hotBytes: Int
        var walk: WalkMeter.Reading
    }

    /// From the last call to the last end that counts: the scheduled come two seconds after their call.
    static let grace = Duration.seconds(3)

    private var rate: Int { invocation.count("rate") }
    private var tens: Int { invocation.count("tens") }
    private var perCall: Int { tens * MixedJobs.perTen }
    private var endsPerCall: Int { tens * MixedJobs.endsPerTen }
    private var isPinned: Bool { !invocation.parsed.isOn("free") }

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        let walks = try await WalkMeter(on: connection)
        _ = try await Queue.setLimit(
            of: .key("\(MixedJobs.limitKey).*"), to: Limit(concurrency: 1000), on: connection)
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments,
            environment: walks.environment(invocation.environment), on: connection)
        let pin = isPinned ? try await Pin(options) : nil
        let since = try await connection.query("select millrace.now()::text") { row throws(PostgresError) in
            try row.string(0)
        }.first
        let calls = max(1, rate * Int(invocation.span / .seconds(1)) / perCall)
        let starts = try Starts(path: workers.marksPath, jobs: calls * perCall)
        let clock = try await DatabaseClock(on: connection)
        let pacer = try await Pacer.open(options, callers: invocation.count("callers"))
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let cadence = Cadence(
            began: PracticeMarks.now() + 500_000_000, perSecond: Double(rate) / Double(perCall), calls: calls)
        async let offered = pacer.run(cadence) { call, connection in
            let jobs = MixedJobs.json(
                tens: call * tens..<(call + 1) * tens, microseconds: clock.microseconds(cadence.due(call)))
            try await connection.execute("select count(*) from millrace.enqueue_many($1)", [.json(jobs)])
        }
        let samples = try await watch(cadence, starts: starts, walks: walks, on: connection)
        let outcome = try await offered
        // Jobs that are not done by then did not keep up with the rate.
        let left = Duration.nanoseconds(max(0, cadence.end - PracticeMarks.now())) + Self.grace
        try await starts.wait(forCount: calls * (endsPerCall - tens), atMost: left)
        let intime = starts.count
        try await pin?.release()
        let retried = try await succeeded("practice.fail", since: since ?? "now", on: connection)
        let costs = Costs(
            jobs: calls * endsPerCall, seconds: invocation.span / .seconds(1),
            server: try await meter.read() - before, workers: workers.usage())
        try await workers.stop()
        await connection.close()
        return report(
            starts, intime: intime + retried, cadence: cadence, samples: samples, outcome: outcome, costs: costs)
    }

    private func succeeded(_ kind: String, since: String, on connection: Connection) async throws(PostgresError) -> Int
    {
        try await connection.int(
            """
            select count(*) from millrace.history h join millrace.kind k on k.id = h.kind
             where h.started >= $1::text::timestamptz and k.name = $2 and h.outcome = 1
            """, [.text(since), .text(kind)], deadline: .seconds(300)
        )
    }

    private func watch(
        _ cadence: Cadence, starts: Starts, walks: WalkMeter, on connection: Connection
    ) async throws -> [Sample] {
        let live = invocation.console.live()
        var tenths = Tenths()
        var samples: [Sample] = []
        let pause = min(.seconds(10), invocation.span / 8)
        let expected = cadence.calls * (endsPerCall - tens)
        while true {
            starts.follow()
            let sizes = try await TableSizes.read(on: connection)
            let sample = Sample(
                at: max(0, Double(PracticeMarks.now() - cadence.began) / 1e9), started: starts.count,
                dead: sizes.hotDead,
                hotBytes: sizes.hotBytes, walk: try await walks.read())
            samples.append(sample)
            if tenths.pass(sample.started, of: expected) {
                live.update([
                    "\(Humane.count(sample.started)) of \(Humane.count(expected)), \(Humane.count(sample.dead)) dead rows"
                ])
            }
            guard PracticeMarks.now() < cadence.end else { break }
            try await Task.sleep(
                for: min(pause, .nanoseconds(max(0, cadence.end - PracticeMarks.now())) + .milliseconds(5)))
        }
        live.update([])
        return samples
    }

    private func report(
        _ starts: Starts, intime: Int, cadence: Cadence, samples: [Sample], outcome: Pacer.Outcome, costs: Costs
    ) -> ExitCode {
        var quarters = [Histogram](repeating: Histogram(), count: 4)
        var sorts: [MixedJobs.Sort: [Histogram]] = [:]
        for call in 0..<cadence.calls {
            let quarter = cadence.part(of: call, parts: 4)
            for place in 0..<perCall where MixedJobs.marks(place % MixedJobs.perTen) {
                let sort = MixedJobs.sort(of: place % MixedJobs.perTen)
                guard let time = starts.time(of: call * perCall + place) else { continue }
                let wait = UInt64(max(0, time - cadence.due(call) - MixedJobs.delay(sort) * 1000))
                quarters[quarter].record(nanoseconds: wait)
                sorts[sort, default: .init(repeating: Histogram(), count: 4)][quarter].record(nanoseconds: wait)
            }
        }
        if invocation.console.format == .human {
            invocation.console.print(Self.table(samples))
            invocation.console.print()
        }
        for sort in MixedJobs.Sort.allCases {
            guard let parts = sorts[sort] else { continue }
            invocation.console.note("\(sort.rawValue), first quarter: \(parts[0].summary); last: \(parts[3].summary)")
        }
        invocation.console.note(costs.summary)
        let walks = Self.quarterWalks(samples)
        let share = Double(intime) / Double(cadence.calls * endsPerCall)
        var bars: [Bar] = [
            .atLeast(
                "share of the jobs done within \(Humane.duration(Self.grace)) of the last call", 0.99, measured: share,
                unit: "×"),
            .atMost(
                "p99 of the last quarter, share of the first (\(Humane.decimal(quarters[0].milliseconds(at: 0.99), places: 1)) ms)",
                1.5, measured: quarters[3].milliseconds(at: 0.99) / quarters[0].milliseconds(at: 0.99), unit: "×"),
        ]
        if let first = walks.first, let last = walks.last, first.mean("claim", "claim_limited").isFinite {
            bars.append(
                .atMost(
                    "mean claim of the last quarter, share of the first (\(Humane.decimal(first.mean("claim", "claim_limited"), places: 2)) ms)",
                    1.5, measured: last.mean("claim", "claim_limited") / first.mean("claim", "claim_limited"), unit: "×"
                ))
        }
        return invocation.report(
            "pinned", bars,
            figures: [
                ("rate", .init(rate)), ("per_call", .init(perCall)), ("pinned", .bool(isPinned)),
                ("calls", .init(cadence.calls)),
                ("jobs", .init(cadence.calls * perCall)),
                ("done_in_time", .init(intime)), ("share_done", .double(share)), ("started_again", .init(starts.again)),
                ("quarters", .array(quarters.map(\.json))),
                (
                    "sorts",
                    .object(
                        MixedJobs.Sort.allCases.compactMap { sort in
                            sorts[sort].map { .init(key: sort.rawValue, value: .array($0.map(\.json))) }
                        })
                ),
                ("walks", .array(walks.map(\.json))), ("enqueue", outcome.answered.json),
                ("behind", outcome.behind.json), ("dead_rows_at_end", .init(samples.last?.dead ?? 0)),
                ("costs", costs.json),
            ])
    }

    /// How far claims walked in each quarter.
    private static func quarterWalks(_ samples: [Sample]) -> [WalkMeter.Reading] {
        guard samples.count > 4 else { return [] }
        return (0..<4).map { quarter in
            samples[(quarter + 1) * (samples.count - 1) / 4].walk - samples[quarter * (samples.count - 1) / 4].walk
        }
    }

    private static func table(_ samples: [Sample]) -> Table {
        var table = Table([
            .init("after", .trailing), .init("started", .trailing), .init("dead rows", .trailing),
            .init("hot", .trailing),
            .init("claim", .trailing), .init("promote", .trailing), .init("full look", .trailing),
            .init("read per job", .trailing), .init("per timer", .trailing),
        ])
        func milliseconds(_ value: Double) -> Table.Cell {
            .init(value.isFinite ? "\(Humane.decimal(value, places: 2)) ms" : "")
        }
        func number(_ value: Double) -> Table.Cell { .init(value.isFinite ? Humane.decimal(value, places: 1) : "") }
        let step = max(1, (samples.count + 11) / 12)
        var before = samples.first
        for (index, sample) in samples.enumerated()
        where index > 0 && (index % step == 0 || index == samples.count - 1) {
            guard let last = before else { continue }
            let walk = sample.walk - last.walk
            table.add(
                [
                    Humane.duration(.milliseconds(Int(sample.at * 1000))), Humane.count(sample.started),
                    Humane.count(sample.dead), Humane.bytes(sample.hotBytes),
                ].map { .init($0) } + [
                    milliseconds(walk.mean("claim", "claim_limited")), milliseconds(walk.mean("promote")),
                    milliseconds(walk.mean("lanes")), number(walk.readyPerJob), number(walk.timerPerJob),
                ])
            before = sample
        }
        return table
    }
}
