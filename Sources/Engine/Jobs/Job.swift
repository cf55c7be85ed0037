/// A kind of work: its arguments, and how its runs are treated.
///
/// ```swift
/// struct SendReceipt: Job {
///     static let kind = "receipt.send"
///     var order: Int
/// }
/// ```
public protocol Job: Codable, Sendable {
    /// The name under which its jobs are stored. After a change nobody runs the jobs that still wait under the old name.
    static var kind: String { get }

    /// How often, and after which pauses, a failed run is tried again. Default: 20 attempts, doubling from a second up to an hour.
    static var retries: RetryPolicy { get }

    /// How long one run may take before it is cancelled. Default: no limit.
    static var timeout: Duration? { get }

    /// What happens to a run while its worker is cut off from the database. Default: ``WhenCutOff/keepRunning``.
    static var whenCutOff: WhenCutOff { get }

    /// Whether its arguments are encrypted in the database, with the first key of `MILLRACE_ENCRYPTION_KEY`. Default: no.
    static var encrypted: Bool { get }

    /// Whether an encrypted kind refuses jobs with plain arguments, such as SQL enqueues. Default: they run, and the worker logs it.
    static var refusesPlain: Bool { get }

    /// The fields of its arguments by which jobs can be found, such as `["order.id"]`: names in the JSON, with dots for nested ones. At most
    /// 8. The values are kept in plain text, so an encrypted kind has none. Default: none.
    static var searchable: [String] { get }

    /// The fields of its arguments and results that are hidden from people who may look at jobs, such as `["card.number", "people.*.email"]`.
    /// A path matches at any depth, and `*` is any one name. Names such as `password` are hidden anyway. Default: none.
    static var redacted: [String] { get }

    /// The version of its arguments, from 1 on, which the library writes down for each job that it enqueues. Raise it when workers that run now could
    /// not read the arguments any more: they never get such a job. Default: 0, no version.
    static var version: Int { get }

    /// The versions of arguments that its handler reads, at most 32; ``Context/version`` says which it has. Jobs without a version come too.
    /// Default: the current one.
    static var accepts: ClosedRange<Int> { get }
}

extension Job {
    /// 20 attempts, doubling from a second up to an hour, with full jitter.
    public static var retries: RetryPolicy { .standard }
    /// None.
    public static var timeout: Duration? { nil }
    /// A run that loses its lease cannot finish anyway.
    public static var whenCutOff: WhenCutOff { .keepRunning }
    /// Plain.
    public static var encrypted: Bool { false }
    /// Plain arguments are accepted.
    public static var refusesPlain: Bool { false }
    /// None.
    public static var searchable: [String] { [] }
    /// What the list of the whole database hides.
    public static var redacted: [String] { [] }
    /// None.
    public static var version: Int { 0 }
    /// The current one.
    public static var accepts: ClosedRange<Int> { version...version }
}

/// What happens to a run while its worker cannot reach the database.
public enum WhenCutOff: Sendable {
    /// Optimistic: it goes on. If another worker takes the job meanwhile, this run's finish is refused.
    case keepRunning
    /// Strict: it is cancelled after 20 seconds, well before another worker may start the job again.
    case cancel
}

/// The state of a job.
public enum JobState: String, Sendable, CaseIterable {
    /// Waits for a worker. Next: running, cancelled.
    case ready
    /// Waits for its time. Next: ready, cancelled.
    case scheduled
    /// Waits for another job. Next: ready, scheduled, cancelled.
    case blocked
    /// A worker holds it. Next: succeeded, cancelled, dead; ready (handed back, rescued); scheduled (retry, snooze).
    case running
    /// Ended with success.
    case succeeded
    /// Ended because somebody cancelled it.
    case cancelled
    /// Ended without success: discarded, out of attempts, or quarantined. Next: ready, by redrive.
    case dead

    /// True when nothing more happens by itself.
    public var isFinal: Bool {
        switch self {
        case .succeeded, .cancelled, .dead: true
        case .ready, .scheduled, .blocked, .running: false
        }
    }
}
