import MillraceQueues
import Postgres
import Threads

/// Lets parked jobs back in line as slots and rates allow: at once where something was given back, at the time that the database names
/// where a rate is used up, and once a second everywhere, for what crossed. While a queue's or tenant's limit holds this worker back it
/// asks more often: other workers give their slots back without notifying.
actor GateOpening: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var lastAll = ContinuousClock.now - .seconds(1)
        var after: Int64?
        // Many ends a moment are asked about together; more of them while nobody waits at a gate.
        var gather = Duration.milliseconds(5)
        while !Task.isCancelled, !state.isDraining {
            let asked = gates.take()
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                if !asked.named.isEmpty || asked.held {
                    let step = try await open(asked.named, after: nil, outer: asked.held)
                    pause = min(pause, step.pause)
                    if asked.held, !step.opened {
                        gates.stayHeld()
                        if step.isQuiet { pause = min(pause, .milliseconds(25)) }
                    }
                    gather = step.isQuiet ? .milliseconds(40) : .milliseconds(5)
                }
                if asked.all || after != nil || lastAll.duration(to: .now) >= .milliseconds(950) {
                    lastAll = .now
                    let step = try await open(nil, after: after, outer: true)
                    after = step.resume
                    pause = min(pause, step.pause)
                }
            } catch {
                limitedLog.say("opening gates failed", error)
            }
            try? await Task.sleep(for: min(gather, pause))
            await gates.signal.wait(for: pause)
        }
    }

    private func open(
        _ named: Set<Int64>?, after: Int64?, outer: Bool
    ) async throws(PostgresError) -> (pause: Duration, resume: Int64?, opened: Bool, isQuiet: Bool) {
        let openings = try await links.house.use { connection throws(PostgresError) in
            try await Queue.openGates(on: connection, named, after: after, outer: outer)
        }
        for lane in openings.lanes { wakeups.hint(lane) }
        let opened = openings.moved > 0 || !openings.lanes.isEmpty
        return (openings.next ?? .seconds(1), openings.resume, opened, !opened && openings.next == nil)
    }
}
