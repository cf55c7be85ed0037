/// How a call went, for an app's own measuring. It holds no argument, token or answer.
public struct AppCallReport: Sendable, Hashable {
    /// How it ended.
    public enum Outcome: Sendable, Hashable {
        /// The gateway has answered.
        case succeeded
        /// It ended with this error, after all tries.
        case failed(AppError)
        /// The app stopped waiting for it.
        case cancelled
    }

    /// The function that was called, such as `mood_log`; `upload` or `download` for a signed link.
    public let name: String
    /// From the first attempt to the end, with the pauses between attempts.
    public let duration: Duration
    /// How often it was made.
    public let attempts: Int
    /// How it ended.
    public let outcome: Outcome

    /// For tests of your own.
    public init(name: String, duration: Duration, attempts: Int, outcome: Outcome) {
        (self.name, self.duration, self.attempts, self.outcome) = (name, duration, attempts, outcome)
    }
}
