package import MillraceJobs

/// Rates as people type them.
package enum RateText {
    package static func read(_ text: String) -> Limit.Rate? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let count = Int(parts[0]), (1...1_000_000_000).contains(count),
            let per = DurationText.read(String(parts[1])), per >= .milliseconds(1), per <= .days(365)
        else { return nil }
        return Limit.Rate(count, per: per)
    }
}
