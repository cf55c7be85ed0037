import FoundationEssentials
import Glibc
import Postgres
import Queues
import Telemetry
import Workers

/// Enqueues jobs in bulk and times a worker of this process until all have ended.
struct Draining: Sendable {
    let invocation: Invocation
    let connection: Connection
    let jobs: Int

    struct Result: Sendable {
        var seconds: Double
        /// Processor time of this process.
        var processor: Double
        var finished: Int
    }

    /// - Parameter keys: limit keys to give the jobs in turn, so that a claim meets many; none when empty.
    func enqueue(queue: String? = nil, keys: [String] = [], label: String = "enqueued") async throws {
        let live = invocation.console.live()
        var left = jobs
        var turn = 0
        while left > 0 {
            let chunk = min(left, keys.isEmpty ? 50_000 : 100)
            _ = try await Queue.enqueueBulk(
                kind: "practice.nothing", args: (0..<chunk).map { Array("{\"n\": \($0)}".utf8) }, queue: queue,
                limitKey: keys.isEmpty ? nil : keys[turn % keys.count], on: connection, deadline: .seconds(300))
            turn += 1
            left -= chunk
            if left % 50_000 < chunk {
                live.update(["\(label) \(Humane.count(jobs - left)) of \(Humane.count(jobs))"])
            }
        }
        live.update([])
    }

    func drain() async throws -> Result {
        var options = Worker.Options(database: try invocation.connectionOptions(), name: "load")
        options.slots = invocation.settings.slots
        options.direct = invocation.directOptions
        let worker = Worker(options: options, handlers: Practice.handlers, log: .standardError(threshold: .warning))
        let before = Self.processorSeconds
        let began = ContinuousClock.now
        let running = Task { try await worker.run() }  // awaited below
        while try await Queue.outstanding(on: connection, kinds: ["practice.nothing"]) > 0 {
            try await Task.sleep(for: .milliseconds(20))
        }
        let seconds = began.duration(to: .now) / .seconds(1)
        let processor = Self.processorSeconds - before
        worker.drain()
        return Result(seconds: seconds, processor: processor, finished: try await running.value.finished)
    }

    /// User and system time of this process so far.
    private static var processorSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    static var residentMegabytes: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_maxrss) / 1024
    }
}
