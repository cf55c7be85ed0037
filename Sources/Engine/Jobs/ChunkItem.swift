/// One job of a chunk: several jobs of a kind that a handler gets in one call, with a verdict for each.
public struct ChunkItem<Work: Job>: Sendable {
    /// Its arguments.
    public let job: Work
    /// The context of its run. ``Context/cancelReason`` is this job's own: the task is cancelled when all of the chunk's jobs are.
    public let context: Context

    package init(job: Work, context: Context) {
        self.job = job
        self.context = context
    }
}
