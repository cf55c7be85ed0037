package import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Workers

extension Command {
    package static let loadLatency = scenario(
        "latency",
        summary: "Measure how soon an idle worker starts a job",
        discussion: """
            Runs a worker process and enqueues jobs one at a time, each after the worker has gone to sleep. Measures \
            from the call of enqueue to the start of the handler; with --hold, from the commit of a transaction that \
            stayed open that long after the call. The worker polls at most once a second, so a lost wake-up shows as \
            a wait of hundreds of milliseconds. The same run shows what hand-written statements allow: an insert \
            with a notification, and a listening C loop that claims. With --pooler, the enqueues and the worker's \
            statements go through that transaction pooler; what needs a session goes to --direct-url, or the worker \
            polls, or hears by a waker (MILLRACE_WAKER). Use an empty database of its own on a quiet machine.
            """,
        flags: [
            .count("tries", 1...1_000_000, 200, "Jobs to enqueue."),
            .single(
                "hold", "DURATION", .duration(.zero ... .seconds(600)), environment: .none, fallback: "0s",
                help: "How long the transaction stays open after the call."),
            .count("callers", 1...200, 1, "Transactions open at the same time."),
            .single("pooler", "URL", environment: .none, help: "Where a transaction pooler for the database is."),
            .count("workers", 1...200, 1, "Worker processes."),
            Setting.poll.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load latency", "idle pick-up"),
            Example("millrace load latency --hold 2s --tries 1000 --callers 50", "transactions that commit late"),
            Example(
                "millrace load latency --pooler 'host=/run/pgbouncer port=6432 dbname=bench'", "without notifications"),
        ]
    ) { invocation in
        try await LatencyScenario(invocation: invocation).run()
    }
}

private struct LatencyScenario: Sendable {
    let invocation: Invocation

    static let queue = "load.latency"

