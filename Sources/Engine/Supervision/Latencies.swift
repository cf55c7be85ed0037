/// The buckets in which durations are counted: four for each doubling, from a microsecond to a minute, so a quantile is wrong by a fifth at
/// most. The database adds up the workers' counts, so all versions must agree on the buckets.
package enum Latencies {
    package static let buckets = 104

    package static func bucket(microseconds: Int64) -> Int {
        guard microseconds >= 4 else { return Int(max(0, microseconds)) }
        let top = 63 - microseconds.leadingZeroBitCount
        let fine = Int(microseconds >> Int64(top - 2)) & 3
        return min(buckets - 1, (top - 1) * 4 + fine)
    }

    /// The middle of a bucket, in milliseconds.
    package static func milliseconds(of bucket: Int) -> Double {
        guard bucket >= 4 else { return Double(bucket) / 1000 }
        let width = Double(Int64(1) << Int64(bucket / 4 - 1))
        return (Double(4 + bucket % 4) + 0.5) * width / 1000
    }

    package static func quantile(_ share: Double, of counts: [Int32]) -> Double? {
        let total = counts.reduce(0) { $0 + Int($1) }
        guard total > 0 else { return nil }
        let rank = max(1, Int((Double(total) * share).rounded(.up)))
        var seen = 0
        for (bucket, count) in counts.enumerated() {
            seen += Int(count)
            if seen >= rank { return milliseconds(of: bucket) }
        }
        return nil
    }
}
