/// How often a failed run is tried again, and after how long.
public struct RetryPolicy: Sendable, Equatable {
    /// How many runs may count before the job is dead.
    public var attempts: Int
    /// The longest pause after the first failure; it doubles with each.
    public var base: Duration
    /// No pause is longer.
    public var cap: Duration

    /// Pauses are random, from zero to base × 2ⁿ, at most `cap`, so that jobs that failed together do not return together.
    public init(attempts: Int = 20, base: Duration = .seconds(1), cap: Duration = .seconds(3600)) {
        self.attempts = max(1, attempts)
        self.base = max(.milliseconds(1), base)
        self.cap = max(.milliseconds(1), cap)
    }

    /// 20 attempts from a second up to an hour.
    public static let standard = RetryPolicy()
    /// One run, no more.
    public static let never = RetryPolicy(attempts: 1)

    /// The pause after the given attempt (counted from 1); `fraction` in 0…1 is the jitter.
    public func pause(afterAttempt attempt: Int, fraction: Double) -> Duration {
        // Doubled step by step, because base × 2ⁿ exceeds a Duration long before n reaches an attempt's bound.
        var most = min(base, cap)
        var left = max(attempt, 1) - 1
        while left > 0, most < cap {
            most = most > cap / 2 ? cap : most * 2
            left -= 1
        }
        return most * min(max(fraction, 0), 1)
    }
}

extension Duration {
    /// A span of whole minutes.
    package static func minutes(_ count: Int) -> Duration { .seconds(count * 60) }
    /// A span of whole hours.
    package static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
    /// A span of days of 24 hours.
    package static func days(_ count: Int) -> Duration { .seconds(count * 86400) }
}
