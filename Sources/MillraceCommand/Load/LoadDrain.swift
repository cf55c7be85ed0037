import Glibc
import Postgres
import Queues
import Telemetry
import Workers

extension Command {
    static let loadDrain = Command(
        ["load", "drain"],
        summary: "Measure how fast one worker works through waiting jobs",
        discussion: """
            Enqueues practice.nothing jobs in bulk, then runs a worker in this process until all have ended, history kept. Prints \
            jobs per second, and the processor time and memory of this process. Use a database of its own.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1...100_000_000), environment: .none, fallback: "500000", help: "Jobs to drain."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [Example("millrace load drain --jobs 500000", "what the README quotes")]
    ) { invocation in
        let jobs = invocation.parsed.integer("jobs") ?? 500_000
        let options = try invocation.connectionOptions()
        do {
            let connection = try await Connection.open(options, name: "load")
            let live = invocation.console.live()
            var left = jobs
            while left > 0 {
                let chunk = min(left, 50_000)
                _ = try await Queue.enqueueBulk(
                    kind: "practice.nothing", args: (0..<chunk).map { Array("{\"n\": \($0)}".utf8) }, on: connection,
                    deadline: .seconds(120))
                left -= chunk
                live.update(["enqueued \(Humane.count(jobs - left)) of \(Humane.count(jobs))"])
            }
            var workerOptions = Worker.Options(database: options, name: "load")
            workerOptions.slots = invocation.settings.slots
            workerOptions.direct = invocation.directOptions
            let worker = Worker(
                options: workerOptions, handlers: Practice.handlers, log: .standardError(threshold: .warning))
            let cpuBefore = processorSeconds()
            let began = ContinuousClock.now
            let running = Task { try await worker.run() }  // awaited below
            while try await Queue.outstanding(on: connection, kinds: ["practice.nothing"]) > 0 {
                try await Task.sleep(for: .milliseconds(20))
            }
            let seconds = began.duration(to: .now) / .seconds(1)
            let cpu = processorSeconds() - cpuBefore
            worker.drain()
            let report = try await running.value
            live.update([])
            await connection.close()
            let rate = Double(jobs) / seconds
            return invocation.report(
                "drain",
                [
                    .atLeast("jobs per second", 100_000, measured: rate, unit: "/s"),
                    .atMost("processor time of the worker, per job", 8, measured: cpu / Double(jobs) * 1e6, unit: "µs"),
                    .atMost("resident memory at the most", 60, measured: residentMegabytes(), unit: "MB"),
                ],
                figures: [
                    ("jobs", .init(jobs)), ("finished", .init(report.finished)), ("seconds", .double(seconds)),
                    ("jobs_per_second", .double(rate)),
                ])
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

/// User and system time of this process so far.
private func processorSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

private func residentMegabytes() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_maxrss) / 1024
}
