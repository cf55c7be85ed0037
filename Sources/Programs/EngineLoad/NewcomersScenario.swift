import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Workers

/// Slow jobs of many tenants in a queue that may run only a few at once; in the middle of it, tenants come that have one job each.
struct NewcomersScenario: Sendable {
    let invocation: Invocation

    private static let queue = "load.newcomers"
    private static let bound = 2
    private static let newcomers = 12
    /// Half of them short, half long, as documents are.
    private static let spans: [Int] = [40, 160]

    private var tenants: Int { invocation.count("others") }
    private var jobs: Int { invocation.count("each") }

    private struct Times: Sendable {
        var starts: [Int: ContinuousClock.Instant] = [:]
        var ends = 0
    }

    func measured() async throws -> (bars: [Bar], figures: [(String, JSONValue)]) {
        let connection = try await invocation.connect()
        for tenant in 0..<tenants {
            _ = try await Queue.enqueueBulk(
                kind: "load.slow",
                args: (0..<jobs).map { Array("{\"n\": -1, \"ms\": \(Self.spans[$0 % Self.spans.count])}".utf8) },
                queue: Self.queue, tenant: "tenant-\(tenant)", on: connection, deadline: .seconds(60))
        }
        let drawn = try await number(on: connection)
        let times = Mutex(Times())
        let decoder = JSONDecoder()
        var options = JobWorker.Options(database: try invocation.connectionOptions(), name: "load")
        options.slots = invocation.settings.slots
        options.queues = [(name: Self.queue, slots: Self.bound)]
        let worker = JobWorker(
            options: options,
            handlers: [
                Handler(kind: "load.slow") { args, _ in
                    let given = try decoder.decode([String: Int].self, from: Data(args))
                    if let n = given["n"], n >= 0 { times.withLock { $0.starts[n] = .now } }
                    try await Task.sleep(for: .milliseconds(given["ms"] ?? 0))
                    times.withLock { $0.ends += 1 }
                    return .done
                }
            ], log: .standardError(threshold: .warning))
        let running = Task { try await worker.run() }  // awaited below
        await worker.hasStarted()
        let all = tenants * jobs
        // Until each of the others has had a turn and has most of its jobs before it.
        while times.withLock({ $0.ends }) < all / 4 { try await Task.sleep(for: .milliseconds(20)) }
        let began = ContinuousClock.now
        for n in 0..<Self.newcomers {
            try await connection.execute(
                "select millrace.enqueue('load.slow', $1, queue => $2, tenant => $3)",
                [.json("{\"n\": \(n), \"ms\": \(Self.spans[0])}"), .text(Self.queue), .text("newcomer-\(n)")])
        }
        let live = invocation.console.live()
        let deadline = ContinuousClock.now + .seconds(300)
        while times.withLock({ $0.ends }) < all + Self.newcomers {
            guard ContinuousClock.now < deadline else { throw Failure("the jobs were not done within five minutes") }
            live.update(["\(times.withLock { $0.ends }) of \(all + Self.newcomers) slow jobs"])
            try await Task.sleep(for: .milliseconds(50))
        }
        live.update([])
        worker.drain()
        let report = try await running.value
        // A job that is handed back gets a new place in its line, and with it a number. The newcomers have drawn one each.
        let placed = try await number(on: connection) - drawn - Self.newcomers
        await connection.close()
        let waits = times.withLock { $0.starts.values.map { began.duration(to: $0) / .seconds(1) } }.sorted()
        // A newcomer may find each other tenant ahead of it once.
        let free = Double(Self.spans.reduce(0, +)) / Double(Self.spans.count * Self.bound) / 1000
        let right = 2 * free * Double(tenants + Self.newcomers)
        let done = Double(all + Self.newcomers)
        return (
            [
                .atMost(
                    "newcomers with one job beside \(tenants) tenants with \(jobs): wait, p99", right,
                    measured: percentile(waits, 0.99), unit: "s"),
                .atMost("claims a job", 1.05, measured: (done + Double(placed)) / done, unit: ""),
                .atMost("jobs handed back, of all claims", 1, measured: 100 * Double(placed) / done, unit: "%"),
            ],
            [
                ("newcomers_p50_s", .double(percentile(waits, 0.5))), ("newcomers_max_s", .double(waits.last ?? .nan)),
                ("handed_back", .init(placed)), ("finished", .init(report.finished)),
            ]
        )
    }

    private func number(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int("select last_value from millrace.seq")
    }
}
