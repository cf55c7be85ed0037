package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadWaiting = scenario(
        "waiting",
        summary: "Measure what jobs that wait cost, and how soon they go on",
        discussion: """
            Five parts. claims: how fast other jobs are drained while many wait for a time, a signal or other jobs, and what \
            each of those takes on disk. late: how late jobs go on that are due in one minute. signal: from the call of signal to \
            the job, one at a time; with --pooler through that transaction pooler, without notifications unless --direct-url is \
            given. cross: callers send signals, some of them twice, and enqueue jobs that wait for them, in random order, while \
            workers are killed and Postgres crashes (one of its own); the handlers write down what they took, and each signal must \
            have been taken by one job. undo: orders of five charges, a third of them refused in the end, while workers are killed \
            and operators cancel, retry, delete, replace and move them in every way that there is, and promote builds; the bank's book \
            is judged: a delivered order is paid once, and of another nothing is kept.
            """,
        flags: [
            .repeated(
                "part", "PART", .choice(["claims", "late", "signal", "cross", "undo"]), environment: .none,
                help: "Only this part."),
            .count("waiters", 1000...20_000_000, 1_000_000, "Jobs that wait while others are drained."),
            .count("due", 1...1_000_000, 100_000, "Jobs that are due in one minute."),
            .count("pairs", 1...1_000_000, 20_000, "Signals, and jobs that wait for them."),
            .count("restarts", 0...1000, 2, "How often Postgres crashes while signals cross with waits."),
            .single("pooler", "URL", environment: .none, help: "Where a transaction pooler for the database is."),
            .count("orders", 10...100_000, 500, "Orders, a third of which are refused in the end."),
            .count("kills", 1...100_000, 200, "Workers that are killed while operators act on orders."),
            .count("tries", 1...10_000, 200, "Signals to time."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load waiting", "all of it"),
            Example("millrace load waiting --part cross --pairs 1000000 --restarts 10", "most of an hour"),
            Example("millrace load waiting --part claims --waiters 10000000", "some 10 GB of disk"),
        ]
    ) { invocation in
        try await WaitingScenario(invocation: invocation).run()
    }
}