    private var tries: Int { invocation.count("tries") }
    private var callers: Int { min(invocation.count("callers"), tries) }
    private var workers: Int { invocation.count("workers") }
    private var isWoken: Bool { invocation.settings.text(.waker) != nil }
    private var hold: Duration { invocation.parsed.duration("hold") ?? .zero }
    private var pooler: String? { invocation.parsed.string("pooler") }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        let real = try await measure(on: connection)
        // The limit is that of single calls, committed at once.
        let byHand = hold == .zero && callers == 1 ? try await handWritten(on: connection) : nil
        await connection.close()
        var figures: [(String, JSONValue)] = [
            ("tries", .init(tries)), ("workers", .init(workers)), ("hold_s", .double(hold / .seconds(1))),
            ("pooled", .bool(pooler != nil)),
            ("p50_ms", .double(real.milliseconds(at: 0.5))), ("p99_ms", .double(real.milliseconds(at: 0.99))),
            ("max_ms", .double(real.mostMilliseconds)),
        ]
        invocation.console.note("call of enqueue → start: \(real.summary)")
        if let byHand {
            invocation.console.note("insert and notify → claimed, by hand: \(byHand.summary)")
            figures.append(("by_hand", byHand.json))
            figures.append(("p50_ratio", .double(real.milliseconds(at: 0.5) / byHand.milliseconds(at: 0.5))))
        }
        return invocation.report("latency", bars(real), figures: figures)
    }

    private func bars(_ real: Histogram) -> [Bar] {
        let p99 = real.milliseconds(at: 0.99)
        if pooler != nil, isWoken {
            return [
                .atMost(
                    "through the pooler, by the waker, p50", 10, measured: real.milliseconds(at: 0.5), unit: "ms"),
                .atMost("through the pooler, by the waker, p99", 50, measured: p99, unit: "ms"),
            ]
        }
        if pooler != nil {
            let poll = invocation.settings.poll / .milliseconds(1)
            return [
                .atMost("through the pooler, p99 (the poll interval and 20 ms)", poll + 20, measured: p99, unit: "ms")
            ]
        }
        let slowest = Bar.atMost(
            "the slowest (a lost wake-up waits for the poll)", 400, measured: real.mostMilliseconds, unit: "ms")
        let p50 = real.milliseconds(at: 0.5)
        guard hold == .zero, callers == 1 else {
            let what = hold > .zero ? "commit → start, median" : "call of enqueue → start, median"
            return [.atMost(what, 50, measured: p50, unit: "ms"), slowest]
        }
        return [
            .atMost("call of enqueue → start, median", 1.5, measured: p50, unit: "ms"),
            .atMost("call of enqueue → start, p99", 5, measured: p99, unit: "ms"), slowest,
        ]
    }

    private func measure(on connection: Connection) async throws -> Histogram {
        let options = try pooler.map { invocation.options(at: $0) } ?? invocation.connectionOptions()
        let workers = try await LoadWorkers.start(
            workers, invocation, arguments: ["--poll", DurationText.spell(invocation.settings.poll)],
            environment: pooler.map { ["DATABASE_URL": $0] } ?? [:], on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: tries + 1)
        // The queue and the way to it are known before the first is timed.
        try await Self.enqueue(tries, on: connection)
        guard try await starts.wait(for: tries, atMost: .seconds(30)) != nil else {
            throw Failure("the worker did not start a job within 30 seconds")
        }
        let measured = try await calls(options: options, starts: starts)
        try await workers.stop()
        return measured
    }

    private func calls(options: ConnectionOptions, starts: Starts) async throws -> Histogram {
        let live = invocation.console.live()
        let next = Counter()
        let (tries, callers, hold) = (tries, callers, hold)
        // A worker that polls was last awake when it took the job before: the next comes at any time of its sleep.
        let pauses = 60.0...140 + (pooler == nil ? 0 : invocation.settings.poll / .milliseconds(1))
        return try await withThrowingTaskGroup(of: Histogram.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    let connection = try await Connection.open(options, name: "load-\(caller)")
                    // Spread over the time one try takes, so that the callers do not move in step.
                    try await Task.sleep(for: (hold + .milliseconds(100)) * (Double(caller) / Double(callers)))
                    var found = Histogram()
                    while let n = next.take(below: tries) {
                        try await Task.sleep(for: .milliseconds(.random(in: pauses)))
                        found.record(nanoseconds: try await Self.one(n, on: connection, hold: hold, starts: starts))
                        if next.passes(n + 1, of: tries) { live.update(["\(n + 1) of \(tries)"]) }
                    }
                    await connection.close()
                    return found
                }
            }
            var all = Histogram()
            for try await part in group { all.merge(part) }
            live.update([])
            return all
        }
    }

    private final class Counter: Sendable {
        private let next = Mutex(0)
        private let tenths = Mutex(Tenths())

        func passes(_ done: Int, of all: Int) -> Bool { tenths.withLock { $0.pass(done, of: all) } }

        func take(below end: Int) -> Int? {
            next.withLock { next in
                guard next < end else { return nil }
                defer { next += 1 }
                return next
            }
        }
    }

    private static func enqueue(_ n: Int, on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.enqueue('practice.mark', $1, queue => $2)", [.json("{\"n\": \(n)}"), .text(queue)])
    }

    /// Nanoseconds.
    private static func one(
        _ n: Int, on connection: Connection, hold: Duration, starts: Starts
    ) async throws -> UInt64 {
        let began: Int64
        if hold > .zero {
            try await connection.execute("begin")
            try await enqueue(n, on: connection)
            try await Task.sleep(for: hold)
            began = PracticeMarks.now()
            try await connection.execute("commit")
        } else {
            began = PracticeMarks.now()
            try await enqueue(n, on: connection)
        }
        guard let start = try await starts.wait(for: n, atMost: .seconds(30)) else {
            throw Failure("job \(n) was not started within 30 seconds")
        }
        return UInt64(max(0, start - began))
    }

    private func handWritten(on connection: Connection) async throws -> Histogram {
        var line = try await Yardstick.line(queue: Self.queue, kind: "practice.mark", on: connection)
        line.lane = Lane(queue: line.queue, priority: 4, line: .normal).code
        var histogram = Histogram()
        for milliseconds in try await Yardstick(invocation).wake(line, tries: tries, on: connection) {
            histogram.record(.milliseconds(milliseconds))
        }
        return histogram
    }
}
