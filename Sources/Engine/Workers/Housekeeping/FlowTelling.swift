import Postgres
import Queues
import Threads

/// Tells jobs that wait for others: at once after an end that somebody waits for, and once a second for what another worker left undone, or
/// what crossed.
actor FlowTelling: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var backoff = Backoff()
        while !Task.isCancelled, !state.isDraining {
            do throws(PostgresError) {
                try await links.house.use { connection throws(PostgresError) in
                    try await Queue.checkFlows(on: connection)
                }
                // Each step is bounded, so that a beat need not wait for a fan-out of a hundred thousand.
                while try await links.house.use({ connection throws(PostgresError) in
                    try await Queue.advanceFlows(on: connection)
                }), !state.isDraining {}
                backoff.reset()
            } catch {
                limitedLog.say("telling flows failed", error)
                try? await Task.sleep(for: backoff.next())
            }
            // Many ends a moment are told together.
            try? await Task.sleep(for: .milliseconds(5))
            await shared.flowEnds.wait(for: .seconds(1))
        }
    }
}
