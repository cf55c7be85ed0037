package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadRate = scenario(
        "rate",
        summary: "Check that a rate limit holds in every window, and is used",
        discussion: """
            Limits a queue, and a key in another queue, to a rate with a burst. Enqueues more than enough jobs and \
            runs several workers of this process at once. Then counts the starts, by the database's clock, in every \
            window that begins and ends with a start. Use a database of its own.
            """,
        flags: [
            .count("rate", 1...10_000, 10, "Starts in a second."),
            .count("burst", 1...10_000, 20, "How many jobs may start at once after a rest."),
            .count("seconds", 1...3600, 60, "How long."),
            .count("workers", 1...32, 4, "Workers at the same time."),
            Setting.directURL.flag,
        ],
        examples: [Example("millrace load rate", "10 a second, burst 20, a minute, 4 workers")]
    ) { invocation in
        try await RateScenario(invocation: invocation).run()
    }
}

private struct RateScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let rate = invocation.count("rate")
        let burst = invocation.count("burst")
        let seconds = invocation.count("seconds")
        let connection = try await invocation.connect()
        let limit = Limit(rate: Limit.Rate(rate, burst: burst))
        _ = try await Queue.setLimit(of: .queue("load.rate"), to: limit, on: connection)
        _ = try await Queue.setLimit(of: .key("load.rate"), to: limit, on: connection)
        let enough = rate * seconds * 2 + burst
        let args = (0..<enough).map { Array("{\"n\": \($0)}".utf8) }
        _ = try await Queue.enqueueBulk(kind: "practice.nothing", args: args, queue: "load.rate", on: connection)
        _ = try await Queue.enqueueBulk(
            kind: "practice.nothing", args: args, queue: "load.rate.keyed", limitKey: "load.rate", on: connection)
        try await work(workers: invocation.count("workers"), seconds: seconds)
        let allowed = Double(burst + rate * seconds)
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = [("allowed", .double(allowed))]
        for (name, queue) in [("queue", "load.rate"), ("key", "load.rate.keyed")] {
            let starts = try await Queue.starts(in: queue, on: connection)
            let began = starts.first ?? 0
            let counted = starts.count { $0 <= began + Double(seconds) }
            bars.append(
                .atLeast(
                    "limit of a \(name): share of the allowed", 0.98, measured: Double(counted) / allowed, unit: "×"))
            bars.append(
                .atMost(
                    "worst window above the allowed", 0, measured: Self.excess(starts, rate: rate, burst: burst),
                    unit: "jobs"))
            figures.append(("\(name)_starts", .init(counted)))
        }
        await connection.close()
        return invocation.report("rate", bars, figures: figures)
    }

    private func work(workers count: Int, seconds: Int) async throws {
        var options = JobWorker.Options(database: try invocation.connectionOptions(), name: "load")
        options.direct = invocation.directOptions
        let live = invocation.console.live()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let workers = (0..<count).map { number in
                var options = options
                options.name = "load-\(number)"
                return JobWorker(
                    options: options, handlers: Practice.handlers, log: .standardError(threshold: .warning))
            }
            for worker in workers { group.addTask { _ = try await worker.run() } }
            let end = ContinuousClock.now + .seconds(seconds + 1)
            while ContinuousClock.now < end {
                live.update(["\(Humane.duration(ContinuousClock.now.duration(to: end))) left"])
                try await Task.sleep(for: .milliseconds(250))
            }
            live.update([])
            for worker in workers { worker.drain() }
            try await group.waitForAll()
        }
    }

    /// How many more than burst + rate × span started in the worst window; at most 0 when the limit held.
    private static func excess(_ starts: [Double], rate: Int, burst: Int) -> Double {
        // The worst window that ends at a start begins where i − rate × start was least.
        var least = Double.infinity
        var worst = -Double.infinity
        for (index, start) in starts.enumerated() {
            least = min(least, Double(index) - Double(rate) * start)
            worst = max(worst, Double(index + 1) - Double(rate) * start - least)
        }
        // A microsecond is the finest the database dates.
        return max(0, ((worst - Double(burst)) * 1000).rounded(.down) / 1000)
    }
}