private struct WaitingScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let chosen = invocation.parsed.list("part")
        let connection = try await invocation.connect()
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = []
        for part in ["signal", "late", "cross", "undo", "claims"] where chosen.isEmpty || chosen.contains(part) {
            invocation.console.note("part \(part)")
            let (more, found) =
                switch part {
                case "signal": try await signals(on: connection)
                case "late": try await late(on: connection)
                case "undo": try await UndoneOrders(invocation: invocation).run(on: connection)
                case "cross": try await CrossingSignals(invocation: invocation).run()
                default: try await claims(on: connection)
                }
            bars += more
            figures += found
        }
        await connection.close()
        return invocation.report("waiting", bars, figures: figures)
    }

    /// One signal after the other, each to a job that waits while the worker is idle.
    private func signals(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        let tries = invocation.count("tries")
        let pooler = invocation.parsed.string("pooler")
        let workers = try await LoadWorkers.start(
            1, invocation, environment: pooler.map { ["DATABASE_URL": $0] } ?? [:], on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: tries)
        try await connection.execute(
            """
            select count(millrace.enqueue('practice.wait', jsonb_build_object('n', n, 'name', 'go', 'key', n::text)))
              from generate_series(0, $1 - 1) n
            """, [.int4(Int32(tries))])
        while try await connection.int("select count(*) from millrace.wait") < tries {
            try await Task.sleep(for: .milliseconds(20))
        }
        let sender = try await Connection.open(
            try pooler.map { invocation.options(at: $0) } ?? invocation.connectionOptions(), name: "sender")
        // One that polls may look at any time of its second.
        let pauses = 200.0...(pooler == nil ? 320 : 1200)
        var found = Histogram()
        for n in 0..<tries {
            try await Task.sleep(for: .milliseconds(.random(in: pauses)))
            let before = PracticeMarks.now()
            _ = try await Queue.signal("go", key: "\(n)", payload: Array("\(n)".utf8), on: sender)
            guard let time = try await starts.wait(for: n, atMost: .seconds(30)) else {
                throw Failure("a job did not go on within 30 seconds of its signal")
            }
            found.record(nanoseconds: UInt64(max(0, time - before)))
        }
        await sender.close()
        try await workers.stop()
        invocation.console.note("call of signal → the job goes on: \(found.summary)")
        if pooler != nil {
            let p99 = found.milliseconds(at: 0.99)
            return (
                [.atMost("signal → goes on through the pooler, p99", 1000, measured: p99, unit: "ms")],
                [("signal_pooled", found.json)]
            )
        }
        return (
            [
                .atMost("signal → goes on, median", 5, measured: found.milliseconds(at: 0.5), unit: "ms"),
                .atMost("signal → goes on, p99", 50, measured: found.milliseconds(at: 0.99), unit: "ms"),
            ], [("signal", found.json)]
        )
    }

    /// They wait already when the worker starts.
    private func late(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        let jobs = invocation.count("due")
        let filling = WaiterFilling(invocation: invocation, connection: connection)
        let clock = try await DatabaseClock(on: connection)
        let first = clock.microseconds(PracticeMarks.now()) + 5_000_000 + Int64(jobs) * 120
        try await filling.due(jobs, first: first, seconds: 60)
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: jobs)
        let cadence = Cadence(began: clock.monotonic(first), perSecond: Double(jobs) / 60, calls: jobs)
        guard cadence.began > PracticeMarks.now() else {
            throw Failure("making the jobs took longer than expected", hint: "use fewer with --due")
        }
        let limit = Duration.nanoseconds(max(0, cadence.end - PracticeMarks.now())) + .seconds(60)
        try await starts.wait(forCount: jobs, atMost: limit)
        guard starts.count == jobs else {
            throw Failure("only \(starts.count) of \(jobs) jobs went on within a minute of the last one's time")
        }
        try await workers.stop()
        var found = Histogram()
        for n in 0..<jobs {
            guard let time = starts.time(of: n) else { continue }
            found.record(nanoseconds: UInt64(max(0, time - cadence.due(n))))
        }
        invocation.console.note("due → the job goes on: \(found.summary)")
        return (
            [
                .atMost("due → goes on, median", 20, measured: found.milliseconds(at: 0.5), unit: "ms"),
                .atMost("due → goes on, p99", 200, measured: found.milliseconds(at: 0.99), unit: "ms"),
            ], [("late", found.json)]
        )
    }

    /// Drains before and after the waiters are there, three times each.
    private func claims(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        let waiters = invocation.count("waiters")
        let draining = Draining(invocation: invocation, connection: connection, jobs: 200_000)
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        func turns(_ label: String) async throws -> (rate: Double, memory: Double) {
            var rates: [Double] = []
            for turn in 1...4 {
                let costs = try await draining.turn(of: "load.others", by: workers, label: "\(label), turn \(turn)")
                if turn > 1 { rates.append(costs.perSecond) }  // the first warms up
            }
            return (rates.sorted()[1], workers.usage().mostResident)
        }
        let alone = try await turns("none wait")
        let filling = WaiterFilling(invocation: invocation, connection: connection)
        let bytes = try await filling.waiters(waiters)
        let beside = try await turns("\(Humane.count(waiters)) wait")
        try await workers.stop()
        invocation.console.note(
            "drain \(Humane.count(Int(alone.rate)))/s alone, \(Humane.count(Int(beside.rate)))/s beside \(Humane.count(waiters)) that wait; "
                + "\(Humane.decimal(bytes, places: 0)) bytes for each; worker \(Humane.decimal(alone.memory, places: 0)) and \(Humane.decimal(beside.memory, places: 0)) MB"
        )
        return (
            [
                .atLeast("drain beside waiters ÷ alone", 0.95, measured: beside.rate / alone.rate, unit: "x"),
                .atMost(
                    "a worker's memory beside waiters ÷ alone", 1.1, measured: beside.memory / alone.memory,
                    unit: "x"),
            ],
            [
                ("waiters", .init(waiters)), ("alone_per_second", .double(alone.rate)),
                ("beside_per_second", .double(beside.rate)), ("bytes_per_waiter", .double(bytes)),
                ("worker_mb", .double(beside.memory)),
            ]
        )
    }
}
