/// When a call is made again: what is unavailable, took too long or ended nobody knows how, three times in all, after a pause that doubles.
public struct RetryRules: Sendable, Hashable {
    /// How often a call is made at most.
    public var attempts = 3
    /// Before the second attempt.
    public var firstPause = Duration.seconds(1)
    /// No pause is longer. A gateway that asks for a longer one is not asked again by the same call.
    public var longestPause = Duration.seconds(30)

    /// The papers' rules.
    public init() {}

    /// Once only.
    public static var none: RetryRules {
        var rules = RetryRules()
        rules.attempts = 1
        return rules
    }

    /// How long to wait before the next attempt; nil: there is none. `random` lies in 0..<1 and spreads callers that failed together.
    public func pause(after attempt: Int, _ error: AppError, random: Double) -> Duration? {
        guard error.mayRetry, !error.isBarred, attempt < attempts else { return nil }
        if let asked = error.retryAfter, asked > longestPause { return nil }
        return max(error.retryAfter ?? .zero, spread(attempt, random: random))
    }

    /// Doubles with each attempt; from half of it to the whole.
    func spread(_ attempt: Int, random: Double) -> Duration {
        var pause = firstPause
        for _ in 1..<max(1, min(attempt, 40)) where pause < longestPause { pause *= 2 }
        return min(pause, longestPause) * (0.5 + random / 2)
    }
}
