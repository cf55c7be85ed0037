import MillraceQueues
import Postgres
import Synchronization

/// Looks at all lanes, and at what may have committed late; the claim loop and housekeeping both do.
struct LaneSurvey: Sendable {
    private let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func sample(by link: LoopConnection) async throws(PostgresError) {
        let horizon = try await horizon(by: link)
        shared.floors.withLock { $0.sample(horizon) }
    }

    func horizon(by link: LoopConnection) async throws(PostgresError) -> Horizon {
        try await link.use { connection throws(PostgresError) in try await Queue.horizon(on: connection) }
    }

    /// - Parameter tells: the claim loop, asleep, of what was found. Looking itself it claims what can be had at once; the rest, behind
    ///   a bound or a limit, is no reason to look again.
    @discardableResult
    func walk(by link: LoopConnection, tells: Bool) async throws(PostgresError) -> Duration {
        let began = ContinuousClock.now
        let known = shared.catalog.kindIDs
        let table = shared.catalog.known
        let lanes = try await link.use { connection throws(PostgresError) in
            try await Queue.lanes(on: connection, kinds: known, queues: table.serves.map { Array($0) })
        }
        let took = began.duration(to: .now)
        shared.catalog.lastWalk = took
        try await heed(lanes, table: table, tells: tells)
        return took
    }

    func heed(
        _ lanes: [(lane: Lane, first: Int64, last: Int64)], table: KnownQueues, tells: Bool
    ) async throws(PostgresError) {
        shared.floors.withLock { floors in
            for lane in lanes { floors.found(lane.lane, first: lane.first, last: lane.last) }
        }
        if lanes.contains(where: { table.names[$0.lane.queue] == nil }) { try await shared.catalog.refresh() }
        if tells, !lanes.isEmpty, shared.sleepLock.isCovered { shared.wakeups.lookEverywhere() }
    }
}
