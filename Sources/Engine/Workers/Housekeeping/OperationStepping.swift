import MillraceQueues
import Postgres
import Threads

/// Takes the steps of open operations, one after the other: at once when one was started, at its pace, and every few seconds in case a
/// notification was lost. Of several workers each takes the next step that nobody else has taken.
actor OperationStepping: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var backoff = Backoff()
        while !Task.isCancelled, !state.isDraining {
            var pause = Duration.seconds(5)
            do throws(PostgresError) {
                let step = try await links.sweep.use { connection throws(PostgresError) in
                    try await Queue.stepOperation(most: 1000, on: connection)
                }
                if let wait = step.wait { pause = min(wait, pause) }
                backoff.reset()
            } catch {
                limitedLog.say("a step of an operation failed", error)
                try? await Task.sleep(for: backoff.next())
            }
            if pause > .milliseconds(20) {
                await shared.operations.wait(for: pause)
            } else {
                // Others use the connection too.
                try? await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}
