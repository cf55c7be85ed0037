public import Foundation

/// The person's plan, what it has bought, and how much of it is used.
public struct SubscriptionService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// How it is now.
    public func mine() async throws -> Subscriptions { try await doors.ask("subscription_mine") }

    /// Now, and after each change.
    public func stream() -> AsyncThrowingStream<Subscriptions, any Error> {
        doors.following(.subscriptions) { try await mine() }
    }
}

/// What a person has subscribed to.
public struct Subscriptions: Sendable, Hashable, Decodable {
    /// Whose plan and quotas these are: the tenant, or the person.
    public let account: String
    /// nil: none is in force, and there is no default.
    public let plan: String?
    /// The oldest first.
    public let subscriptions: [Subscription]
    /// By name.
    public let quotas: [Quota]

    /// For doubles of your own.
    public init(account: String, plan: String? = nil, subscriptions: [Subscription] = [], quotas: [Quota] = []) {
        (self.account, self.plan, self.subscriptions, self.quotas) = (account, plan, subscriptions, quotas)
    }

    /// One subscription in a store.
    public struct Subscription: Sendable, Hashable, Identifiable, Decodable {
        /// Names it for ever.
        public let id: UUID
        /// `stripe`, `app_store`, or `none` where a back end gave it.
        public let store: String
        /// What it gives; nil: the store's product is of no plan.
        public let plan: String?
        /// As the store names it.
        public let product: String?
        /// `trial`, `active`, `cancelled`, `grace`, `expired`, `revoked`, `incomplete`, `paused` or `new`.
        public let state: String
        /// Whether it goes on after the period.
        public let renews: Bool?
        /// When the period ends.
        public let periodEnd: Date?
        /// Until when it counts without being paid.
        public let graceUntil: Date?
        /// When it was taken back.
        public let revokedAt: Date?

        /// For doubles of your own.
        public init(
            id: UUID, store: String, plan: String? = nil, product: String? = nil, state: String, renews: Bool? = nil,
            periodEnd: Date? = nil, graceUntil: Date? = nil, revokedAt: Date? = nil
        ) {
            (self.id, self.store, self.plan, self.product, self.state) = (id, store, plan, product, state)
            (self.renews, self.periodEnd) = (renews, periodEnd)
            (self.graceUntil, self.revokedAt) = (graceUntil, revokedAt)
        }

        /// Whether its plan counts now.
        public var isInForce: Bool { ["trial", "active", "cancelled", "grace"].contains(state) }
    }

    /// How much of something may be used.
    public struct Quota: Sendable, Hashable, Decodable {
        /// Such as `documents` or `ai_tokens`.
        public let name: String
        /// How much is allowed.
        public let limit: Int
        /// How much is used.
        public let used: Int
        /// When it begins again; nil: never.
        public let resetDate: Date?

        /// For doubles of your own.
        public init(name: String, limit: Int, used: Int, resetDate: Date? = nil) {
            (self.name, self.limit, self.used, self.resetDate) = (name, limit, used, resetDate)
        }
    }
}
