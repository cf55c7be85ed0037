/// What goes wrong around the queue.
enum Disaster: String, CaseIterable, Sendable {
    case idle = "an idle transaction"
    case prepared = "a prepared transaction"
    case slot = "a replication slot"
    case standby = "a standby's feedback"
    case subtransactions = "100 subtransactions"
    case multixacts = "MultiXacts"
    case locks = "many locks on relations"
    case notify = "notifying committers"
    case catalogue = "a bloated catalogue"
    case connections = "connections used up"
    case rows = "a client locks rows"
    case partition = "no partition ahead"
    case migration = "a half-done migration"
    case clock = "the clock steps"
    case freeze = "a vacuum against wraparound"
    case restored = "a restored backup"
    case disk = "a full disk"

    /// The short word of `--only`.
    var word: String { "\(self)" }

    /// Nothing can be started meanwhile, by any queue in this database.
    var isOutage: Bool { self == .migration || self == .disk }

    /// It is made beside the queue that the load runs on.
    var isElsewhere: Bool { self == .restored }
}

/// A disaster that was made.
struct MadeDisaster: Sendable {
    /// What the sentence about it must say: who it is, and what.
    var culprits: [String]
    /// Nothing is wrong, and that is to be said.
    var isWell = false
    let undo: @Sendable () async throws -> Void
}

/// What became of one.
struct DisasterOutcome: Sendable {
    var disaster: Disaster
    /// Why it was not made.
    var skipped: String?
    var namedBy: String?
    var seconds: Double?
    var sentence: String?
    var command: String?
    var calm: DisasterPulse.Result?
    var during: DisasterPulse.Result?
    var lost = 0

    static let limit = 10.0

    /// A thirtieth of a second is no delay: a calm pick-up takes a few milliseconds, and two of those are chance.
    var ratio: Double? {
        guard !disaster.isOutage, let calm = calm?.p50, let during = during?.p50, calm > 0 else { return nil }
        return during / calm
    }

    var isNamed: Bool { (seconds ?? .infinity) <= Self.limit }
    var isQuick: Bool { ratio.map { $0 <= 2 } ?? (disaster.isOutage || disaster.isElsewhere) }
    var isMet: Bool { skipped == nil && isNamed && lost == 0 && isQuick }
}
