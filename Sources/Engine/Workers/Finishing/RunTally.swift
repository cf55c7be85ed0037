import Queues

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
        case .snoozed: snoozed += 1
        case .released: break
        }
    }

    mutating func add(_ more: RunTally) {
        succeeded += more.succeeded
        failed += more.failed
        dead += more.dead
        cancelled += more.cancelled
        snoozed += more.snoozed
        milliseconds += more.milliseconds
    }
}
