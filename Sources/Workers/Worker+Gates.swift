import Postgres
import Queues
import Threads

extension Worker {
    /// Lets parked jobs back in line as slots and rates allow: at once where something was given back, at the time that the
    /// database names where a rate is used up, and once a second everywhere, for what crossed.
    func gateLoop() async {
        var lastAll = ContinuousClock.now - .seconds(1)
        var after: Int64?
        while !Task.isCancelled, !desk.isDraining {
            let asked = gates.take()
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                if !asked.named.isEmpty { pause = min(pause, try await open(asked.named, after: nil).pause) }
                if asked.all || after != nil || lastAll.duration(to: .now) >= .milliseconds(950) || asked.named.isEmpty
                {
                    lastAll = .now
                    let step = try await open(nil, after: after)
                    after = step.resume
                    pause = min(pause, step.pause)
                }
            } catch {
                complaints.say("opening gates failed", error)
            }
            // Many ends a moment are asked about together.
            try? await Task.sleep(for: .milliseconds(5))
            await gates.signal.wait(for: pause)
        }
    }

    private func open(
        _ named: Set<Int64>?, after: Int64?
    ) async throws(PostgresError) -> (pause: Duration, resume: Int64?) {
        let openings = try await houseLink.use { connection throws(PostgresError) in
            try await Queue.openGates(on: connection, named, after: after)
        }
        for lane in openings.lanes { wakeups.hint(lane) }
        return (openings.next ?? .seconds(1), openings.resume)
    }
}
