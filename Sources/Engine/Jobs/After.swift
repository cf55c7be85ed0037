/// Which jobs another waits for, and how their ends affect it.
///
/// ```swift
/// try await millrace.enqueue(Merge(), after: [first, second])
/// try await millrace.enqueue(Refund(), after: After([payment], starts: .whenOneFailed))
/// ```
public struct After: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// When it starts.
    public enum Start: String, Sendable, CaseIterable {
        /// When all have succeeded.
        case whenAllSucceeded = "succeeded"
        /// When all have ended, in any way.
        case whenAllEnded = "ended"
        /// As soon as one is dead or cancelled; it is cancelled when all have succeeded.
        case whenOneFailed = "dead"
    }

    /// What happens to a job that starts when all have succeeded, once one of them is dead or cancelled.
    public enum Failing: String, Sendable, CaseIterable {
        /// It is cancelled, together with all jobs that wait for it.
        case cancel
        /// It goes on waiting, for a redrive of the other.
        case wait
    }

    /// At most 1,000; more can each be enqueued before it.
    public var jobs: [Int64]
    /// When it starts.
    public var starts: Start
    /// What happens when it cannot start any more.
    public var onFailure: Failing

    /// After these jobs.
    public init(_ jobs: [Int64], starts: Start = .whenAllSucceeded, onFailure: Failing = .cancel) {
        self.jobs = jobs
        self.starts = starts
        self.onFailure = onFailure
    }

    /// After all of these have succeeded.
    public init(arrayLiteral jobs: Int64...) {
        self.init(jobs)
    }
}
