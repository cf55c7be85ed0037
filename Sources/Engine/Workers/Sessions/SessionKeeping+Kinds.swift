import MillraceQueues
import Postgres
import Telemetry

extension SessionKeeping {
    /// Reads of which kinds this session takes jobs now: which build was promoted decides, and for whom a build's jobs under way are.
    func takeKinds(of session: Int64) async throws(PostgresError) {
        let (mark, kinds) = try await links.beat.use { connection throws(PostgresError) in
            // The mark first: what changes between the two is read again.
            let mark = try await Queue.versionsMark(on: connection)
            return (mark, try await Queue.kindsTaken(on: connection, session: session))
        }
        let (added, gone) = catalog.take(
            kinds.compactMap { kind in worked[kind.name].map { (id: kind.id, kind: $0) } })
        self.mark = mark
        // What has not started goes back, to whom it is for now; what comes in from a claim under way goes back instead of starting.
        if !gone.isEmpty { state.handBack() }
        if !added.isEmpty { wakeups.lookEverywhere() }
        if !added.isEmpty || !gone.isEmpty {
            log.debug("takes jobs of other kinds now", [("added", "\(added.count)"), ("gone", "\(gone.count)")])
        }
    }

    /// Once a beat, and when a notification says so.
    func heedVersions() async throws(PostgresError) {
        let now = try await links.beat.use { connection throws(PostgresError) in
            try await Queue.versionsMark(on: connection)
        }
        if now != mark { try await takeKinds(of: state.session) }
    }
}
