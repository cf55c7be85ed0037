public import FoundationEssentials

/// A job that is enqueued by the clock. Its name identifies it: set again under the same name, it is changed.
public struct Schedule: Sendable, Equatable {
    /// What becomes of times that passed while no worker looked: more than a minute ago, or more than half the time to the next one
    /// where that is less (but never less than five seconds).
    public enum CatchUp: Sendable, Equatable {
        /// They are recorded as missed.
        case none
        /// If any was missed, one job for the newest time; the others are recorded as missed.
        case latest
        /// A job for each, oldest first. Of more than `limit` only the newest; the others are recorded as missed.
        case all(limit: Int = 1000)
    }

    /// What happens at a time when the schedule's last job has not ended.
    public enum Overlap: String, Sendable, CaseIterable {
        /// Another is enqueued beside it.
        case allow
        /// The time is skipped, and recorded so.
        case skip
        /// The last job is cancelled, a running one asked to end, and the next enqueued.
        case replace
    }

    /// 1 to 128 letters, digits and the signs _ . : / -
    public var name: String
    /// Five cron fields (six with seconds in front), a word such as `@daily`, or an interval such as `every 15m`.
    public var expression: String
    /// The time zone whose clocks count, `Europe/Berlin` for instance.
    public var zone: String
    /// The job's kind.
    public var kind: String
    /// Its arguments as JSON text.
    public var args: [UInt8]
    /// Its arguments are encrypted before they leave the process.
    public var encrypted = false
    /// nil: the kind's own queue.
    public var queue: String?
    /// 0 first to 9 last; nil: 4.
    public var priority: Int?
    /// Whose job it is.
    public var tenant: String?
    /// What becomes of missed times.
    public var catchUp: CatchUp
    /// What happens when the last job has not ended.
    public var overlap: Overlap
    /// Each job runs up to so much later, by an amount that follows from name and time, so that not everything starts at once.
    public var jitter: Duration
    /// Where an interval begins to count; nil: when the schedule was made, or last got another expression.
    public var anchor: Date?
    /// nil: as it is.
    public var isPaused: Bool?

    /// A schedule; set the rest on the value.
    public init(
        _ name: String, _ expression: String, zone: String = "UTC", kind: String, args: [UInt8] = Array("{}".utf8)
    ) {
        self.name = name
        self.expression = expression
        self.zone = zone
        self.kind = kind
        self.args = args
        catchUp = .latest
        overlap = .allow
        jitter = .zero
    }
}

/// What became of a schedule that was set.
public enum ScheduleChange: String, Sendable {
    /// It is new.
    case created
    /// It was another before.
    case changed
    /// It was the same already.
    case unchanged
}
