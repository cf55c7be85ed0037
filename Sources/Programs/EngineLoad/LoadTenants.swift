package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Workers

extension Command {
    package static let loadTenants = scenario(
        "tenants",
        summary: "Measure how soon a tenant's job starts beside another tenant with a million waiting",
        discussion: """
            Enqueues jobs of 5 ms for one tenant, many more than can be done, runs a worker of this process, and enqueues jobs for \
            another tenant one at a time; measures from the call of enqueue to the start of the handler. The second part has slow \
            jobs of many tenants in a queue that runs two at once, and tenants that come with one job each. Needs a database of \
            its own and about 1 GB of disk.
            """,
        flags: [
            .single(
                "part", "NAME", .choice(["large", "newcomers"]), environment: .none,
                help: "Only this part."),
            .count("waiting", 1000...50_000_000, 1_000_000, "Jobs of the large tenant."),
            .count("tries", 1...100_000, 100, "Jobs of the small tenant."),
            .count("others", 2...1000, 22, "With newcomers: tenants that are there before them."),
            .count("each", 4...10_000, 24, "With newcomers: jobs of each of these."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [Example("millrace load tenants", "a million against one")]
    ) { invocation in
        let part = invocation.parsed.string("part")
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = []
        if part != "newcomers" {
            let (more, numbers) = try await TenantsScenario(invocation: invocation).measured()
            bars += more
            figures += numbers
        }
        if part != "large" {
            let (more, numbers) = try await NewcomersScenario(invocation: invocation).measured()
            bars += more
            figures += numbers
        }
        return invocation.report("tenants", bars, figures: figures)
    }
}

private struct TenantsScenario: Sendable {
    let invocation: Invocation

    private final class Starts: Sendable {
        private let times = Mutex<[Int: ContinuousClock.Instant]>([:])

        func note(_ n: Int) { times.withLock { $0[n] = .now } }
        func time(of n: Int) -> ContinuousClock.Instant? { times.withLock { $0[n] } }
    }

    func measured() async throws -> (bars: [Bar], figures: [(String, JSONValue)]) {
        let waiting = invocation.count("waiting")
        let tries = invocation.count("tries")
        let connection = try await invocation.connect()
        let live = invocation.console.live()
        var left = waiting
        while left > 0 {
            let chunk = min(left, 50_000)
            _ = try await Queue.enqueueBulk(
                kind: "load.mark", args: Array(repeating: Array("{\"n\": -1}".utf8), count: chunk),
                queue: "load.tenants",
                tenant: "large", on: connection, deadline: .seconds(120))
            left -= chunk
            live.update(["enqueued \(Humane.count(waiting - left)) of \(Humane.count(waiting))"])
        }
        let starts = Starts()
        let decoder = JSONDecoder()
        var options = JobWorker.Options(database: try invocation.connectionOptions(), name: "load")
        options.slots = invocation.settings.slots
        options.direct = invocation.directOptions
        let worker = JobWorker(
            options: options,
            handlers: [
                Handler(kind: "load.mark") { args, _ in
                    let n = try decoder.decode([String: Int].self, from: Data(args))["n"] ?? -1
                    if n >= 0 { starts.note(n) } else { try await Task.sleep(for: .milliseconds(5)) }
                    return .done
                }
            ], log: .standardError(threshold: .warning))
        let running = Task { try await worker.run() }  // awaited below
        await worker.hasStarted()
        var waits: [Double] = []
        for n in 0..<tries {
            let began = ContinuousClock.now
            try await connection.execute(
                "select millrace.enqueue('load.mark', $1, queue => 'load.tenants', tenant => 'small')",
                [.json("{\"n\": \(n)}")])
            let deadline = began + .seconds(60)
            while starts.time(of: n) == nil {
                guard ContinuousClock.now < deadline else { throw Failure("job \(n) was not started within a minute") }
                try await Task.sleep(for: .milliseconds(1))
            }
            if let time = starts.time(of: n) { waits.append(began.duration(to: time) / .milliseconds(1)) }
            if n % 10 == 0 { live.update(["\(n) of \(tries)"]) }
            try await Task.sleep(for: .milliseconds(.random(in: 20...60)))
        }
        live.update([])
        let others = try await Queue.load(of: "load.tenants", on: connection)?.ready ?? 0
        worker.drain()
        _ = try await running.value
        await connection.close()
        waits.sort()
        return (
            [
                .atMost(
                    "call of enqueue → start beside \(Humane.count(waiting)) of another, median", 100,
                    measured: percentile(waits, 0.5), unit: "ms"),
                .atLeast(
                    "jobs of the other still waiting at the end (10,000 is where counting stops)", 1,
                    measured: Double(others), unit: ""),
            ],
            [
                ("waiting", .init(waiting)), ("tries", .init(tries)), ("p50_ms", .double(percentile(waits, 0.5))),
                ("p99_ms", .double(percentile(waits, 0.99))), ("max_ms", .double(waits.last ?? .nan)),
            ]
        )
    }
}
