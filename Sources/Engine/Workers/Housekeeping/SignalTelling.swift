import MillraceQueues
import Postgres
import Threads

/// Tells jobs that wait for a signal: at once after it was sent, and once a second for what another worker left undone. Without notifications it
/// looks twice a second, and has the claim loop look as well: else a job would wait for both.
actor SignalTelling: SharingPart {
    nonisolated let shared: WorkerShared

    /// While signals come often, callers do not tell of each, and this looks again and again.
    private static let pause = Duration.milliseconds(3)
    private static let watch = Duration.milliseconds(150)

    init(_ shared: WorkerShared) { self.shared = shared }

    /// Through a transaction pooler no notification comes, and there is no connection for them.
    private var hears: Bool { links.listen.current != nil || (hub.waker != nil && hub.isOpen) }

    func run() async {
        var watchesUntil = ContinuousClock.now
        await RetryingLoop.run(while: { !Task.isCancelled && !state.isDraining }) { _ throws(PostgresError) in
            var told: Queue.Told
            repeat {
                told = try await links.house.use { connection throws(PostgresError) in
                    try await Queue.tellSignals(on: connection)
                }
                if told.signals > 0 { watchesUntil = .now + Self.watch }
                if told.jobs > 0, !hears { wakeups.lookEverywhere() }
            } while told.more && !state.isDraining
            if ContinuousClock.now < watchesUntil {
                try? await Task.sleep(for: Self.pause)
            } else {
                await shared.signals.wait(for: hears ? .seconds(1) : .milliseconds(500))
            }
        } failed: { error in
            limitedLog.say("telling signals failed", error)
            await shared.signals.wait(for: .seconds(1))
            return .pause
        }
    }
}
