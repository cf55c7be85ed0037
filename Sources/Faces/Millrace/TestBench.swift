import Encryption
public import FoundationEssentials
public import MillraceJobs
package import MillraceQueues
import Postgres
import Workers

/// For tests of code that uses Millrace: run a handler without a database, drain a queue in this process, look at enqueued jobs, move the
/// clock.
///
/// ```swift
/// let bench = try TestBench(worker: worker, database: .url(testDatabase))
/// try await bench.prepare()
/// try await signUp(user)                                            // the code under test enqueues
/// #expect(try await bench.enqueued(SendReceipt.self).count == 1)
/// try await bench.advance(by: .seconds(300))
/// let report = try await bench.drain()
/// #expect(report.finished == 1)
/// ```
public struct TestBench: Sendable {
    /// A job of a kind that waits or runs.
    public struct Enqueued<Work: Job>: Sendable {
        /// Its number.
        public let id: Int64
        /// Its arguments.
        public let job: Work
        /// ready, scheduled, blocked or running.
        public let state: JobState
        /// The queue it waits in.
        public let queue: String
    }

    private let worker: Worker
    private let client: Client
    /// A drain costs milliseconds where it finds its connections open.
    private let kept = KeptConnections()

    /// A bench for the handlers of one worker, which should not run elsewhere.
    public init(worker: Worker, database: Database) throws(QueueError) {
        self.worker = worker
        client = try Client(database: database, keys: .none, connections: 2)
    }

    /// Makes or updates the schema's core, with a clock that can be moved. Only ever on a test database. A schema with rooms, such as mail, is made by
    /// `millrace migrate --test-clock --rooms …` before.
    public func prepare() async throws(QueueError) {
        try await prepare(by: Migrator(testClock: true))
    }

    package func prepare(by migrator: Migrator) async throws(QueueError) {
        let state = try? await client.using { connection throws(PostgresError) in
            try await Queue.schemaState(on: connection)
        }
        if let state, state.version == Queue.schemaVersion, state.testClock, migrator.adding.isEmpty { return }
        try await client.migrate(by: migrator)
    }

    /// Runs one job through its handler and all middleware, in this process and without a database. Errors are thrown unchanged. Where
    /// the run waits for what the notes do not hold, the verdict is `waiting`.
    /// - Parameter notes: Records what the run leaves, and holds what earlier runs have left: with the same notes a second run
    ///   skips the steps of the first. Also holds the signals, answers and ends of jobs that the run waits for.
    public func run<Work: Job>(
        _ job: Work, attempt: Int = 1, tenant: String? = nil, notes: RunNotes = RunNotes()
    ) async throws -> Verdict {
        let handler = try registered(Work.self)
        return try await run(job, handler, attempt: attempt, tenant: tenant, notes: notes, inside: handler.body)
    }

    /// Runs jobs of a chunk kind through its handler, in chunks no larger than the worker would make, and returns the verdicts in
    /// their order. Errors come out as they are.
    public func run<Work: Job>(chunk jobs: [Work], attempt: Int = 1, tenant: String? = nil) async throws -> [Verdict] {
        let handler = try registered(Work.self)
        guard let chunks = handler.chunks else {
            throw QueueError(.misconfigured, "The handler of \(Work.kind) takes one job at a time.")
        }
        var verdicts: [Verdict] = []
        for start in stride(from: 0, to: jobs.count, by: chunks.size) {
            let part = Array(jobs[start..<min(start + chunks.size, jobs.count)])
            let running = chunks.open(part.count)
            verdicts += try await withThrowingTaskGroup(of: (Int, Verdict).self) { group in
                for (index, job) in part.enumerated() {
                    group.addTask {
                        (
                            index,
                            try await run(
                                job, handler, attempt: attempt, tenant: tenant, notes: RunNotes(), inside: running.run)
                        )
                    }
                }
                var said: [Int: Verdict] = [:]
                for try await (index, verdict) in group { said[index] = verdict }
                return part.indices.compactMap { said[$0] }
            }
        }
        return verdicts
    }

    private func registered<Work: Job>(_ type: Work.Type) throws(QueueError) -> Handler {
        guard let handler = worker.handler(for: Work.kind) else {
            throw QueueError(.misconfigured, "No handler is registered for \(Work.kind).")
        }
        return handler
    }

