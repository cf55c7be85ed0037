import Synchronization

/// When a piece of blocking work must end: at its deadline, or as soon as its task is cancelled.
final class WorkDeadline: Sendable {
    private let end: ContinuousClock.Instant
    private let cancelled = Mutex(false)

    init(_ deadline: Duration) {
        end = .now + deadline
    }

    func cancel() {
        cancelled.withLock { $0 = true }
    }

    var isCancelled: Bool { cancelled.withLock { $0 } }
    var isOver: Bool { isCancelled || ContinuousClock.now >= end }

    /// Throws the reason if the work must end now.
    func check(or late: @autoclosure () -> ClusterError) throws(ClusterError) {
        if isCancelled { throw .cancelled }
        if isOver { throw late() }
    }
}
