import FoundationEssentials
import MillraceQueues

extension RunTally {
    mutating func add(_ end: Ended) {
        milliseconds += Int64(end.milliseconds ?? 0)
        switch end.outcome {
        case .succeeded: succeeded += 1
        case .cancelled: cancelled += 1
        case .dead:
            dead += 1
            failed += 1
        case .retried: failed += 1
        case .snoozed, .waiting: snoozed += 1
        case .released: return
        }
        if let taken = end.milliseconds { times.add(milliseconds: taken) }
        // A job that was scheduled, retried or put back stands in line under a later number than its own.
        if end.job.seq == end.job.id, end.milliseconds != nil {
            waits += 1
            waitMilliseconds += Int64(max(0, end.job.claimedAt.timeIntervalSince(end.job.enqueuedAt) * 1000))
        }
    }

    mutating func add(_ more: RunTally) {
        succeeded += more.succeeded
        failed += more.failed
        dead += more.dead
        cancelled += more.cancelled
        snoozed += more.snoozed
        milliseconds += more.milliseconds
        waitMilliseconds += more.waitMilliseconds
        waits += more.waits
        times.add(more.times)
    }
}
