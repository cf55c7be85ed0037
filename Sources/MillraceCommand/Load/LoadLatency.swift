import FoundationEssentials
import Jobs
import Postgres
import Queues
import Synchronization
import Telemetry
import Workers

extension Command {
    static let loadLatency = Command(
        ["load", "latency"],
        summary: "Measure how soon an idle worker starts a job",
        discussion: """
            Runs a worker in this process and enqueues jobs one at a time, each once the worker has gone to sleep; measures from \
            the call of enqueue (or, with --hold, from the commit of a transaction that stayed open so long after the call) to \
            the start of the handler. Nobody polls more often than once a second, so a wake-up that was lost shows as a \
            wait of hundreds of milliseconds. Use an empty database of its own on a quiet machine.
            """,
        flags: [
            .single(
                "tries", "N", .integer(1...1_000_000), environment: .none, fallback: "200", help: "Jobs to enqueue."),
            .single(
                "hold", "DURATION", .duration(.zero ... .seconds(600)), environment: .none, fallback: "0s",
                help: "Keep the transaction open so long after the call."),
            .single(
                "callers", "N", .integer(1...200), environment: .none, fallback: "1",
                help: "Transactions open at the same time."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load latency", "idle pick-up"),
            Example("millrace load latency --hold 2s --tries 1000 --callers 50", "transactions that commit late"),
        ]
    ) { invocation in try await LatencyScenario(invocation: invocation).run() }
}

/// Starts of handlers, by the number that each job carries.
private final class Starts: Sendable {
    private let times = Mutex<[Int: ContinuousClock.Instant]>([:])

    func note(_ n: Int) {
        let now = ContinuousClock.now
        times.withLock { $0[n] = $0[n] ?? now }
    }

    private let counter = Mutex(0)

    func next() -> Int {
        counter.withLock { counter in
            defer { counter += 1 }
            return counter
        }
    }

    func time(of n: Int) -> ContinuousClock.Instant? { times.withLock { $0[n] } }
}

private struct LatencyScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let parsed = invocation.parsed
        let tries = parsed.integer("tries") ?? 200
        let callers = min(parsed.integer("callers") ?? 1, tries)
        let hold = parsed.duration("hold") ?? .zero
        let options = try invocation.connectionOptions()
        let starts = Starts()
        var workerOptions = Worker.Options(database: options, name: "load")
        workerOptions.direct = invocation.directOptions
        let decoder = JSONDecoder()
        let worker = Worker(
            options: workerOptions,
            handlers: [
                Handler(kind: "load.mark") { args, _ in
                    starts.note(try decoder.decode([String: Int].self, from: Data(args))["n"] ?? -1)
                    return .done
                }
            ], log: .standardError(threshold: .warning))
        let running = Task { try await worker.run() }  // awaited at the end
        await worker.hasStarted()
        do {
            let figures = try await measure(
                tries: tries, callers: callers, hold: hold, options: options, starts: starts)
            worker.drain()
            _ = try await running.value
            let sorted = figures.sorted()
            let p50 = percentile(sorted, 0.5)
            let p99 = percentile(sorted, 0.99)
            let worst = sorted.last ?? .nan
            return invocation.report(
                "latency",
                [
                    .atMost(
                        hold > .zero ? "commit → start, median" : "call of enqueue → start, median", 50, measured: p50,
                        unit: "ms"),
                    .atMost("the slowest (a lost wake-up waits for the poll)", 400, measured: worst, unit: "ms"),
                ],
                figures: [
                    ("tries", .init(tries)), ("hold_s", .double(hold / .seconds(1))), ("p50_ms", .double(p50)),
                    ("p99_ms", .double(p99)), ("max_ms", .double(worst)),
                ])
        } catch let error as PostgresError {
            worker.drain()
            throw DatabaseFailure(error)
        }
    }

    private func measure(
        tries: Int, callers: Int, hold: Duration, options: ConnectionOptions, starts: Starts
    ) async throws -> [Double] {
        let live = invocation.console.live()
        return try await withThrowingTaskGroup(of: [Double].self) { group in
            for caller in 0..<callers {
                group.addTask {
                    let connection = try await Connection.open(options, name: "load-\(caller)")
                    // Spread over the time one try takes, so that the callers do not move in step.
                    try await Task.sleep(for: (hold + .milliseconds(100)) * (Double(caller) / Double(callers)))
                    var found: [Double] = []
                    while true {
                        let n = starts.next()
                        guard n < tries else { break }
                        found.append(try await one(n, on: connection, hold: hold, starts: starts))
                        if n % 50 == 0 { live.update(["\(n) of \(tries)"]) }
                        try await Task.sleep(for: .milliseconds(.random(in: 60...140)))
                    }
                    await connection.close()
                    return found
                }
            }
            var all: [Double] = []
            for try await part in group { all += part }
            live.update([])
            return all
        }
    }

    private func one(_ n: Int, on connection: Connection, hold: Duration, starts: Starts) async throws -> Double {
        let began: ContinuousClock.Instant
        let args = Parameter.json("{\"n\": \(n)}")
        if hold > .zero {
            try await connection.execute("begin")
            try await connection.execute("select millrace.enqueue('load.mark', $1)", [args])
            try await Task.sleep(for: hold)
            began = .now
            try await connection.execute("commit")
        } else {
            began = .now
            try await connection.execute("select millrace.enqueue('load.mark', $1)", [args])
        }
        let deadline = began + .seconds(30)
        while ContinuousClock.now < deadline {
            if let time = starts.time(of: n) { return max(0, began.duration(to: time) / .milliseconds(1)) }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw Failure("job \(n) was not started within 30 seconds")
    }
}
