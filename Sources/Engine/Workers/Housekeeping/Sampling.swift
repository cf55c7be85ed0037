import MillraceQueues
import Postgres
import Threads

/// Takes a sample of the fleet every ten seconds, for charts and for `status --at`. Every worker asks; the database lets one of them work.
/// It goes on while the worker drains, and ends with its session.
actor Sampling: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        while !Task.isCancelled {
            var pause = Duration.seconds(10)
            do throws(PostgresError) {
                pause = try await links.sweep.use { connection throws(PostgresError) in
                    try await Queue.takeSample(on: connection)
                }
            } catch {
                limitedLog.say("taking a sample failed", error)
            }
            // Not all at once: the first one does it, and the others find it done.
            try? await Task.sleep(for: pause + .milliseconds(Int64.random(in: 0...500)))
        }
    }
}
