public import FoundationEssentials

/// A job that the clock enqueues. Its name identifies it: setting it again under the same name changes it.
public struct Schedule: Sendable, Equatable {
    /// What happens to times that passed while no worker looked. A time counts as missed after a minute, or after half the time to the next
    /// one if that is less (but never before five seconds).
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
        /// Another job is enqueued beside it.
        case allow
        /// The time is recorded as skipped.
        case skip
        /// The last job is cancelled (a running one is asked to end), and the next is enqueued.
        case replace
    }

    /// 1 to 128 letters, digits and _ . : / -
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
    /// The tenant it belongs to.
    public var tenant: String?
    /// What happens to missed times.
    public var catchUp: CatchUp
    /// What happens when the last job has not ended.
    public var overlap: Overlap
    /// Each job runs up to this much later, by an amount computed from name and time, so that not everything starts at once.
    public var jitter: Duration
    /// The start of an interval's counting; nil: when the schedule was made, or last got another expression.
    public var anchor: Date?
    /// nil: leave it as it is.
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

/// The effect of setting a schedule.
public enum ScheduleChange: String, Sendable {
    /// It is new.
    case created
    /// It existed, with different contents.
    case changed
    /// It existed already, with the same contents.
    case unchanged
}
