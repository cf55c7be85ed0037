import Postgres
import TestSupport
import Testing

/// Faults that only another session's statement at the wrong moment shows: `MILLRACE_PLANTED=looksOnce`.
enum PlantedRace: String, CaseIterable {
    /// Who looks for missed ends does not come again where a run is just ending.
    case looksOnce
    /// An end does not hold its lease against a rescue.
    case endsUnfenced
    /// A rescue does not see that a handler's transaction holds the lease.
    case rescuesHeld
    /// Claims count at their gates beside each other.
    case claimsBesideGates
    /// An end that finds its key locked leaves no note.
    case forgetsKeys

    /// Rounds of 240 steps that find it. The first one is enough, as long as nothing changes what a seed draws.
    var seeds: [Int] {
        switch self {
        case .looksOnce: [6, 10]
        case .endsUnfenced: [1, 3, 4]
        case .rescuesHeld: [1, 3, 4]
        case .claimsBesideGates: [3, 4, 6]
        case .forgetsKeys: [1]
        }
    }

    private var changes: [(function: String, from: String, to: String)] {
        switch self {
        case .looksOnce: [("flows_look", "sure := false", "sure := true")]
        case .endsUnfenced: [("finish", "l.number = p.number for key share) l", "l.number = p.number) l")]
        case .rescuesHeld: [("rescue", "order by l.number for update skip locked", "order by l.number")]
        case .claimsBesideGates: [("gates_lock", "perform millrace.turns_wait", "return; perform millrace.turns_wait")]
        case .forgetsKeys:
            [
                (
                    "unique_end", "and u.job = j.id and not u.ended\n            on conflict",
                    "and u.job = -j.id\n            on conflict"
                )
            ]
        }
    }

    func plant(in connection: Connection) async throws {
        for change in changes { try await connection.replace(in: change.function, change.from, with: change.to) }
    }
}
