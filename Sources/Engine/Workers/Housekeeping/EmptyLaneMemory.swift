package import MillraceQueues

/// Below which place each lane is empty for good: so that the look below the floors need not walk over what is long gone, which
/// a snapshot held open keeps from being cleaned up. Pure.
///
/// What no look has found, and no writer in flight before that look can still add, will never be there. A claim that is rolled back
/// puts nothing below: until it ends its rows are seen by every look.
package struct EmptyLaneMemory: Sendable {
    private var known: [Lane: Int64] = [:]
    /// Writers in flight, each with the last number given out before it was first seen: it draws only larger ones.
    private var writers: [UInt64: Int64] = [:]
    private var sampled: Int64 = 0

    package init() {}

    /// To be taken before a look; samples must come in their order.
    package mutating func sample(_ horizon: Horizon) {
        if horizon.seq < sampled { self = EmptyLaneMemory() }  // another server took over, and knows less
        writers = Dictionary(
            horizon.writers.map { ($0, writers[$0] ?? sampled) }, uniquingKeysWith: { first, _ in first })
        sampled = max(sampled, horizon.seq)
    }

    /// Whatever commits after the last sample stands above this.
    private var safe: Int64 { min(sampled, writers.values.min() ?? sampled) }

    package func bottom(of lane: Lane) -> Int64 { known[lane] ?? 0 }

    package var highest: Int64 { known.values.max() ?? 0 }

    /// Every lane that these queues can have.
    package static func lanes(of queues: [Int32]) -> [Lane] {
        queues.flatMap { queue in (Int32(0)..<40).map { Lane(queue: queue, code: $0) } }
    }

    /// A look at these lanes, above their bottoms and begun after the last sample, has found the first places that hold something.
    package mutating func looked(at lanes: [Lane], found: [Lane: Int64]) {
        for lane in lanes {
            let empty = min(safe, found[lane].map { $0 - 1 } ?? .max)
            if empty > bottom(of: lane) { known[lane] = empty }
        }
    }
}
