import FoundationEssentials
import Glibc
import Postgres
import Queues

/// Enqueues jobs in bulk and times real worker processes, or the yardstick, until all have ended.
struct Draining: Sendable {
    let invocation: Invocation
    let connection: Connection
    let jobs: Int
    var kind = "practice.nothing"

    /// - Parameter keys: limit keys to give the jobs in turn, so that a claim meets many; none when empty.
    func enqueue(queue: String? = nil, keys: [String] = [], label: String = "enqueued") async throws {
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

    /// By worker processes; the time is that from the first claim to the last end, as history has it.
    /// - Parameter watch: called ten times a second with how many have ended and what the workers use.
    func drain(
        workers count: Int = 1, arguments: [String] = [], label: String = "worked",
        watch: (Int, LoadWorkers.Usage) -> Void = { _, _ in }
    ) async throws -> Costs {
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let since = try await databaseTime()
        let workers = try await LoadWorkers.start(
            count, invocation, arguments: ["--slots", "\(invocation.settings.slots)"] + arguments, on: connection)
        let live = invocation.console.live()
        do {
            let first = try await taken()
            var tenths = -1
            var (done, still) = (0, 0)
            // What is outstanding is counted by looking at all of it: only when all seems to be done, or nothing happens any more.
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
            let usage = workers.usage()
            let server = try await meter.read() - before
            try await workers.stop()
            return Costs(jobs: jobs, seconds: try await span(since: since), server: server, workers: usage)
        } catch {
            await workers.giveUp()
            throw error
        }
    }

    /// By hand-written statements, batches of a thousand on two connections.
    func drainByHand(queue: String) async throws -> Costs {
        let line = try await Yardstick.line(queue: queue, kind: kind, on: connection)
        let meter = try await ServerMeter(on: connection)
        let before = try await meter.read()
        let result = try await Yardstick(invocation).drain(line, on: connection)
        guard result.jobs == jobs else {
            throw Failure("the hand-written limit ended \(result.jobs) of \(jobs) jobs: is another worker running?")
        }
        return Costs(jobs: jobs, seconds: result.seconds, server: try await meter.read() - before)
    }

    /// How many rows the claims have taken out of line, about a second ago: counting them would cost what is measured.
    private func taken() async throws(PostgresError) -> Int {
        try await connection.query("select pg_stat_get_tuples_deleted('millrace.ready'::regclass)") {
            row throws(PostgresError) in Int(try row.int(0))
        }.first ?? 0
    }

    private func databaseTime() async throws(PostgresError) -> String {
        try await connection.query("select clock_timestamp()::text") { row throws(PostgresError) in try row.string(0) }
            .first ?? "now"
    }

    private func span(since: String) async throws -> Double {
        let span =
            try await connection.query(
                """
                select extract(epoch from max(h.finished) - min(h.started))::float8
                  from millrace.history h join millrace.kind k on k.id = h.kind
                 where h.started >= $1::text::timestamptz and k.name = $2
                """, [.text(since), .text(kind)], deadline: .seconds(120)
            ) { row throws(PostgresError) in row.isNull(0) ? 0 : try row.double(0) }.first ?? 0
        guard span > 0 else { throw Failure("history has nothing of what was just done") }
        return span
    }
}
