import MillraceQueues
import Postgres
import Threads

extension SessionKeeping {
    /// Nothing of ours is left in the database. One that comes back just now is waited for a little: a session that stays is taken
    /// for that of a lost worker.
    func close() async {
        var open = opened
        let deadline = ContinuousClock.now + min(options.drainDeadline, .seconds(5))
        if state.hasCounts {
            do throws(PostgresError) {
                _ = try await beat()
            } catch {
                limitedLog.say("the last counts of this worker were not reported", error)
            }
        }
        await RetryingLoop.run(while: { !open.isEmpty }, pause: { _ = await shared.pulse.wait(for: $0) }) {
            _ throws(PostgresError) in
            guard let session = open.first else { return }
            try await links.house.use { connection throws(PostgresError) in
                // Whatever is still held there has not crashed: it goes back with nothing counted.
                let left = try await Queue.leasesHeld(on: connection, session: session)
                if !left.isEmpty {
                    _ = try await Queue.returnLeases(on: connection, session: session, numbers: left)
                }
                _ = try await Queue.closeSession(on: connection, session: session)
            }
            open.remove(session)
        } failed: { error in
            limitedLog.say("a session could not be closed", error)
            return (error.isOutage || error.outcomeUnknown) && ContinuousClock.now < deadline ? .pause : .end
        }
    }
}
