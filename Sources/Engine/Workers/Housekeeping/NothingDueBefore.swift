package import FoundationEssentials
package import MillraceQueues

/// Until when everything due has been moved for good: so that the look for timers that committed late need not walk over all that was
/// ever moved, which a snapshot held open keeps from being cleaned up. Pure. `EmptyLaneMemory` does the same for places in line.
///
/// A transaction sets a timer later than the clock that it has read, and gets its number right after that. One that rests longer between the
/// two, or rolls back a move, leaves a timer below: a look without a lower bound finds it.
package struct NothingDueBefore: Sendable {
    /// Writers in flight, each with the database's time at the sample before it was first seen: it sets timers for later only.
    private var writers: [UInt64: Date] = [:]
    private var sampled: Date?
    package private(set) var bottom: Date?

    /// Between reading the clock and the transaction's number.
    static let rest: TimeInterval = 1

    package init() {}

    /// To be taken before a look; samples must come in their order.
    /// - Parameter time: of the database's clock, the sample's or before.
    package mutating func sample(_ horizon: Horizon, at time: Date) {
        // another server took over, or the clock was set back
        if let sampled, time < sampled { self = NothingDueBefore() }
        let before = sampled ?? .distantPast
        writers = Dictionary(
            horizon.writers.map { ($0, writers[$0] ?? before) }, uniquingKeysWith: { first, _ in first })
        sampled = time
    }

    /// A look begun after the last sample, above the bottom, has moved all that was due.
    package mutating func looked() {
        guard let sampled else { return }
        let oldest = min(sampled, writers.values.min() ?? sampled)
        guard oldest > .distantPast else { return }  // it was there before the first sample, and may have set anything
        let safe = oldest.addingTimeInterval(-Self.rest)
        bottom = max(bottom ?? safe, safe)
    }
}
