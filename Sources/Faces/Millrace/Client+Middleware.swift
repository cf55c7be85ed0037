public import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Traces

extension Client {
    /// Sees each job before this client enqueues it. It may change the job, and refuses it by an error, which the caller gets.
    ///
    /// Arguments are plain JSON, also of kinds whose arguments are encrypted later.
    public typealias Middleware = @Sendable (_ job: inout NewJob) async throws -> Void

    /// Has every job of this client go through a middleware; what is added first sees it first.
    ///
    /// ```swift
    /// millrace.use { job in
    ///     job.tags.append("web")
    ///     job.tenant = job.tenant ?? "acme"
    /// }
    /// ```
    /// It sees what ``enqueue(_:options:)``, its siblings and ``start(_:id:in:at:queue:priority:tenant:tags:idHeldFor:)`` enqueue, and not what
    /// schedules, handlers, statements for other drivers and other programs do.
    public func use(_ middleware: @escaping Middleware) {
        layers.withLock { $0.append(middleware) }
    }

    /// The job as it goes to the database.
    func finished(_ job: NewJob) async throws(QueueError) -> NewJob {
        var job = try await layered(job).traced
        if job.encrypted { job.args = try seal(job.args, kind: job.kind) }
        return job
    }

    private func layered(_ job: NewJob) async throws(QueueError) -> NewJob {
        var job = job
        for layer in layers.withLock({ $0 }) {
            do {
                try await layer(&job)
            } catch let error as QueueError {
                throw error
            } catch is CancellationError {
                throw QueueError(.cancelled, "The enqueue was cancelled.")
            } catch {
                throw QueueError(.refused, "A middleware of the client refused a job of kind \(job.kind): \(error)")
            }
        }
        return job
    }

    /// Many jobs, each of which a middleware may change.
    func enqueueThroughLayers<Work: Job>(
        _ jobs: [Work], _ options: EnqueueOptions
    ) async throws(QueueError) {
        var layered: [NewJob] = []
        layered.reserveCapacity(jobs.count)
        for job in jobs { layered.append(try await self.layered(try NewJob(job, options))) }
        if let shared = NewJob.shared(by: layered) {
            var args: [[UInt8]] = []
            for job in layered { args.append(job.encrypted ? try seal(job.args, kind: job.kind) : job.args) }
            return try await enqueueBulk(shared, args)
        }
        var finished: [NewJob] = []
        finished.reserveCapacity(jobs.count)
        for var job in layered {
            job = job.traced
            if job.encrypted { job.args = try seal(job.args, kind: job.kind) }
            finished.append(job)
        }
        let all = finished
        try await using { connection throws(PostgresError) in
            do throws(FailedStatement) {
                try await Queue.enqueueAll(all, on: connection, deadline: .seconds(60))
            } catch {
                throw error.error
            }
        }
    }

    /// In one statement, as parts of the trace in which this runs.
    func enqueueBulk(_ shared: NewJob, _ args: [[UInt8]]) async throws(QueueError) {
        let trace = TraceContext.current
        _ = try await using { connection throws(PostgresError) in
            try await Queue.enqueueBulk(
                kind: shared.kind, args: args, queue: shared.queue, priority: shared.priority, delay: shared.delay,
                tenant: shared.tenant, maxAttempts: shared.maxAttempts, limitKey: shared.limitKey,
                version: shared.version ?? 0, trace: trace, on: connection, deadline: .seconds(60))
        }
    }
}

extension NewJob {
    /// The options that all of these have, where one statement can say them; nil: they differ, or there is more to be said.
    fileprivate static func shared(by jobs: [NewJob]) -> NewJob? {
        guard let first = jobs.first else { return nil }
        let isPlain = jobs.allSatisfy { job in
            job.kind == first.kind && job.queue == first.queue && job.priority == first.priority
                && job.delay == first.delay && job.tenant == first.tenant && job.limitKey == first.limitKey
                && job.maxAttempts == first.maxAttempts && job.version == first.version
                && job.runAt == nil && job.uniqueKey == nil && job.after == nil && job.metadata == nil
                && job.options == nil && job.tags.isEmpty
        }
        return isPlain ? first : nil
    }
}
