import Encryption
public import FoundationEssentials
import MillraceQueues
import Postgres
import Synchronization
import Traces

/// Enqueues jobs and asks after them, from any number of tasks at once.
///
/// ```swift
/// let millrace = try Client(database: .environment)
/// try await millrace.enqueue(SendReceipt(order: 7), in: .seconds(300), unique: "receipt-7")
/// ```
public final class Client: Sendable {
    let pool: Pool
    let keys: Keyring
    let layers = Mutex<[Middleware]>([])

    /// Connects when first used, with at most `connections` at a time. The first of `keys` encrypts the arguments of kinds that
    /// ask for it.
    public init(
        database: Database = .environment, keys: EncryptionKeys = .environment, connections: Int = 4
    ) throws(QueueError) {
        self.keys = try keys.ring()
        pool = Pool(try database.options().database, size: max(1, connections))
    }

    /// Closes all connections; calls still under way end first.
    public func close() async {
        await pool.close()
    }

    /// Enqueues one job and returns its number; where a unique key is held, the holder's.
    /// - Parameters:
    ///   - job: The work.
    ///   - delay: Not before so long from now.
    ///   - time: Not before this time.
    ///   - unique: At most one living job holds this key.
    ///   - uniqueFor: How long the key stays held after the job has ended, from a second to a year.
    ///   - onConflict: What happens when it is held.
    ///   - after: It waits for these jobs.
    ///   - metadata: An object that travels along; its handler finds it in ``Context/metadata(as:)``.
    /// - Throws: ``QueueError``. Of the class `unreachable`, nobody knows whether there is a job now: with a unique key a second call makes no second
    ///   one. `conflict`: the key is held, and `onConflict` is `.error`. `invalid`, `tooLarge`, `forbidden`: the database takes no such job.
    ///   `misconfigured`: its arguments must be encrypted, and no key is set.
    @discardableResult
    public func enqueue<Work: Job>(
        _ job: Work, in delay: Duration? = nil, at time: Date? = nil, unique: String? = nil,
        uniqueFor: Duration? = nil, onConflict: OnConflict = .skip,
        queue: String? = nil, priority: Int? = nil, tenant: String? = nil, limitKey: String? = nil,
        maxAttempts: Int? = nil,
        tags: [String] = [], after: After? = nil, metadata: (any Encodable & Sendable)? = nil
    ) async throws(QueueError) -> Int64 {
        let options = EnqueueOptions(
            delay: delay, runAt: time, uniqueKey: unique, uniqueFor: uniqueFor, onConflict: onConflict, queue: queue,
            priority: priority, tenant: tenant, limitKey: limitKey, maxAttempts: maxAttempts, tags: tags, after: after,
            metadata: metadata)
        return try await enqueue(job, options: options)
    }

    /// Enqueues one job with options that stand in a value, and returns its number; where a unique key is held, the holder's.
    @discardableResult
    public func enqueue<Work: Job>(_ job: Work, options: EnqueueOptions) async throws(QueueError) -> Int64 {
        try await enqueue(try NewJob(job, options))
    }

    /// Enqueues a job of any kind, by name.
    @discardableResult
    public func enqueue(_ job: NewJob) async throws(QueueError) -> Int64 {
        let new = try await finished(job)
        return try await using { connection throws(PostgresError) in try await Queue.enqueue(new, on: connection) }
    }

    /// Enqueues many jobs of one kind, all or none, in one round trip: the fast way. Where a ``Middleware`` gives them options of their own, such
    /// as metadata, they are enqueued one by one, in one transaction.
    public func enqueue<Work: Job>(
        contentsOf jobs: [Work], in delay: Duration? = nil, queue: String? = nil, priority: Int? = nil,
        tenant: String? = nil, limitKey: String? = nil,
        maxAttempts: Int? = nil
    ) async throws(QueueError) {
        guard !jobs.isEmpty else { return }
        guard layers.withLock({ $0.isEmpty }) else {
            let options = EnqueueOptions(
                delay: delay, queue: queue, priority: priority, tenant: tenant, limitKey: limitKey,
                maxAttempts: maxAttempts)
            return try await enqueueThroughLayers(jobs, options)
        }
        var args: [[UInt8]] = []
        args.reserveCapacity(jobs.count)
        for job in jobs {
            let plain = try Self.encode(job)
            args.append(Work.encrypted ? try seal(plain, kind: Work.kind) : plain)
        }
        var shared = NewJob(kind: Work.kind)
        shared.version = Work.version
        (shared.queue, shared.priority, shared.delay, shared.tenant) = (queue, priority, delay, tenant)
        (shared.limitKey, shared.maxAttempts) = (limitKey, maxAttempts)
        try await enqueueBulk(shared, args)
    }

