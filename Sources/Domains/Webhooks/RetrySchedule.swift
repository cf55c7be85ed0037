/// When a failed delivery is tried again: soon at first, then less and less often, for three days and three hours in all.
package enum RetrySchedule {
    package static let steps: [Duration] = [
        .seconds(5), .seconds(5 * 60), .seconds(30 * 60), .seconds(2 * 3600), .seconds(5 * 3600), .seconds(10 * 3600),
        .seconds(14 * 3600), .seconds(20 * 3600), .seconds(24 * 3600),
    ]

    /// - Parameters:
    ///   - attempts: How many attempts failed before this one.
    ///   - spread: Random, 0 to 1, so that deliveries that failed together do not come back together.
    /// - Returns: nil: this was the last attempt.
    package static func wait(after attempts: Int, spread: Double) -> Duration? {
        steps.indices.contains(attempts) ? steps[attempts] * (1 + 0.1 * spread) : nil
    }
}
