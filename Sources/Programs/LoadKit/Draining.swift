package import CommandKit
import FoundationEssentials
import Glibc
import MillraceQueues
package import Postgres

/// Enqueues jobs in bulk and times real worker processes, or the yardstick, until all have ended.
package struct Draining: Sendable {
    private let invocation: Invocation
    private let connection: Connection
    private let jobs: Int
    private let kind: String

    package init(invocation: Invocation, connection: Connection, jobs: Int, kind: String = "practice.nothing") {
        (self.invocation, self.connection, self.jobs, self.kind) = (invocation, connection, jobs, kind)
    }

    /// - Parameter keys: limit keys to give the jobs in turn, so that a claim meets many; none when empty.
    package func enqueue(queue: String? = nil, keys: [String] = [], label: String = "enqueued") async throws {
        let live = invocation.console.live()
        var left = jobs
        var turn = 0
        while left > 0 {
            let chunk = min(left, keys.isEmpty ? 50_000 : 100)
            _ = try await Queue.enqueueBulk(
                kind: kind, args: (0..<chunk).map { Array("{\"n\": \($0)}".utf8) }, queue: queue,
                limitKey: keys.isEmpty ? nil : keys[turn % keys.count], on: connection, deadline: .seconds(300))
            turn += 1
            left -= chunk
            if left % 50_000 < chunk {
                live.update(["\(label) \(Humane.count(jobs - left)) of \(Humane.count(jobs))"])
            }
        }
        live.update([])
    }

    /// Drains with worker processes that are started for it; the time is from the first claim to the last end, from history.
    /// - Parameters:
    ///   - queue: paused until all workers are running, so that none is timed while another still starts.
    ///   - watch: called ten times a second with the number of ended jobs and the workers' usage.
    package func drain(
        _ queue: String? = nil, workers count: Int = 1, arguments: [String] = [], label: String = "worked",
        watch: (Int, LoadWorkers.Usage) -> Void = { _, _ in }
    ) async throws -> Costs {
        let start = try await Start(on: connection)
        if let queue { _ = try await Queue.pause(queue, on: connection) }
        let workers = try await LoadWorkers.start(
            count, invocation, arguments: invocation.slotArguments + arguments, on: connection)
        let first = try await taken()
        if let queue {
            try await Task.sleep(for: .milliseconds(300))  // what a start leaves to be done
            _ = try await Queue.resume(queue, on: connection)
        }
        let costs = try await costs(since: start, first: first, by: workers, label: label, watch: watch)
        try await workers.stop()
        return costs
    }

    /// Drains with running workers, in turns with others: the queue is paused while it is filled.
    /// - Parameter keys: see `enqueue`.
    package func turn(of queue: String, keys: [String] = [], by workers: LoadWorkers, label: String) async throws
        -> Costs
    {
        _ = try await Queue.pause(queue, on: connection)
        try await enqueue(queue: queue, keys: keys, label: label)
        try await Task.sleep(for: .milliseconds(300))  // what the last turn left to be done
        let start = try await Start(on: connection, usage: workers.usage())
        let first = try await taken()
        _ = try await Queue.resume(queue, on: connection)
        return try await costs(since: start, first: first, by: workers, label: label)
    }

    /// The state from which costs are counted.
    private struct Start {
        var meter: ServerMeter
        var server: ServerMeter.Reading
        var usage: LoadWorkers.Usage
        var time: String

        init(on connection: Connection, usage: LoadWorkers.Usage = .init()) async throws {
            meter = try await ServerMeter(on: connection)
            server = try await meter.read()
            time = try await connection.text("select clock_timestamp()::text")
            self.usage = usage
        }
    }

    /// Waits for the last end. `first`: how many rows claims had taken out of line before.
    private func costs(
        since start: Start, first: Int, by workers: LoadWorkers, label: String,
        watch: (Int, LoadWorkers.Usage) -> Void = { _, _ in }
    ) async throws -> Costs {
        let live = invocation.console.live()
        var tenths = -1
        var (done, still) = (0, 0)
        // Outstanding jobs are counted by looking at all of them, so only when all seem to be done, or when nothing happens any more.
        while true {
            if done >= jobs || still >= 20, try await Queue.outstanding(on: connection, kinds: [kind]) == 0 {
                break
            }
            try await Task.sleep(for: .milliseconds(100))
            let now = min(jobs, try await taken() - first)
            still = now == done ? still + 1 : 0
            done = now
            watch(done, workers.usage())
            guard done * 10 / jobs > tenths else { continue }
            tenths = done * 10 / jobs
            live.update(["\(label) \(Humane.count(done)) of \(Humane.count(jobs))"])
        }
        live.update([])
        var usage = workers.usage()
        usage.processor -= start.usage.processor
        let server = try await start.meter.read() - start.server
        return Costs(jobs: jobs, seconds: try await span(since: start.time), server: server, workers: usage)
    }

    /// By hand-written statements, batches of a thousand on two connections.
    package func drainByHand(queue: String) async throws -> Costs {
        let line = try await Yardstick.line(queue: queue, kind: kind, on: connection)
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let result = try await Yardstick(invocation).drain(line, on: connection)
        guard result.jobs == jobs else {
            throw Failure("the hand-written limit ended \(result.jobs) of \(jobs) jobs: is another worker running?")
        }
        return Costs(jobs: jobs, seconds: result.seconds, server: try await meter.read() - before)
    }

    /// How many rows claims have taken out of line, about a second ago: counting them would cost what is measured.
    private func taken() async throws(PostgresError) -> Int {
        try await connection.int("select pg_stat_get_tuples_deleted('millrace.ready'::regclass)")
    }

    private func span(since: String) async throws -> Double {
        let span =
            try await connection.double(
                """
                select extract(epoch from max(h.finished) - min(h.started))::float8
                  from millrace.history h join millrace.kind k on k.id = h.kind
                 where h.started >= $1::text::timestamptz and k.name = $2
                """, [.text(since), .text(kind)], deadline: .seconds(120)
            )
        guard span > 0 else { throw Failure("history has nothing of what was just done") }
        return span
    }
}
