public import FoundationEssentials
public import MillraceJobs
import MillraceQueues
import Postgres

extension Client {
    /// Starts a workflow, or finds the one that has this id: two callers that start it at once start one job, with the arguments of the first.
    /// The id stays taken after the job has ended, in whatever way, so that a caller who comes late gets the same job and its result. A dead one
    /// is started again by `retry` of its handle, and not under a new id.
    ///
    /// ```swift
    /// let order = try await millrace.start(PlaceOrder(number: 7), id: "order-7")
    /// let receipt = try await order.result()
    /// ```
    /// - Parameters:
    ///   - flow: The work.
    ///   - id: Of the caller's own, 1 to 512 characters, unique within the kind. It is the job's unique key.
    ///   - delay: Not before so long from now.
    ///   - time: Not before this time.
    ///   - idHeldFor: How long the id stays taken after the end, from a second to a year. The usual 14 days are as long as a queue keeps what has
    ///     ended, unless it is told otherwise.
    public func start<Flow: Workflow>(
        _ flow: Flow, id: String, in delay: Duration? = nil, at time: Date? = nil, queue: String? = nil,
        priority: Int? = nil, tenant: String? = nil, tags: [String] = [],
        idHeldFor: Duration = .seconds(14 * 86_400)
    ) async throws(QueueError) -> WorkflowHandle<Flow> {
        let job = try await enqueue(
            flow, in: delay, at: time, unique: id, uniqueFor: idHeldFor, queue: queue, priority: priority,
            tenant: tenant, tags: tags)
        return WorkflowHandle(id: id, job: job, client: self)
    }

    /// The workflow that was started under an id; nil when there is none, or no longer.
    /// - Parameter tenant: As it was given at its start, by a caller that acts for several tenants.
    public func handle<Flow: Workflow>(
        for type: Flow.Type, id: String, tenant: String? = nil
    ) async throws(QueueError) -> WorkflowHandle<Flow>? {
        try await using { connection throws(PostgresError) in
            try await Queue.job(ofKey: id, kind: Flow.kind, tenant: tenant, on: connection)
        }.map { WorkflowHandle(id: id, job: $0, client: self) }
    }

    /// Tells one job, which waits for it with ``Context/signal(_:as:timeout:step:)`` or will, and no other. Refused when the job has ended.
    /// - Parameter id: The same id again is the same signal, which is sent once.
    /// - Returns: False if its id was known already.
    @discardableResult
    public func signal(
        job: Int64, _ name: String, payload: some Encodable & Sendable, id: String? = nil
    ) async throws(QueueError) -> Bool {
        let bytes: [UInt8]
        do {
            bytes = Array(try JSONEncoder().encode(payload))
        } catch {
            throw QueueError(.invalid, "The payload of the signal cannot be written as JSON.")
        }
        return try await using { connection throws(PostgresError) in
            try await Queue.signal(name, job: job, payload: bytes, id: id, on: connection)
        }
    }
}

/// A workflow that was started: its end, and what can be said to it and read of it meanwhile.
public struct WorkflowHandle<Flow: Workflow>: Sendable {
    /// As it was started.
    public let id: String
    /// The number of its job.
    public let job: Int64
    let client: Client

    /// Waits until it has succeeded, and returns what its handler returned. One that was cancelled or died is an error of the class
    /// ``QueueError/Class/died``.
    public func result(timeout: Duration = .seconds(60)) async throws(QueueError) -> Flow.Result {
        try await client.wait(for: job, as: Flow.Result.self, timeout: timeout)
    }

    /// How it stands; nil when its job is no longer kept.
    public func status() async throws(QueueError) -> JobStatus? {
        try await client.job(job)
    }

    /// Tells it something; its handler waits with ``Context/signal(_:as:timeout:step:)``. False if the signal's id was known already.
    @discardableResult
    public func signal(
        _ name: String, _ payload: some Encodable & Sendable, id: String? = nil
    ) async throws(QueueError) -> Bool {
        try await client.signal(job: job, name, payload: payload, id: id)
    }

    /// Ends it. What it has done is undone, as far as its steps say how. False when it had ended already.
    @discardableResult
    public func cancel() async throws(QueueError) -> Bool {
        try await client.cancel(job)
    }

    /// Runs it again if it is dead or cancelled. False when there was nothing to do.
    /// - Parameter fresh: Forgets its steps: all of them are done again.
    @discardableResult
    public func retry(fresh: Bool = false) async throws(QueueError) -> Bool {
        try await client.retry(job, fresh: fresh)
    }

    /// The state that it last gave; nil when it has given none.
    public func state<Value: Decodable>(as type: Value.Type) async throws(QueueError) -> Value? {
        try await client.state(of: job, as: type)
    }

    /// What it publishes, from a number on, until it has ended.
    public func stream<Value: Decodable & Sendable>(as type: Value.Type, from number: Int64 = 1) -> JobStream<Value> {
        client.stream(of: job, as: type, from: number)
    }
}
