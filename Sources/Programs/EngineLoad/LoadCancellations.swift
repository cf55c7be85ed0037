import Clusters
package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Workers

extension Command {
    package static let loadCancellations = scenario(
        "cancellations",
        summary: "Cancel running workers at random moments, and check how each ends",
        discussion: """
            Starts a Postgres of its own, stops it again, and leaves nothing behind. In each round a worker of this \
            process runs jobs, and its task is cancelled at a random moment: while the database is up, is away, or \
            is just coming back. Each worker must end within its drain time (two seconds, and ten more for ends that \
            cannot be recorded while the database is unreachable), close its session, lose no job, and use almost no \
            processor time while it ends. Exit 1 when one does not.
            """,
        flags: [
            .count("rounds", 1...10_000, 100, "How many rounds."),
            .count("jobs", 1...10_000, 40, "Jobs for each of them."),
        ],
        hasBars: false,
        examples: [Example("millrace load cancellations", "a hundred workers, in about ten minutes")]
    ) { invocation in
        try await CancellationsScenario(invocation: invocation).run()
    }
}

/// The database's state while a worker is cancelled.
private enum DatabaseState: String, CaseIterable {
    case up, away, returning
}

private struct CancellationsScenario: Sendable {
    let invocation: Invocation

    static let kind = "load.cancelled"
    static let drain = Duration.seconds(2)
    /// Additional time for a busy machine.
    static let tolerance = Duration.seconds(5)

    struct Round {
        var state: DatabaseState
        var took: Duration
        var cpu: Duration
        /// A session that is left although the database was there; nil where it was not.
        var sessionsLeft: Int?
    }

    func run() async throws -> ExitCode {
        let (_, cluster) = try await Scratch.postgres(
            "cancellations", invocation, settings: ["max_connections": "60"])
        let options = ConnectionOptions(location: cluster.url(), applicationName: "cancellations")
        let (count, jobs) = (invocation.count("rounds"), invocation.count("jobs"))
        var rounds: [Round] = []
        for number in 0..<count {
            let states = DatabaseState.allCases
            rounds.append(try await round(states[number % states.count], cluster, options, jobs: jobs))
            invocation.console.note(
                "\(number + 1) of \(count): the database \(rounds[number].state.rawValue), ended in "
                    + "\(Humane.decimal(rounds[number].took / .seconds(1), places: 2)) s")
        }
        let kept = try await workOff(options, total: count * jobs)
        return report(rounds, kept: kept, total: count * jobs)
    }

    private func worker(_ options: ConnectionOptions, drain: Duration = Self.drain) -> JobWorker {
        var settings = JobWorker.Options(database: options, name: "cancelled")
        settings.slots = 10
        settings.drainDeadline = drain
        let handler = Handler(kind: Self.kind) { _, _ in
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...600)))
            return .done
        }
        return JobWorker(options: settings, handlers: [handler], log: .silent)
    }

    private func round(
        _ state: DatabaseState, _ cluster: Cluster, _ options: ConnectionOptions, jobs: Int
    ) async throws -> Round {
        let before = try await Connection.open(options, name: "load")
        try await before.execute(
            "select millrace.enqueue_bulk($1, array(select '{}' from generate_series(1, $2)))",
            [.text(Self.kind), .int4(Int32(jobs))])
        let sessions = try await Self.sessions(on: before)
        await before.close()
        let worker = worker(options)
        let task = Task { try await worker.run() }  // cancelled and awaited below
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...700)))  // starting, started, or long at work
        if state != .up {
            try await cluster.close(Bool.random() ? .fast : .immediate)
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...500)))
        }
        let (began, cpu) = (ContinuousClock.now, Self.processorTime)
        task.cancel()
        async let back: ContinuousClock.Instant? = comesBack(state, cluster)
        _ = try await task.value
        var round = Round(state: state, took: began.duration(to: .now), cpu: Self.processorTime - cpu)
        let returned = try await back
        if state == .away { try await cluster.open() }
        // A worker tries to close its session for as long as its drain may take, two seconds; if the database came back later the session
        // may be open.
        guard state == .up || returned.map({ $0 < began + .milliseconds(1500) }) == true else { return round }
        let after = try await Connection.open(options, name: "load")
        round.sessionsLeft = try await Self.sessions(on: after) - sessions
        await after.close()
        return round
    }

    private func comesBack(_ state: DatabaseState, _ cluster: Cluster) async throws -> ContinuousClock.Instant? {
        guard state == .returning else { return nil }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...300)))
        try await cluster.open()
        return .now
    }

    /// Those that are open, or that others took for lost.
    private static func sessions(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int(
            "select count(*) from millrace.process where ending is distinct from 'stopped'"
        )
    }

    /// A worker that is not cancelled runs the rest; afterwards as many jobs have succeeded as were enqueued.
    private func workOff(_ options: ConnectionOptions, total: Int) async throws -> Int {
        let worker = worker(options, drain: .seconds(30))
        let running = Task { try await worker.run() }  // awaited below
        let connection = try await Connection.open(options, name: "load")
        let patience = ContinuousClock.now + .seconds(300)
        var done = 0
        while done < total, ContinuousClock.now < patience {
            done =
                try await connection.int(
                    "select count(distinct id) from millrace.history where outcome = 1", deadline: .seconds(60)
                )
            try await Task.sleep(for: .milliseconds(200))
        }
        await connection.close()
        worker.drain()
        _ = try await running.value
        return done
    }

    private func report(_ rounds: [Round], kept: Int, total: Int) -> ExitCode {
        func worst(_ state: DatabaseState) -> Double {
            rounds.filter { $0.state == state }.map { $0.took / .seconds(1) }.max() ?? 0
        }
        let patience = JobWorker.recordingPatience
        let judged = rounds.compactMap(\.sessionsLeft)
        var bars = DatabaseState.allCases.map { state in
            let limit = Self.drain + Self.tolerance + (state == .up ? .zero : patience)
            return Bar.atMost(
                "database \(state.rawValue): seconds until a cancelled worker has ended", limit / .seconds(1),
                measured: worst(state), unit: "s")
        }
        let share = rounds.map { $0.cpu / max($0.took, .seconds(1)) }.max() ?? 0
        bars += [
            .atMost("processor time while it ends, as a share of one core", 0.3, measured: share, unit: "×"),
            .atMost(
                "sessions left open, of \(judged.count) that could be closed", 0,
                measured: Double(judged.count { $0 > 0 }), unit: ""),
            .atLeast("jobs that were done in the end", Double(total), measured: Double(kept), unit: ""),
        ]
        return invocation.report(
            "cancellations", bars,
            figures: [
                ("rounds", .init(rounds.count)), ("jobs", .init(total)), ("done", .init(kept)),
                ("sessions_judged", .init(judged.count)), ("sessions_left", .init(judged.count { $0 > 0 })),
                ("cpu_share", .double(share)),
            ], isStrict: true)
    }

    /// This process's CPU time; it holds the workers and not the database.
    private static var processorTime: Duration {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        func duration(_ time: timeval) -> Duration { .seconds(time.tv_sec) + .microseconds(Int64(time.tv_usec)) }
        return duration(usage.ru_utime) + duration(usage.ru_stime)
    }
}
