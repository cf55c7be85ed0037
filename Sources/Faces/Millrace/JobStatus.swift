public import FoundationEssentials
public import MillraceJobs
import MillraceQueues

/// The state of a job.
public struct JobStatus: Sendable, Equatable {
    /// Its number.
    public let id: Int64
    /// Its kind.
    public let kind: String
    /// The queue it belongs to.
    public let queue: String
    /// Its state.
    public let state: JobState
    /// The run it is in, or the runs that counted.
    public let attempt: Int
    /// How often a worker was lost while it held the job.
    public let crashes: Int
    /// When it was enqueued.
    public let enqueuedAt: Date?
    /// When it ended.
    public let finishedAt: Date?
    /// The error of each failed attempt, oldest first.
    public let errors: [String]
    /// The progress that its run last reported.
    public let progress: JobProgress?

    init(_ row: JobRow) {
        id = row.id
        kind = row.kind
        queue = row.queue
        state = row.state
        attempt = row.attempt
        crashes = row.crashes
        enqueuedAt = row.enqueuedAt
        finishedAt = row.finishedAt
        errors = row.errors
        progress = row.progress
    }
}
