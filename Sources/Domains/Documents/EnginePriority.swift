import Synchronization

/// Engines run at the lowest priority. On a machine that is always busy, pages would never be read: so when an engine got almost no CPU
/// time for a while, it and all other engines run at a higher priority for the next minutes.
package final class EnginePriority: Sendable {
    /// How long an engine waits before its CPU time is checked.
    let span: Duration
    /// An engine with less than this share of a processor starves.
    let share: Double
    private let pause: Duration
    private let until = Mutex<ContinuousClock.Instant?>(nil)
    private let told: @Sendable () -> Void

    package init(
        span: Duration = .seconds(20), share: Double = 0.125, pause: Duration = .seconds(600),
        told: @escaping @Sendable () -> Void = {}
    ) {
        self.span = span
        self.share = share
        self.pause = pause
        self.told = told
    }

    var isOver: Bool { until.withLock { $0.map { $0 > .now } ?? false } }

    func end() {
        let isNew = until.withLock { until in
            defer { until = .now + pause }
            return until.map { $0 <= .now } ?? true
        }
        if isNew { told() }
    }
}
