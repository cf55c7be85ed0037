package import FoundationEssentials

/// A claimed job. A class, because it is passed on many times: one reference count instead of one for each field.
package final class Claimed: Sendable {
    package let seq: Int64
    package let id: Int64
    package let number: Int64
    package let kind: Int32
    package let lane: Lane
    package let attempt: Int16
    package let crashes: Int16
    package let enqueuedAt: Date
    package let claimedAt: Date
    /// When this process heard of it.
    package let receivedAt: ContinuousClock.Instant
    package let args: [UInt8]
    package let maxAttempts: Int16?
    package let keyed: Bool
    package let expired: Bool
    package let options: [UInt8]?
    package let metadata: [UInt8]?
    package let tags: [String]
    package let tenant: String?
    /// The gates at which it holds a slot. Its end gives the slots back.
    package let gates: [Int64]
    /// The gate, if there is only one.
    package let gate: Int64?
    /// The claim's answer had no room for its arguments, options, metadata and tags: `Queue.readContents` brings them.
    package let isUnread: Bool
    /// Its contents' share of the worker's memory, if that is counted; released together with the job.
    private let hold: (any AnyObject & Sendable)?

    package init(
        seq: Int64, id: Int64, number: Int64, kind: Int32, lane: Lane, attempt: Int16 = 0, crashes: Int16 = 0,
        enqueuedAt: Date = .distantPast, claimedAt: Date = .distantPast, receivedAt: ContinuousClock.Instant = .now,
        args: [UInt8] = [], maxAttempts: Int16? = nil,
        keyed: Bool = false, expired: Bool = false, options: [UInt8]? = nil, metadata: [UInt8]? = nil,
        tags: [String] = [],
        tenant: String? = nil, gates: [Int64] = [], gate: Int64? = nil, isUnread: Bool = false,
        hold: (any AnyObject & Sendable)? = nil
    ) {
        self.seq = seq
        self.id = id
        self.number = number
        self.kind = kind
        self.lane = lane
        self.attempt = attempt
        self.crashes = crashes
        self.enqueuedAt = enqueuedAt
        self.claimedAt = claimedAt
        self.receivedAt = receivedAt
        self.args = args
        self.maxAttempts = maxAttempts
        self.keyed = keyed
        self.expired = expired
        self.options = options
        self.metadata = metadata
        self.tags = tags
        self.tenant = tenant
        self.gates = gates
        self.gate = gate
        self.isUnread = isUnread
        self.hold = hold
    }

    /// The same job with its contents.
    package func holding(_ contents: Contents, _ hold: (any AnyObject & Sendable)?) -> Claimed {
        Claimed(
            seq: seq, id: id, number: number, kind: kind, lane: lane, attempt: attempt, crashes: crashes,
            enqueuedAt: enqueuedAt, claimedAt: claimedAt, receivedAt: receivedAt, args: contents.args,
            maxAttempts: maxAttempts, keyed: keyed,
            expired: contents.expired, options: contents.options, metadata: contents.metadata, tags: contents.tags,
            tenant: tenant, gates: gates, gate: gate, hold: hold)
    }
}
