public import FoundationEssentials

/// When, where and how often a job runs, and what it waits for: all that enqueueing can be told besides the work itself.
///
/// ```swift
/// var options = EnqueueOptions(queue: "mail", uniqueKey: "receipt-7")
/// options.delay = .seconds(300)
/// try await millrace.enqueue(SendReceipt(order: 7), options: options)
/// ```
public struct EnqueueOptions: Sendable {
    /// Not before this much time has passed, by the database's clock; wins over ``runAt``. nil: at once.
    public var delay: Duration?
    /// Not before this time. nil: at once.
    public var runAt: Date?
    /// At most one living job holds a key. nil: it is not unique.
    public var uniqueKey: String?
    /// How long the key stays held after the job has ended in any way, from a second to a year. nil: not at all.
    public var uniqueFor: Duration?
    /// The scope within which the key is unique. nil: the kind.
    public var uniqueScope: UniqueScope?
    /// What happens when the key is held.
    public var onConflict = OnConflict.skip
    /// The queue. nil: that of the kind's handler.
    public var queue: String?
    /// 0 first to 9 last. nil: 4.
    public var priority: Int?
    /// The tenant it belongs to: tenants share the slots fairly. nil: none.
    public var tenant: String?
    /// The key of a concurrency or rate limit. nil: none.
    public var limitKey: String?
    /// How often it is tried at most. nil: the kind's policy.
    public var maxAttempts: Int?
    /// Labels to find it by.
    public var tags: [String] = []
    /// The jobs it waits for. nil: none.
    public var after: After?
    /// An object that travels along; its handler finds it in ``Context/metadata(as:)``. nil: none.
    public var metadata: (any Encodable & Sendable)?
    /// The `traceparent` header of W3C Trace Context, as your caller sent it: the run belongs to that trace. One that is malformed is left out.
    /// nil: within a handler the run's own, else none.
    public var traceparent: String?
    /// The `tracestate` header beside it. nil: none.
    public var tracestate: String?

    /// At once, in the kind's own queue, with the kind's own policy, but for what is given.
    public init(
        delay: Duration? = nil, runAt: Date? = nil, uniqueKey: String? = nil, uniqueFor: Duration? = nil,
        uniqueScope: UniqueScope? = nil, onConflict: OnConflict = .skip, queue: String? = nil, priority: Int? = nil,
        tenant: String? = nil, limitKey: String? = nil, maxAttempts: Int? = nil, tags: [String] = [],
        after: After? = nil, metadata: (any Encodable & Sendable)? = nil, traceparent: String? = nil,
        tracestate: String? = nil
    ) {
        self.delay = delay
        self.runAt = runAt
        self.uniqueKey = uniqueKey
        self.uniqueFor = uniqueFor
        self.uniqueScope = uniqueScope
        self.onConflict = onConflict
        self.queue = queue
        self.priority = priority
        self.tenant = tenant
        self.limitKey = limitKey
        self.maxAttempts = maxAttempts
        self.tags = tags
        self.after = after
        self.metadata = metadata
        self.traceparent = traceparent
        self.tracestate = tracestate
    }
}
