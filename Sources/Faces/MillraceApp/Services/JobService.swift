public import Foundation

/// Jobs of the app's own, signals and events. The clients' role needs a grant for each kind and type that apps may use (`grant_enqueue`,
/// `grant_publish`); a person sees its own jobs only.
public struct JobService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    // MARK: adding

    /// Adds a job. Returns its id; where one with its key waits already, that one's.
    public func enqueue(_ job: JobRequest) async throws -> Int64 { try await doors.act("enqueue", job.arguments) }

    /// Adds many, all or none.
    public func enqueue(_ jobs: [JobRequest]) async throws -> [EnqueuedJob] {
        let rows = jobs.map { AppValue.object($0.arguments.filter { $0.value != .null }) }
        return try await doors.act("enqueue_many", ["jobs": .array(rows)])
    }

    /// Has a template filled in by a job. Returns the job.
    public func render(_ template: String, _ data: [String: AppValue], locale: String? = nil) async throws -> Int64 {
        try await doors.act(
            "template_render", ["template": .string(template), "data": .object(data), "locale": AppValue(locale)])
    }

    // MARK: reading

    /// nil: there is none that the person may see.
    public func job(_ id: Int64) async throws -> AppJob? {
        try await doors.ask("job", ["id": .int(id)], as: [AppJob].self).first
    }

    /// The person's own, the newest first.
    public func mine(after job: Int64? = nil) async throws -> [AppJob] {
        try await doors.ask("own_jobs", ["after": job.map { .int($0) } ?? .null])
    }

    /// The job of a kind that has this key; nil: none waits or runs.
    public func job(of kind: String, key: String) async throws -> Int64? {
        try await doors.ask("job_of_key", ["kind": .string(kind), "unique_key": .string(key)])
    }

    /// What it returned; nil: nothing, or it has not ended.
    public func result<Result: Decodable>(of job: Int64, as type: Result.Type = Result.self) async throws -> Result? {
        try await doors.ask("result", ["id": .int(job)])
    }

    /// Why it is not running; nil: there is none that the person may see.
    public func why(_ job: Int64) async throws -> JobReason? { try await doors.ask("why", ["id": .int(job)]) }

    /// The jobs of its flow, from the top.
    public func flow(_ job: Int64, most: Int = 20) async throws -> [FlowJob] {
        try await doors.ask("flow_tree", ["id": .int(job), "most": AppValue(most)])
    }

    /// What its runs have published behind a number, the oldest first.
    public func published(_ job: Int64, after number: Int64 = 0) async throws -> [PublishedValue] {
        try await doors.ask("published", ["id": .int(job), "after": .int(number)])
    }

    /// The state that its runs last gave; nil: none.
    public func state(_ job: Int64) async throws -> JobStateValue? {
        try await doors.ask("state_value", ["id": .int(job)], as: [JobStateValue].self).first
    }

    /// How it goes on, from now to its end.
    public func follow(_ job: Int64) -> AsyncThrowingStream<JobUpdate, any Error> {
        let events = doors.changes(ofJob: job)
        return AsyncThrowingStream<JobUpdate, any Error>(keeping: .bufferingNewest(64)) { consumer in
            for try await event in events {
                guard case .change(let change) = event, let data = change.data else { continue }
                consumer.yield(try AppJSON.decode(JobUpdate.self, from: data))
            }
        }
    }

    // MARK: acting

    /// False: it had ended.
    public func cancel(_ job: Int64) async throws -> Bool { try await doors.act("cancel", ["id": .int(job)]) }

    /// All jobs of its flow. Returns how many were cancelled.
    public func cancelFlow(of job: Int64) async throws -> Int {
        try await doors.act("flow_cancel", ["id": .int(job)])
    }

    /// Tells a job of the person's that waits for a signal of this name and key. False: it was told before by this id.
    public func signal(
        _ name: String, key: String = "", _ payload: AppValue = .null, id: String? = nil
    ) async throws -> Bool {
        try await doors.act(
            "signal", ["name": .string(name), "key": .string(key), "payload": payload, "id": AppValue(id)])
    }

    /// The same for one job and no other.
    public func signal(
        job: Int64, _ name: String, _ payload: AppValue = .null, id: String? = nil
    ) async throws -> Bool {
        try await doors.act(
            "signal_job", ["job": .int(job), "name": .string(name), "payload": payload, "id": AppValue(id)])
    }

    /// Publishes an event for other programs. Returns its id.
    public func publish(
        _ type: String, source: String, _ data: AppValue, subject: String? = nil, id: UUID = UUID()
    ) async throws -> UUID {
        try await doors.act(
            "event_publish",
            [
                "type": .string(type), "source": .string(source), "data": data, "subject": AppValue(subject),
                "id": AppValue(id),
            ])
    }
}

/// A job to be added.
public struct JobRequest: Sendable, Hashable {
    /// What is to be done.
    public var kind: String
    /// What it is given.
    public var args: [String: AppValue]
    /// Where it waits; nil: where its kind usually does.
    public var queue: String?
    /// When; nil: now.
    public var runAt: Date?
    /// While one with this key waits or runs there is no other.
    public var uniqueKey: String?

    /// From its parts.
    public init(
        _ kind: String, _ args: [String: AppValue] = [:], queue: String? = nil, runAt: Date? = nil,
        uniqueKey: String? = nil
    ) {
        (self.kind, self.args, self.queue, self.runAt, self.uniqueKey) = (kind, args, queue, runAt, uniqueKey)
    }

    var arguments: [String: AppValue] {
        [
            "kind": .string(kind), "args": .object(args), "queue": AppValue(queue), "run_at": AppValue(runAt),
            "unique_key": AppValue(uniqueKey),
        ]
    }
}