    private func run<Work: Job>(
        _ job: Work, _ handler: Handler, attempt: Int, tenant: String?, notes: RunNotes,
        inside body: @escaping Handler.Body
    ) async throws -> Verdict {
        let now = Date()
        let context = Context(
            id: 0, kind: Work.kind, queue: handler.queue ?? "default", attempt: attempt,
            maxAttempts: handler.retries.attempts,
            crashes: 0, enqueuedAt: now, claimedAt: now, session: 0, number: 0, tenant: tenant, tags: [], metadata: nil,
            backend: notes.backend)
        let args = Array(try JSONEncoder().encode(job))
        var step: @Sendable () async throws -> Verdict = { try await context.end { try await body(args, context) } }
        for layer in worker.layers.reversed() {
            let inner = step
            step = { try await layer(context, inner) }
        }
        defer { notes.keep(result: context.leavings.result) }
        return try await step()
    }

    /// Works through everything that waits or is due, with the worker's own handlers and schedules, delivers signals, answers and the
    /// ends of jobs to the jobs that wait for them, and returns when nothing is left. Jobs of kinds without a handler stay.
    public func drain(timeout: Duration = .seconds(30)) async throws(QueueError) -> WorkReport {
        let engine = try worker.makeEngine(quiet: true, kept: kept)
        // Before the first look, which would see nothing to do.
        for schedule in worker.schedules { try await client.schedule(schedule) }
        let running = Task { try await engine.run() }  // awaited below: the drain ends with it
        let deadline = ContinuousClock.now + timeout
        var late = false
        do throws(QueueError) {
            var settled = 0
            var pause = Duration.milliseconds(1)
            while settled < 2, !late {
                let left = try await client.using { connection throws(PostgresError) in
                    // The engine looks once a second at the ends that nobody was told of.
                    try await Queue.checkFlows(on: connection)
                    while try await Queue.advanceFlows(on: connection) {}
                    let wait = try await Queue.scheduleWait(on: connection)
                    let due = wait.nextAt.map { $0 <= wait.now } ?? false
                    return try await Queue.outstanding(on: connection, kinds: engine.kindNames) + (due ? 1 : 0)
                }
                settled = left == 0 ? settled + 1 : 0
                late = ContinuousClock.now > deadline
                try? await Task.sleep(for: pause)
                pause = settled > 0 ? .milliseconds(1) : min(pause * 2, .milliseconds(16))
            }
        } catch {
            engine.drain()
            _ = await running.result
            throw error
        }
        engine.drain()
        do {
            let report = WorkReport(try await running.value)
            if late { throw QueueError(.timedOut, "The queue was not empty after \(timeout).") }
            return report
        } catch let error as QueueError {
            throw error
        } catch let failure as Workers.JobWorker.Failure {
            throw QueueError(failure)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }

    /// The jobs of a kind that have not ended, oldest first.
    public func enqueued<Work: Job>(_ type: Work.Type) async throws(QueueError) -> [Enqueued<Work>] {
        let rows = try await client.using { connection throws(PostgresError) in
            try await Queue.waiting(kind: Work.kind, on: connection)
        }
        let keys = try worker.keyring()
        var found: [Enqueued<Work>] = []
        for row in rows {
            let args: [UInt8]
            do {
                args = try keys.open(row.args, kind: Work.kind)
            } catch {
                throw QueueError(error)
            }
            guard let job = try? JSONDecoder().decode(Work.self, from: Data(args)) else {
                throw QueueError(.invalid, "The arguments of job \(row.id) do not fit \(Work.kind).")
            }
            found.append(
                Enqueued(id: row.id, job: job, state: JobState(rawValue: row.state) ?? .ready, queue: row.queue))
        }
        return found
    }

    /// Moves the database's clock; jobs that come due run at the next drain. Returns the new time.
    @discardableResult
    public func advance(by duration: Duration) async throws(QueueError) -> Date {
        try await client.using { connection throws(PostgresError) in
            try await Queue.advanceTestClock(by: duration, on: connection)
        }
    }

    /// Closes the bench's connections.
    public func close() async {
        await kept.close()
        await client.close()
    }
}
