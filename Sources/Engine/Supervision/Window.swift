/// The outcomes of the calls of the last seconds: a ring of slots, and their sums.
package struct Window: Sendable {
    package struct Counts: Sendable, Equatable {
        package var ok: Int32 = 0
        package var failed: Int32 = 0
        package var throttled: Int32 = 0
        package var slow: Int32 = 0
        package var unknown: Int32 = 0

        package init() {}

        package var judged: Int32 { ok + failed }
        package var calls: Int32 { ok + failed + throttled }

        fileprivate static func += (one: inout Counts, other: Counts) {
            one.ok += other.ok
            one.failed += other.failed
            one.throttled += other.throttled
            one.slow += other.slow
            one.unknown += other.unknown
        }
        fileprivate static func -= (one: inout Counts, other: Counts) {
            one.ok -= other.ok
            one.failed -= other.failed
            one.throttled -= other.throttled
            one.slow -= other.slow
            one.unknown -= other.unknown
        }
    }

    private static let slots = 15
    private let slotLength: Int64
    private var ring = [Counts](repeating: Counts(), count: slots)
    private var ringLatencies = [Int32](repeating: 0, count: slots * Latencies.buckets)
    private var newest: Int64 = 0
    package private(set) var counts = Counts()
    package private(set) var latencies = [Int32](repeating: 0, count: Latencies.buckets)

    package init(length: Duration) {
        slotLength = max(1, length.nanoseconds / Int64(Self.slots))
    }

    /// Drops slots that are too old.
    package mutating func advance(to now: Moment) {
        let slot = now.nanoseconds / slotLength
        guard slot > newest else { return }
        for old in 0..<min(slot - newest, Int64(Self.slots)) { clear(Int((newest + 1 + old) % Int64(Self.slots))) }
        newest = slot
    }

    package mutating func add(_ counts: Counts, took microseconds: Int64?, at now: Moment) {
        advance(to: now)
        let index = Int(newest % Int64(Self.slots))
        ring[index] += counts
        self.counts += counts
        guard let microseconds else { return }
        let bucket = Latencies.bucket(microseconds: microseconds)
        ringLatencies[index * Latencies.buckets + bucket] += 1
        latencies[bucket] += 1
    }

    package mutating func forget() {
        for index in 0..<Self.slots { clear(index) }
    }

    private mutating func clear(_ index: Int) {
        guard ring[index] != Counts() else { return }
        counts -= ring[index]
        ring[index] = Counts()
        let start = index * Latencies.buckets
        for bucket in 0..<Latencies.buckets where ringLatencies[start + bucket] != 0 {
            latencies[bucket] -= ringLatencies[start + bucket]
            ringLatencies[start + bucket] = 0
        }
    }
}
