import Synchronization

/// Engines compute when nobody else wants to. Where others always want to, the pages would never be read: an engine that got next to
/// nothing for a while is not asked to wait like that any more, and no other one for the next minutes.
package final class EnginePriority: Sendable {
    /// How long an engine is left to wait before one looks at what it got.
    let span: Duration
    /// The share of a processor below which it starves.
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
