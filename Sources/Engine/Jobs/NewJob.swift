public import FoundationEssentials

/// A job to enqueue, with everything that SQL's `millrace.enqueue` takes.
public struct NewJob: Sendable {
    /// Its kind.
    public var kind: String
    /// Its arguments as JSON text.
    public var args: [UInt8]
    /// Whether the client encrypts its arguments.
    public var encrypted = false
    /// nil: the kind's own queue.
    public var queue: String?
    /// 0 first to 9 last; nil: 4.
    public var priority: Int?
    /// Not before this time; nil: at once.
    public var runAt: Date?
    /// Not before this much time has passed, by the database's clock; wins over ``runAt``.
    public var delay: Duration?
    /// At most one living job holds a key.
    public var uniqueKey: String?
    /// What happens when the key is held.
    public var onConflict: OnConflict
    /// How long the key stays held after the job has ended in any way; nil: not at all.
    public var uniqueFor: Duration?
    /// The scope within which the key is unique; nil: the kind.
    public var uniqueScope: UniqueScope?
    /// The key of a concurrency or rate limit.
    public var limitKey: String?
    /// The tenant it belongs to.
    public var tenant: String?
    /// The jobs it waits for; nil: none.
    public var after: After?
    /// The version of its arguments, see ``Job/version``; nil: none.
    public var version: Int?
    /// nil: the kind's policy.
    public var maxAttempts: Int?
    /// Labels to find it by.
    public var tags: [String]
    /// A JSON object that travels along, trace context for example.
    public var metadata: [UInt8]?
    /// The further options of `millrace.enqueue` as a JSON object.
    public var options: [UInt8]?

    /// A job of a kind with arguments; set the rest on the value.
    public init(kind: String, args: [UInt8] = Array("{}".utf8)) {
        self.kind = kind
        self.args = args
        onConflict = .skip
        tags = []
    }
}

/// What enqueueing does when the unique key is held.
public enum OnConflict: String, Sendable, CaseIterable {
    /// Nothing is enqueued; the holder's number is returned.
    case skip
    /// While the holder waits it takes the new arguments, time and the rest; while it runs, one successor is queued.
    case replace
    /// The call fails.
    case error
}

/// The scope within which a unique key is unique.
public enum UniqueScope: String, Sendable, CaseIterable {
    /// Jobs of its kind.
    case kind
    /// Jobs of its queue.
    case queue
    /// Jobs of its tenant.
    case tenant
    /// All jobs.
    case all
}
