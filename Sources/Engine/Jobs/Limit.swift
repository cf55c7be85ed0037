/// How many jobs may run at once in the whole fleet, and how often they may start.
public struct Limit: Sendable, Equatable {
    /// At most `count` starts in each `per`; after a rest, `burst` starts at once.
    public struct Rate: Sendable, Equatable {
        /// How many may start.
        public var count: Int
        /// In which span.
        public var per: Duration
        /// How many may start at once after a rest; nil: as many as `count`.
        public var burst: Int?

        /// In every span the number of starts is at most `burst` plus `count` for each `per`.
        public init(_ count: Int, per: Duration = .seconds(1), burst: Int? = nil) {
            self.count = count
            self.per = per
            self.burst = burst
        }
    }

    /// What a limit concerns.
    public enum Subject: Sendable, Equatable, Hashable {
        /// The jobs of a queue.
        case queue(String)
        /// The jobs with a limit key. A name that ends in `*` is the rule for every key that begins so; each key counts separately.
        case key(String)
        /// The jobs of a tenant, in all queues.
        case tenant(String)
    }

    /// How many may run at once; 0 stops everything, nil sets no bound.
    public var concurrency: Int?
    /// How often they may start; nil sets no bound.
    public var rate: Rate?
    /// A tenant's share relative to the others of a queue; nil is 1.
    public var weight: Double?

    /// A limit with the given bounds.
    public init(concurrency: Int? = nil, rate: Rate? = nil, weight: Double? = nil) {
        self.concurrency = concurrency
        self.rate = rate
        self.weight = weight
    }
}
