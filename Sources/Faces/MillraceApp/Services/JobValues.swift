public import Foundation

/// A job that was added, or was there.
public struct EnqueuedJob: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: Int64
    /// False: one with its key waited already.
    public let created: Bool

    /// For doubles of your own.
    public init(id: Int64, created: Bool) { (self.id, self.created) = (id, created) }
}

/// A job of the person's.
public struct AppJob: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: Int64
    /// What is to be done.
    public let kind: String
    /// Where it waits.
    public let queue: String
    /// `scheduled`, `ready`, `blocked`, `running`, `waiting`, `retrying`, `succeeded`, `cancelled`, `dead`, …
    public let state: String
    /// What it was given.
    public let args: AppValue?
    /// When it is due.
    public let runAt: Date?
    /// How often it was begun.
    public let attempt: Int
    /// How often it is begun at most.
    public let maxAttempts: Int?
    /// While it waits or runs there is no other with this key.
    public let uniqueKey: String?
    /// When it was added.
    public let enqueuedAt: Date
    /// When it was begun.
    public let startedAt: Date?
    /// When it ended.
    public let finishedAt: Date?

    /// For doubles of your own.
    public init(
        id: Int64, kind: String, queue: String, state: String, args: AppValue? = nil, runAt: Date? = nil,
        attempt: Int = 0, maxAttempts: Int? = nil, uniqueKey: String? = nil, enqueuedAt: Date,
        startedAt: Date? = nil, finishedAt: Date? = nil
    ) {
        (self.id, self.kind, self.queue, self.state, self.args) = (id, kind, queue, state, args)
        (self.runAt, self.attempt, self.maxAttempts) = (runAt, attempt, maxAttempts)
        (self.uniqueKey, self.enqueuedAt) = (uniqueKey, enqueuedAt)
        (self.startedAt, self.finishedAt) = (startedAt, finishedAt)
    }
}

/// Why a job is not running.
public struct JobReason: Sendable, Hashable, Decodable {
    /// Such as `time` or `queue_paused`; the guide *Why* has all of them.
    public let reason: String
    /// The same for people.
    public let sentence: String
    /// What to do about it.
    public let hint: String?
    /// What led to it.
    public let chain: [String]?

    /// For doubles of your own.
    public init(reason: String, sentence: String, hint: String? = nil, chain: [String]? = nil) {
        (self.reason, self.sentence, self.hint, self.chain) = (reason, sentence, hint, chain)
    }
}

/// A job in a flow.
public struct FlowJob: Sendable, Hashable, Decodable {
    /// How far below the top it is.
    public let depth: Int
    /// Its id.
    public let job: Int64
    /// What is to be done.
    public let kind: String?
    /// How it stands.
    public let state: String?
    /// How many wait for it.
    public let below: Int?
    /// How many of them are not listed.
    public let hidden: Int?

    /// For doubles of your own.
    public init(depth: Int, job: Int64, kind: String?, state: String?, below: Int? = nil, hidden: Int? = nil) {
        (self.depth, self.job, self.kind, self.state) = (depth, job, kind, state)
        (self.below, self.hidden) = (below, hidden)
    }
}

/// What a run has published.
public struct PublishedValue: Sendable, Hashable, Decodable {
    /// Its number: the next page begins behind it.
    public let n: Int64
    /// As the job has named it.
    public let key: String?
    /// What it is.
    public let value: AppValue?
    /// By which attempt.
    public let attempt: Int
    /// When.
    public let at: Date

    /// For doubles of your own.
    public init(n: Int64, key: String? = nil, value: AppValue?, attempt: Int, at: Date) {
        (self.n, self.key, self.value, self.attempt, self.at) = (n, key, value, attempt, at)
    }
}

/// The state that a job's runs last gave.
public struct JobStateValue: Sendable, Hashable, Decodable {
    /// What it is; nil: none was given.
    public let value: AppValue?
    /// By which attempt.
    public let attempt: Int?
    /// When.
    public let at: Date?
    /// How many values were published.
    public let published: Int?

    /// For doubles of your own.
    public init(value: AppValue?, attempt: Int? = nil, at: Date? = nil, published: Int? = nil) {
        (self.value, self.attempt, self.at, self.published) = (value, attempt, at, published)
    }
}

/// How far a job is, as its stream tells it.
public struct JobUpdate: Sendable, Hashable, Decodable {
    /// How it stands.
    public let state: String
    /// Which attempt it is.
    public let attempt: Int?
    /// What it says of itself.
    public let progress: AppValue?
    /// In words.
    public let message: String?

    /// For doubles of your own.
    public init(state: String, attempt: Int? = nil, progress: AppValue? = nil, message: String? = nil) {
        (self.state, self.attempt, self.progress, self.message) = (state, attempt, progress, message)
    }
}
