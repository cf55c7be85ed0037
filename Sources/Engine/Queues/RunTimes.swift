/// How many runs took how long, in buckets that the schema knows too (`sample_times`): under a millisecond, then two for each doubling. The
/// last one takes all that is longer than 70 minutes.
package struct RunTimes: Sendable, Equatable {
    package static let count = 46

    /// Empty as long as nothing was counted: most tallies are of kinds that end a few runs.
    private var counts: [Int32] = []

    package init() {}

    package static func bucket(milliseconds: Int32) -> Int {
        guard milliseconds > 0 else { return 0 }
        let octave = 31 - milliseconds.leadingZeroBitCount
        let square = Int64(milliseconds) * Int64(milliseconds)
        return min(count - 1, 1 + 2 * octave + (square >= 1 << Int64(2 * octave + 1) ? 1 : 0))
    }

    package mutating func add(milliseconds: Int32) {
        if counts.isEmpty { counts = [Int32](repeating: 0, count: Self.count) }
        counts[Self.bucket(milliseconds: milliseconds)] += 1
    }

    package mutating func add(_ more: RunTimes) {
        guard !more.counts.isEmpty else { return }
        guard !counts.isEmpty else {
            counts = more.counts
            return
        }
        for index in counts.indices { counts[index] += more.counts[index] }
    }

    /// The first bucket that holds any, and the counts from there on, as in `7:12,0,3`; nil: nothing was counted.
    package var text: String? {
        guard let first = counts.firstIndex(where: { $0 > 0 }), let last = counts.lastIndex(where: { $0 > 0 }) else {
            return nil
        }
        return "\(first):" + counts[first...last].map(String.init).joined(separator: ",")
    }
}
