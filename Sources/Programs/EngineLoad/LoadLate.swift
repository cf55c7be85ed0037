import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Workers

/// `load pinned --late`: a transaction inserts a job and commits long after, while others pass in the same line.
struct LateScenario: Sendable {
    let invocation: Invocation

    static let queue = "load.late"
    static let callsPerSecond = 20

    private var hold: Duration { invocation.parsed.duration("hold") ?? .seconds(300) }
    private var jobs: Int { invocation.count("jobs") }

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        let late = try await Connection.open(options, name: "load-late")
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: 1)
        // Before the transaction begins: its own row of a new queue would keep all others waiting for its commit.
        _ = try await Queue.enqueueBulk(
            kind: "practice.nothing", args: [Array("{}".utf8)], queue: Self.queue, on: connection)
        try await finish(on: connection)
        let ended = try await taken(on: connection)
        try await late.execute("select set_config('idle_in_transaction_session_timeout', '0', false)")
        try await late.execute("begin")
        try await late.execute(
            "select millrace.enqueue('practice.mark', '{\"n\": 0}', queue => $1)", [.text(Self.queue)])
        let (outcome, end) = try await offer(options)
        try await Task.sleep(for: .nanoseconds(max(0, end - PracticeMarks.now())))
        let passed = try await taken(on: connection) - ended
        let began = PracticeMarks.now()
        try await late.execute("commit")
        guard let start = try await starts.wait(for: 0, atMost: .seconds(120)) else {
            throw Failure("the job that committed late was not started within two minutes of its commit")
        }
        try await finish(on: connection)
        try await workers.stop()
        await late.close()
        await connection.close()
        let wait = Double(start - began) / 1e9
        return invocation.report(
            "pinned",
            [
                .atMost(
                    "commit → start of a job that was inserted \(Humane.duration(hold)) before", 3, measured: wait,
                    unit: "s"),
                .atLeast(
                    "jobs that had passed it by then", Double(jobs) * 0.99, measured: Double(min(passed, jobs)),
                    unit: ""),
            ],
            figures: [
                ("late", .bool(true)), ("hold_s", .double(hold / .seconds(1))), ("jobs", .init(jobs)),
                ("passed", .init(min(passed, jobs))), ("wait_s", .double(wait)),
                ("started_again", .init(starts.again)), ("enqueue", outcome.answered.json),
            ])
    }

    /// The others, evenly over all but the last second of the time.
    private func offer(_ options: ConnectionOptions) async throws -> (Pacer.Outcome, end: Int64) {
        let live = invocation.console.live()
        let began = PracticeMarks.now()
        let end = began + Int64(hold / .nanoseconds(1))
        let span = max(0.5, hold / .seconds(1) - 1)
        let calls = max(1, min(jobs, Int(span * Double(Self.callsPerSecond))))
        let pacer = try await Pacer.open(options, callers: 2)
        let (jobs, queue) = (jobs, Self.queue)
        let outcome = try await pacer.run(Cadence(began: began, perSecond: Double(calls) / span, calls: calls)) {
            call, connection in
            // Together the calls cover all jobs, whatever their number.
            let (from, to) = (call * jobs / calls, (call + 1) * jobs / calls)
            _ = try await Queue.enqueueBulk(
                kind: "practice.nothing", args: (from..<to).map { Array("{\"n\": \($0)}".utf8) }, queue: queue,
                on: connection, deadline: .seconds(120))
            if to * 10 / jobs > from * 10 / jobs {
                live.update(["\(Humane.count(to)) of \(Humane.count(jobs))"])
            }
        }
        live.update([])
        return (outcome, end)
    }

    private func finish(on connection: Connection) async throws {
        try await Patience.wait(
            .seconds(120), every: .milliseconds(100), else: "jobs are left two minutes after the last call"
        ) {
            try await Queue.outstanding(on: connection, kinds: ["practice.nothing", "practice.mark"]) == 0
        }
    }

    /// How many rows the claims have taken out of line, about a second ago.
    private func taken(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int("select pg_stat_get_tuples_deleted('millrace.ready'::regclass)")
    }
}
