package import MillraceQueues
import Synchronization

/// How the runs of a queue and kind ended in this process, how long they took, and how long their jobs had waited.
package struct RunCounts: Sendable, Equatable {
    /// Upper bounds of the buckets, in milliseconds; a last bucket takes what is longer.
    package static let bounds: [Int32] = [
        5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000,
    ]

    package private(set) var succeeded = 0
    package private(set) var retried = 0
    package private(set) var dead = 0
    package private(set) var cancelled = 0
    package private(set) var snoozed = 0
    /// Runs by how long their handlers took; not cumulated.
    package private(set) var buckets = [Int](repeating: 0, count: bounds.count + 1)
    package private(set) var milliseconds = 0
    /// First runs by how long their jobs had waited; not cumulated.
    package private(set) var waits = [Int](repeating: 0, count: bounds.count + 1)
    package private(set) var waitMilliseconds = 0

    package init() {}

    package mutating func add(_ outcome: Outcome, milliseconds taken: Int32?, waited: Int32? = nil) {
        switch outcome {
        case .succeeded: succeeded += 1
        case .retried: retried += 1
        case .dead: dead += 1
        case .cancelled: cancelled += 1
        case .snoozed, .waiting: snoozed += 1
        case .released: return
        }
        if let waited {
            waits[Self.bucket(waited)] += 1
            waitMilliseconds += Int(waited)
        }
        guard let taken else { return }
        buckets[Self.bucket(taken)] += 1
        milliseconds += Int(taken)
    }

    private static func bucket(_ milliseconds: Int32) -> Int {
        bounds.firstIndex { milliseconds <= $0 } ?? bounds.count
    }

    package mutating func add(_ more: RunCounts) {
        succeeded += more.succeeded
        retried += more.retried
        dead += more.dead
        cancelled += more.cancelled
        snoozed += more.snoozed
        for index in buckets.indices { buckets[index] += more.buckets[index] }
        milliseconds += more.milliseconds
        for index in waits.indices { waits[index] += more.waits[index] }
        waitMilliseconds += more.waitMilliseconds
    }
}

/// The counts of all queues and kinds of a process since it started. The first two hundred have their own; the rest is counted together, so
/// that a collector of numbers never gets more.
package struct RunMeter: Sendable {
    package static let most = 200

    package private(set) var counts: [TallyKey: RunCounts] = [:]
    package private(set) var others = RunCounts()

    package init() {}

    package mutating func add(_ outcome: Outcome, milliseconds: Int32?, waited: Int32? = nil, to key: TallyKey) {
        if counts.count < Self.most || counts[key] != nil {
            counts[key, default: RunCounts()].add(outcome, milliseconds: milliseconds, waited: waited)
        } else {
            others.add(outcome, milliseconds: milliseconds, waited: waited)
        }
    }
}

/// The same by names.
package struct NamedRunCounts: Sendable, Equatable {
    /// nil: those that have no counts of their own.
    package var queue: String?
    package var kind: String?
    package var counts: RunCounts

    package init(queue: String?, kind: String?, counts: RunCounts) {
        self.queue = queue
        self.kind = kind
        self.counts = counts
    }
}

extension JobWorker {
    /// How runs ended here since it started, by queue and kind. The lines of a queue count as the queue.
    package var runCounts: [NamedRunCounts] {
        let meter = shared.state.runMeter
        let queueNames = shared.catalog.known.names
        let kindNames = shared.catalog.kindNames
        var sums: [String: NamedRunCounts] = [:]
        var others = NamedRunCounts(queue: nil, kind: nil, counts: meter.others)
        for (key, counts) in meter.counts {
            guard let queue = queueNames[key.queue], let kind = kindNames[key.kind] else {
                others.counts.add(counts)
                continue
            }
            // Neither name can hold a space.
            sums["\(queue) \(kind)", default: NamedRunCounts(queue: queue, kind: kind, counts: RunCounts())].counts
                .add(counts)
        }
        let named = sums.sorted { $0.key < $1.key }.map(\.value)
        return others.counts == RunCounts() ? named : named + [others]
    }
}
