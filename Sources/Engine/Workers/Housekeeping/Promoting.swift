import FoundationEssentials
import MillraceQueues
import Postgres
import Threads

/// Moves jobs whose time has come into their lanes. Sleeps until the next due time it knows, at most a second; while the worker is busy it
/// looks more often, for then nobody notifies. It walks over nothing that it has moved before, but for a look ten times a second at what
/// has committed behind it within a second; `LaneLooking` finds what commits later.
actor Promoting: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var floor: Date?
        var lookedBack = ContinuousClock.now
        while !Task.isCancelled, !state.isDraining {
            var pause = sleepLock.isCovered ? Duration.seconds(1) : .milliseconds(50)
            do throws(PostgresError) {
                var from = floor
                if lookedBack.duration(to: .now) > .milliseconds(100) {
                    from = floor?.addingTimeInterval(-1)
                    lookedBack = .now
                }
                let promotion = try await links.house.use { [from] connection throws(PostgresError) in
                    try await Queue.promote(on: connection, floor: from, wanted: 5000)
                }
                if let upTo = promotion.upTo { floor = max(floor ?? upTo, upTo) }
                wakeups.filled(promotion.lanes)
                if let due = promotion.nextDue {
                    // One by one, each that comes due right behind another would cost a statement of its own.
                    let least = promotion.moved > 0 ? Duration.milliseconds(4) : .milliseconds(1)
                    pause = min(pause, max(least, .seconds(due.timeIntervalSince(promotion.now))))
                }
            } catch {
                limitedLog.say("promoting failed", error)
                floor = nil
                pause = .seconds(1)
            }
            await shared.promotion.wait(for: pause)
        }
    }
}
