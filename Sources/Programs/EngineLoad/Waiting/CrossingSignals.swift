import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Synchronization

/// Callers send signals and enqueue jobs that wait for them, in random order, while workers are killed and Postgres crashes: one of its own.
struct CrossingSignals: Sendable {
    let invocation: Invocation

    private static let callers = 16
    private static let workers = 4
    private static let keys = 1000
    /// Of this many signals one is sent twice, by two callers.
    private static let repeats = 20
    private static let unfinished: SQL = """
        select count(*) from millrace.job j join millrace.kind k on k.id = j.kind and k.name = 'practice.take'
         where not exists (select from millrace.history h where h.id = j.id and h.outcome = 1)
        """

    private var pairs: Int { invocation.count("pairs") }
    private var restarts: Int { invocation.count("restarts") }

    private enum Act {
        case enqueue(Int)
        case signal(Int)
    }

    private struct State {
        var acts: [Act]
        /// Jobs that have ended, as last counted.
        var ended = 0
        var kills = 0
        var restarts = 0
        var isOver = false
    }

    /// What callers and faults share.
    private final class Shared: Sendable {
        private let mutex: Mutex<State>

        init(_ state: State) { mutex = Mutex(state) }

        func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
            mutex.withLock { state in body(&state) }
        }
    }

    func run() async throws -> ([Bar], [(String, JSONValue)]) {
        let (directory, cluster) = try await Scratch.postgres(
            "crossing", invocation,
            settings: ["max_connections": "120", "shared_buffers": "256MB", "max_wal_size": "2GB"])
        let kept = KeptWorkers(directory: directory)
        let options = ConnectionOptions(location: cluster.url(), applicationName: "crossing")
        let office = try await Connection.open(options, name: "load")
        try await office.run(
            script: """
                create table public.practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp());
                create table public.practice_made (n int primary key);
                """)
        await office.close()
        var variables = invocation.environment.filter { !$0.key.hasPrefix("MILLRACE_") }
        variables["DATABASE_URL"] = cluster.url()
        variables["MILLRACE_LISTEN"] = "off"
        for number in 1...Self.workers {
            kept.keep(
                "w\(number)",
                arguments: ["worker", "--practice", "--name", "w\(number)", "--parent", "\(getpid())"]
                    + ["--log-level", "warning", "--slots", "50"],
                environment: variables)
        }
        let acts = (0..<pairs).flatMap { n -> [Act] in
            n % Self.repeats == 0 ? [.enqueue(n), .signal(n), .signal(n)] : [.enqueue(n), .signal(n)]
        }
        let shared = Shared(State(acts: acts.shuffled()))
        let began = ContinuousClock.now
        let live = invocation.console.live()
        let called = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await cause(shared, kept, cluster, of: acts.count) }
            group.addTask { try await count(shared, options, live) }
            try await withThrowingTaskGroup(of: Void.self) { callers in
                for caller in 0..<Self.callers { callers.addTask { try await call(shared, options, caller) } }
                try await callers.waitForAll()
            }
            let called = began.duration(to: .now) / .seconds(1)
            try await group.waitForAll()
            return called
        }
        live.update([])
        let seconds = began.duration(to: .now) / .seconds(1)
        let bad = try await kept.stop()
        return try await report(
            shared.withLock { $0 }, options, acts: acts.count, called: called, seconds: seconds, bad: bad)
    }

    // MARK: Callers

    /// After a lost answer it does the same again: a signal has an id, and a job is enqueued with a row of the caller's own.
    private func call(_ shared: Shared, _ options: ConnectionOptions, _ caller: Int) async throws {
        var connection: Connection?
        var patience = ContinuousClock.now + .seconds(600)
        var current = shared.withLock { $0.acts.popLast() }
        while let act = current {
            do throws(PostgresError) {
                let open: Connection
                if let connection {
                    open = connection
                } else {
                    open = try await Connection.open(options, name: "caller-\(caller)")
                    connection = open
                }
                try await perform(act, on: open)
                patience = .now + .seconds(600)
                current = shared.withLock { $0.acts.popLast() }
            } catch {
                guard error.isOutage || error.outcomeUnknown, ContinuousClock.now < patience else { throw error }
                await connection?.close()
                connection = nil
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        await connection?.close()
    }

    private func perform(_ act: Act, on connection: Connection) async throws(PostgresError) {
        switch act {
        case .enqueue(let n):
            try await connection.execute(
                """
                with made as (insert into public.practice_made values ($1) on conflict do nothing returning n)
                select millrace.enqueue('practice.take', jsonb_build_object('name', 'go', 'key', $2::text)) from made
                """, [.int4(Int32(n)), .text("\(n % Self.keys)")])
        case .signal(let n):
            _ = try await Queue.signal(
                "go", key: "\(n % Self.keys)", payload: Array("\(n)".utf8), id: "\(n)", on: connection)
        }
    }

    // MARK: Faults

    /// Kills a worker every now and then, more often while the callers call, and crashes Postgres at even steps of the whole.
    private func cause(_ shared: Shared, _ kept: KeptWorkers, _ cluster: Cluster, of acts: Int) async throws {
        while true {
            let (isOver, left, ended) = shared.withLock { ($0.isOver, $0.acts.count, $0.ended) }
            guard !isOver else { return }
            let calls = Double(acts - left) / Double(acts)
            let done = (calls + Double(ended) / Double(pairs)) / 2
            if Double(shared.withLock { $0.restarts }) + 0.5 < done * Double(restarts) {
                try await crash(cluster)
                shared.withLock { $0.restarts += 1 }
            }
            // The last ones end in peace: a worker that died is noticed after seconds.
            if done < 0.99, let pid = kept.pid(of: "w\(Int.random(in: 1...Self.workers))") {
                kill(pid, SIGKILL)
                shared.withLock { $0.kills += 1 }
            }
            try await Task.sleep(for: .milliseconds(calls < 1 ? .random(in: 300...900) : .random(in: 1500...4500)))
        }
    }

    private func crash(_ cluster: Cluster) async throws {
        try await cluster.close(.immediate, within: .seconds(60))
        try await Task.sleep(for: .milliseconds(.random(in: 0...2000)))
        try await cluster.open()
    }

    /// Until nothing happens any more.
    private func count(_ shared: Shared, _ options: ConnectionOptions, _ live: LiveRegion) async throws {
        defer { shared.withLock { $0.isOver = true } }
        var (most, since) = (-1, ContinuousClock.now)
        while since.duration(to: .now) < .seconds(300) {
            let began = ContinuousClock.now
            if let ended = try? await ended(options) {
                let left = shared.withLock { state in
                    state.ended = ended
                    return state.acts.count
                }
                live.update([
                    "\(Humane.count(left)) calls left, \(Humane.count(ended)) of \(Humane.count(pairs)) jobs ended"
                ])
                if left == 0, ended >= pairs { return }
                if ended > most || left > 0 { (most, since) = (ended, .now) }
            }
            // A count of a million takes a while, and the workers need the processor.
            try await Task.sleep(for: max(.seconds(1), began.duration(to: .now) * 9))
        }
    }

    private func ended(_ options: ConnectionOptions) async throws -> Int {
        let connection = try await Connection.open(options, name: "count")
        defer { Task { await connection.close() } }  // also after an error; nothing waits for it
        return try await connection.int(
            """
            select count(*) from millrace.history h
             where h.outcome = 1 and h.kind = (select k.id from millrace.kind k where k.name = 'practice.take')
            """, deadline: .seconds(120)
        )
    }

    // MARK: The judge

    private func report(
        _ state: State, _ options: ConnectionOptions, acts: Int, called: Double, seconds: Double, bad: [String]
    ) async throws -> ([Bar], [(String, JSONValue)]) {
        let connection = try await Connection.open(options, name: "judge")
        func number(_ select: SQL, _ values: [Parameter] = []) async throws(PostgresError) -> Int {
            try await connection.int(select, values, deadline: .seconds(900))
        }
        try await connection.execute("analyze public.practice_record", deadline: .seconds(300))
        let lost = try await number(
            "select count(*) from (select 'took ' || n from generate_series(0, $1 - 1) n except select what from public.practice_record) x",
            [.int4(Int32(pairs))])
        let twice = try await number(
            "select count(*) from (select what from public.practice_record group by what having count(distinct job) > 1) x"
        )
        let greedy = try await number(
            "select count(*) from (select job from public.practice_record group by job having count(distinct what) > 1) x"
        )
        // The run that recorded it, where a run did, had lost its lease by then.
        let stale = try await number(
            """
            select count(*) from millrace.step s join millrace.history h on h.id = s.job and h.session = s.session and h.number = s.number
             where h.outcome = 7 and h.finished < s.at
            """)
        let unfinished = try await number(Self.unfinished)
        let jobs = try await number("select count(*) from public.practice_made")
        await connection.close()
        invocation.console.note(
            "\(Humane.count(pairs)) signals, \(Humane.count(acts - 2 * pairs)) of them sent twice, and \(Humane.count(jobs)) jobs in "
                + "\(Humane.decimal(seconds, places: 0)) s (calls: \(Humane.decimal(called, places: 0)) s), "
                + "\(state.kills) workers killed, \(state.restarts) crashes of Postgres"
                + (bad.isEmpty ? "" : "; \(bad.joined(separator: "; "))"))
        return (
            [
                .atMost("signals that no job took", 0, measured: Double(lost), unit: ""),
                .atMost("signals that two jobs took", 0, measured: Double(twice), unit: ""),
                .atMost("jobs that took two signals", 0, measured: Double(greedy), unit: ""),
                .atMost("signals taken by a run without its lease", 0, measured: Double(stale), unit: ""),
                .atMost("jobs that have not ended well", 0, measured: Double(unfinished), unit: ""),
                .atLeast("workers killed", 5, measured: Double(state.kills), unit: ""),
                .atLeast("crashes of Postgres", Double(restarts), measured: Double(state.restarts), unit: ""),
            ],
            [
                ("pairs", .init(pairs)), ("seconds", .double(seconds)), ("seconds_of_calls", .double(called)),
                ("kills", .init(state.kills)), ("restarts", .init(state.restarts)), ("lost", .init(lost)),
                ("taken_twice", .init(twice)), ("taken_stale", .init(stale)), ("unfinished", .init(unfinished)),
            ]
        )
    }
}
