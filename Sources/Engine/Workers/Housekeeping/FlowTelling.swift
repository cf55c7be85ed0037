import MillraceQueues
import Postgres
import Threads

/// Tells jobs that wait for others: at once after an end that somebody waits for, and once a second for what another worker left undone, or
/// what crossed.
actor FlowTelling: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        await RetryingLoop.run(while: { !Task.isCancelled && !state.isDraining }) { _ throws(PostgresError) in
            try await links.house.use { connection throws(PostgresError) in
                try await Queue.checkFlows(on: connection)
            }
            // Each step is bounded, so that a beat need not wait for a fan-out of a hundred thousand.
            while try await links.house.use({ connection throws(PostgresError) in
                try await Queue.advanceFlows(on: connection)
            }), !state.isDraining {}
            await rest()
        } failed: { error in
            limitedLog.say("telling flows failed", error)
            await rest()
            return .pause
        }
    }

    private func rest() async {
        // Many ends a moment are told together.
        try? await Task.sleep(for: .milliseconds(5))
        await shared.flowEnds.wait(for: .seconds(1))
    }
}
