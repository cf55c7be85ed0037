import MillraceQueues
import Postgres
import Threads

/// Asks what may have committed late, beside the claims: claims that follow each other do not wait for it.
actor LateCommits: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        while !Task.isCancelled, !state.isDraining {
            guard await shared.samples.wait(for: nil) else { continue }
            do throws(PostgresError) {
                try await LaneSurvey(shared).sample(by: links.house)
            } catch {
                limitedLog.say("looking for what committed late failed", error)
            }
        }
    }
}