    /// Limits how many jobs of a queue, a key or a tenant run at once, and how often they start; nil takes the limit away. It holds
    /// at once and for the whole fleet; jobs that run already go on. True when it changed something. For the admin role.
    @discardableResult
    public func setLimit(of subject: Limit.Subject, to limit: Limit?) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in
            try await Queue.setLimit(of: subject, to: limit, on: connection)
        }
    }

    /// A job's state; nil when there is no such job, or the caller may not see it.
    public func job(_ id: Int64) async throws(QueueError) -> JobStatus? {
        try await using { connection throws(PostgresError) in try await Queue.row(of: id, on: connection) }.map(
            JobStatus.init)
    }

    /// Asks for a job's end. A waiting one is cancelled at once, a running one within a second, if its handler heeds it.
    /// False when it had ended already.
    public func cancel(_ id: Int64) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in try await Queue.cancel(id, on: connection) }
    }

    /// Runs a dead or cancelled job again, or a scheduled one now. False when there was nothing to do.
    /// - Parameter fresh: Forgets the steps that earlier runs recorded: all of them are done again.
    public func retry(_ id: Int64, fresh: Bool = false) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in try await Queue.retry(id, fresh: fresh, on: connection) }
    }

    /// Runs dead jobs again, each from its first attempt: all of them, or those of a kind, queue or tag, with an error that contains a
    /// text, or that died within a period. Jobs whose unique key is held by another job stay dead, and so do those whose arguments are no
    /// longer kept.
    public func redrive(
        kind: String? = nil, queue: String? = nil, tag: String? = nil, error: String? = nil, since: Date? = nil,
        until: Date? = nil
    ) async throws(QueueError) -> Redriven {
        let filter = DeadFilter(
            JobFilter(queue: queue, kind: kind, tag: tag), error: error, since: since.map { .at($0) },
            until: until.map { .at($0) })
        let operation = try await using { connection throws(PostgresError) in
            try await Queue.startRedrive(filter, on: connection)
        }
        let row = try await finish(operation)
        let dropped = try await using { connection throws(PostgresError) in
            row.refused > 0 ? try await Queue.withoutArguments(of: operation, on: connection) : 0
        }
        return Redriven(
            retried: row.done, refused: row.refused - dropped, withoutArguments: dropped, operation: operation)
    }

    /// Takes a redrive back, while it is not ten minutes old: its jobs are dead again, but for those that have run. Returns how many.
    @discardableResult
    public func undo(_ redriven: Redriven) async throws(QueueError) -> Int {
        _ = try await using { connection throws(PostgresError) in
            try await Queue.change(redriven.operation, .undo, on: connection)
        }
        return try await finish(redriven.operation).undone
    }

    /// Takes an operation's steps until it, or its undo, has ended; workers may take some too.
    private func finish(_ operation: Int64) async throws(QueueError) -> OperationRow {
        while true {
            let (step, row) = try await using { connection throws(PostgresError) in
                (
                    try await Queue.stepOperation(operation, on: connection),
                    try await Queue.operation(operation, on: connection)
                )
            }
            guard let row else { throw QueueError(.notFound, "There is no operation \(operation).") }
            guard row.isOpen else { return row }
            guard let wait = step.wait, wait > .zero else { continue }
            do {
                try await Task.sleep(for: min(wait, .seconds(1)))
            } catch {
                throw QueueError(.cancelled, "The wait was cancelled.")
            }
        }
    }

    /// Waits until a job has ended, and returns how.
    public func wait(for id: Int64, timeout: Duration = .seconds(60)) async throws(QueueError) -> JobStatus {
        let deadline = ContinuousClock.now + timeout
        var pause = Duration.milliseconds(20)
        while true {
            guard let status = try await job(id) else { throw QueueError(.notFound, "There is no job \(id).") }
            if status.state.isFinal { return status }
            guard ContinuousClock.now + pause < deadline else {
                throw QueueError(.timedOut, "Job \(id) is still \(status.state.rawValue) after \(timeout).")
            }
            do {
                try await Task.sleep(for: pause)
            } catch {
                throw QueueError(.cancelled, "The wait was cancelled.")
            }
            pause = min(pause * 1.5, .seconds(1))
        }
    }

    func using<Value: Sendable>(
        _ body: @Sendable (Connection) async throws(PostgresError) -> Value
    ) async throws(QueueError) -> Value {
        do {
            return try await pool.withConnection(body)
        } catch let error as PostgresError {
            throw QueueError(error)
        } catch {
            throw QueueError(.refused, "\(error)")
        }
    }

    func seal(_ args: [UInt8], kind: String) throws(QueueError) -> [UInt8] {
        do {
            return try keys.seal(args, kind: kind)
        } catch {
            throw QueueError(error)
        }
    }

    static func encode(_ job: some Job) throws(QueueError) -> [UInt8] {
        do {
            return Array(try JSONEncoder().encode(job))
        } catch {
            throw QueueError(.invalid, "The arguments of \(type(of: job)) cannot be written as JSON.")
        }
    }
}

extension NewJob {
    init<Work: Job>(_ job: Work, _ options: EnqueueOptions) throws(QueueError) {
        self.init(kind: Work.kind, args: try Client.encode(job))
        encrypted = Work.encrypted
        version = Work.version > 0 ? Work.version : nil
        runAt = options.runAt
        delay = options.delay
        uniqueKey = options.uniqueKey
        uniqueFor = options.uniqueFor
        uniqueScope = options.uniqueScope
        onConflict = options.onConflict
        queue = options.queue
        priority = options.priority
        tenant = options.tenant
        limitKey = options.limitKey
        maxAttempts = options.maxAttempts
        tags = options.tags
        after = options.after
        if let metadata = options.metadata {
            do {
                self.metadata = Array(try JSONEncoder().encode(metadata))
            } catch {
                throw QueueError(.invalid, "The metadata of a job of kind \(Work.kind) cannot be written as JSON.")
            }
        }
        if let text = options.traceparent,
            let caller = TraceContext(traceparent: text, tracestate: options.tracestate)
        {
            metadata = caller.carried(in: metadata)
        }
    }

    /// The same job, as a part of the trace in which it is enqueued, unless it names one itself.
    var traced: NewJob {
        guard let current = TraceContext.current else { return self }
        var job = self
        job.metadata = current.carried(in: metadata)
        return job
    }
}
