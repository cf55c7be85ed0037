package import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadScheduled = scenario(
        "scheduled",
        summary: "Measure how punctually scheduled jobs start",
        discussion: """
            Enqueues jobs that come due evenly over a while, runs a worker process, and measures from each job's due \
            time on the database's clock to the start of its handler. No job may start before its time. Use a \
            database of its own on a quiet machine.
            """,
        flags: [
            .count("jobs", 1...10_000_000, 100_000, "Jobs that come due."),
            .count("seconds", 1...86_400, 60, "Over how long they come due."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load scheduled", "100,000 jobs due over a minute"),
            Example(
                "millrace load scheduled --jobs 1000 --seconds 100", "ten a second: the worker sleeps between them"),
        ]
    ) { invocation in
        try await ScheduledScenario(invocation: invocation).run()
    }
}

private struct ScheduledScenario: Sendable {
    let invocation: Invocation

    private var jobs: Int { invocation.count("jobs") }
    private var seconds: Int { invocation.count("seconds") }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: jobs)
        let clock = try await DatabaseClock(on: connection)
        // Time to enqueue them all before the first is due.
        let first = clock.microseconds(PracticeMarks.now()) + 2_000_000 + Int64(jobs) * 250
        let cadence = Cadence(
            began: clock.monotonic(first), perSecond: Double(jobs) / Double(seconds), calls: jobs)
        try await enqueue(first: first, on: connection)
        let spare = cadence.began - PracticeMarks.now()
        guard spare > 0 else {
            throw Failure(
                "enqueuing took \(Humane.duration(.nanoseconds(-spare))) longer than expected, and the first jobs were due before",
                hint: "use fewer --jobs, or a quieter machine")
        }
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let used = workers.usage().processor
        try await follow(starts, cadence: cadence)
        guard starts.count == jobs else {
            throw Failure(
                "only \(starts.count) of \(jobs) jobs were started within a minute of the last one's time")
        }
        let later = try await DatabaseClock(on: connection)
        var usage = workers.usage()
        usage.processor -= used
        let costs = Costs(
            jobs: jobs, seconds: Double(seconds), server: try await meter.read() - before, workers: usage)
        try await workers.stop()
        await connection.close()
        return report(starts, cadence: cadence, clock: clock, later: later, costs: costs)
    }

    private func enqueue(first: Int64, on connection: Connection) async throws {
        let live = invocation.console.live()
        var tenths = Tenths()
        var n = 0
        while n < jobs {
            let chunk = min(5000, jobs - n)
            try await connection.execute(
                """
                select count(millrace.enqueue('practice.mark', jsonb_build_object('n', n), queue => 'load.scheduled',
                    run_at => to_timestamp(0) + make_interval(secs => $1::float8) + make_interval(secs => n * $2::float8)))
                  from generate_series($3::int, $4::int) n
                """,
                [
                    .float8(Double(first) / 1e6), .float8(Double(seconds) / Double(jobs)), .int4(Int32(n)),
                    .int4(Int32(n + chunk - 1)),
                ], deadline: .seconds(300))
            n += chunk
            if tenths.pass(n, of: jobs) { live.update(["enqueued \(Humane.count(n)) of \(Humane.count(jobs))"]) }
        }
        live.update([])
    }

    private func follow(_ starts: Starts, cadence: Cadence) async throws {
        let live = invocation.console.live()
        var tenths = Tenths()
        let limit = Duration.nanoseconds(max(0, cadence.end - PracticeMarks.now())) + .seconds(60)
        try await starts.wait(forCount: jobs, atMost: limit) { count in
            if tenths.pass(count, of: jobs) { live.update(["started \(Humane.count(count)) of \(Humane.count(jobs))"]) }
        }
        live.update([])
    }

    private func report(
        _ starts: Starts, cadence: Cadence, clock: DatabaseClock, later: DatabaseClock, costs: Costs
    ) -> ExitCode {
        // The two clocks may have drifted apart meanwhile; dates are whole microseconds.
        let unsure = max(clock.error, later.error) + abs(clock.offset - later.offset) * 1000 + 1000
        var late = Histogram()
        var early = 0
        var earliest = Int64.max
        for n in 0..<jobs {
            guard let time = starts.time(of: n) else { continue }
            let distance = time - cadence.due(n)
            earliest = min(earliest, distance)
            if distance < -unsure { early += 1 }
            late.record(nanoseconds: UInt64(max(0, distance)))
        }
        invocation.console.note("due → start: \(late.summary); \(costs.summary)")
        return invocation.report(
            "scheduled",
            [
                .atMost("due → start, median", 10, measured: late.milliseconds(at: 0.5), unit: "ms"),
                .atMost("due → start, p99", 100, measured: late.milliseconds(at: 0.99), unit: "ms"),
                .atMost("started before their time", 0, measured: Double(early), unit: "jobs"),
                .atMost("started more than once", 0, measured: Double(starts.again), unit: "jobs"),
            ],
            figures: [
                ("jobs", .init(jobs)), ("seconds", .init(seconds)), ("started", .init(starts.count)),
                ("p50_ms", .double(late.milliseconds(at: 0.5))), ("p99_ms", .double(late.milliseconds(at: 0.99))),
                ("max_ms", .double(late.mostMilliseconds)), ("earliest_ms", .double(Double(earliest) / 1e6)),
                ("clock_unsure_ms", .double(Double(unsure) / 1e6)), ("costs", costs.json),
            ])
    }
}
