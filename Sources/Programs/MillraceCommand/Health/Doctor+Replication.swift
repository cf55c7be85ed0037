import MillraceQueues
import Postgres

/// Says what becomes of answered commits when another server takes this one's place.
extension Doctor {
    /// Counters of requests, which begin again from zero: meant to be empty after a failover.
    static let meantToBeEmpty = ["gateway_bucket"]

    func replication() async -> [Check] {
        do throws(PostgresError) {
            let facts = try await Queue.replicationFacts(on: connection)
            return [
                Check(subject: .replication, result: Self.judge(facts)),
                Check(subject: .unloggedTables, result: Self.judge(unlogged: facts.unlogged)),
            ]
        } catch {
            return [await look(.replication) { () throws(PostgresError) in throw error }]
        }
    }

    static func judge(_ facts: ReplicationFacts) -> Check.Result {
        if facts.isStandby { return .ok("this is a standby; ask the primary") }
        let standbys = Humane.count(facts.standbys, "standby")
        guard !facts.synchronousNames.isEmpty else {
            return facts.standbys == 0
                ? .ok("none: what is answered is on this server alone")
                : .ok("asynchronous, to \(standbys): a failover may lose what was answered in the last moments")
        }
        if ["off", "local"].contains(facts.synchronousCommit) {
            return .problem(
                "synchronous_standby_names names standbys, and synchronous_commit = \(facts.synchronousCommit) "
                    + "does not wait for them: a failover loses what was answered",
                advice: "set synchronous_commit to on")
        }
        if !facts.notWaiting.isEmpty {
            return .warning(
                "sessions of \(facts.notWaiting.joined(separator: ", ")) do not wait for a standby: "
                    + "a failover loses what they were answered",
                advice: "alter role … reset synchronous_commit, or alter database … for a database")
        }
        if let synchronous = facts.synchronous, synchronous < facts.needed {
            return .problem(
                "commits wait for \(Humane.count(facts.needed, "standby")), and \(synchronous) answer: "
                    + "nothing is committed",
                advice: "start the standbys that synchronous_standby_names names, or let Patroni set it")
        }
        if facts.standbys <= facts.needed {
            return .warning(
                "synchronous, to \(standbys), with none to take a place: "
                    + "when one stops, every commit waits until it is back",
                advice: "add a standby; Patroni with synchronous_mode: true goes on without one, and says so here")
        }
        if facts.synchronousCommit == "remote_write" {
            return .warning(
                "synchronous_commit = remote_write: if both machines lose power, what was answered may be gone",
                advice: "set it to on, unless that is meant")
        }
        let seen = facts.synchronous == nil ? "; how each follows only a role with pg_monitor sees" : ""
        return .ok(
            "synchronous, to \(facts.needed) of \(standbys): "
                + "what was answered survives a failover to such a standby\(seen)")
    }

    static func judge(unlogged: [String]) -> Check.Result {
        let unmeant = unlogged.filter { !meantToBeEmpty.contains($0) }
        guard unmeant.isEmpty else {
            return .problem(
                "\(unmeant.joined(separator: ", ")): empty after a crash or a failover",
                advice: "run for each: alter table millrace.… set logged")
        }
        return .ok(
            unlogged.isEmpty
                ? "none" : "\(unlogged.joined(separator: ", ")): counters that begin again, as is meant")
    }
}
