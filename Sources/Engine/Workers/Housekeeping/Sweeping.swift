import FoundationEssentials
import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Once a second: what may have committed late, which queues there are, what the slots' counts left behind. Every five: unique keys that
/// nobody has wanted again, and people who are to be reminded of a question. Once a minute: partitions.
actor Sweeping: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var lastMaintenance = ContinuousClock.now - .seconds(50)
        var slots: (resume: Int64?, next: ContinuousClock.Instant) = (nil, .now)
        var keys: (floor: Date?, next: ContinuousClock.Instant) = (nil, .now)
        var reminders = ContinuousClock.now
        while !Task.isCancelled, !state.isDraining {
            do throws(PostgresError) {
                try await catalog.refresh()
                try await LaneSurvey(shared).sample(by: links.sweep)
                try await links.sweep.use { connection throws(PostgresError) in
                    try await Queue.heedCancels(on: connection)
                }
                if slots.next <= .now {
                    let began = ContinuousClock.now
                    slots.resume = try await links.sweep.use { [slots] connection throws(PostgresError) in
                        try await Queue.sweepSlots(on: connection, after: slots.resume)
                    }
                    // Claims wait meanwhile, and what a snapshot keeps makes it dear.
                    slots.next = .now + min(began.duration(to: .now) * 400, .seconds(60))
                }
                if keys.next <= .now {
                    let expired = try await links.sweep.use { [keys] connection throws(PostgresError) in
                        try await Queue.expireKeys(on: connection, floor: keys.floor, most: 10_000)
                    }
                    keys = (expired.upTo ?? keys.floor, expired.isAll ? .now + .seconds(5) : .now)
                }
                if reminders <= .now {
                    let looked = try await links.sweep.use { connection throws(PostgresError) in
                        try await Queue.remindOfApprovals(on: connection)
                    }
                    reminders = looked < 100 ? .now + .seconds(5) : .now
                }
                if lastMaintenance.duration(to: .now) > .seconds(60) {
                    lastMaintenance = .now
                    try await maintain()
                }
            } catch {
                limitedLog.say("housekeeping failed", error)
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    private func maintain() async throws(PostgresError) {
        do throws(PostgresError) {
            let work = try await links.sweep.use { connection throws(PostgresError) in
                try await Queue.maintain(on: connection)
            }
            if work.made + work.dropped > 0 {
                log.info("partitions were made or dropped", [("made", "\(work.made)"), ("dropped", "\(work.dropped)")])
            }
            let strays = try await links.sweep.use { connection throws(PostgresError) in
                try await Queue.mendSlots(on: connection)
            }
            if strays > 0 {
                log.warning(
                    "the counts of limits did not agree with the running jobs and were corrected",
                    [("limits", "\(strays)")])
                gates.askAll()
            }
        } catch {
            // 55P03: a long transaction reads the tables; the partitions stand days ahead, so there is time.
            guard error.sqlState == "55P03" else { throw error }
        }
    }
}
