/// How the claim loop moves: at once after work, with short pauses for a moment, then asleep until somebody calls. Pure.
struct ClaimPace {
    private var lastWork: ContinuousClock.Instant
    /// When it found the first work since it slept; nil as long as it has found none.
    private var began: ContinuousClock.Instant?
    /// The next look goes everywhere, and at what committed late. None sleeps without one.
    var careful = true
    var lastSample: ContinuousClock.Instant

    /// After a single job.
    static let linger = Duration.milliseconds(20)
    /// After a stream of them.
    static let longestLinger = Duration.milliseconds(250)

    init(at now: ContinuousClock.Instant = .now) {
        (lastWork, lastSample) = (now, now)
    }

    /// Who is never idle looks so often at what committed late: of many enqueuers at once some commit behind one that drew a later
    /// number, and nobody else would find their jobs for up to a second.
    func isSampleDue(at now: ContinuousClock.Instant = .now) -> Bool { lastSample.duration(to: now) > Self.linger }

    mutating func worked(at now: ContinuousClock.Instant = .now) {
        began = began ?? now
        lastWork = now
        careful = false
    }

    /// It is in a stream, as somebody has said: it lingers as after a long one.
    mutating func watches(at now: ContinuousClock.Instant = .now) {
        began = now - Self.longestLinger * 4
        lastWork = now
        careful = false
    }

    mutating func sleeps() {
        began = nil
        careful = false
    }

    /// How long to wait before the next look without being called, or nil when it is time to sleep. A silence in a stream is more likely a
    /// disk that is slow for once than its end; who slept through it would be called by each of its callers, and calls wait for one another,
    /// each with its commit.
    func pause(at now: ContinuousClock.Instant = .now) -> Duration? {
        let silence = lastWork.duration(to: now)
        let patience = min(max((began ?? lastWork).duration(to: lastWork) / 4, Self.linger), Self.longestLinger)
        guard silence < patience else { return nil }
        return min(max(silence / 10, .milliseconds(2)), .milliseconds(5))
    }

    /// How long to sleep where nothing can call: not for long soon after work, because more of it is likely then.
    func unheardNap(_ poll: Duration, at now: ContinuousClock.Instant = .now) -> Duration {
        min(max(lastWork.duration(to: now) / 8, .milliseconds(50)), Self.nap(poll))
    }

    /// How long to sleep when nobody calls: not in step with others, and never longer than what was asked for.
    static func nap(_ poll: Duration) -> Duration { poll * Double.random(in: 0.9...1) }
}
