import FoundationEssentials
import Postgres
import Queues
import Synchronization

/// What claims and promotions may have gone past.
extension Worker {
    /// What the floors may hide, and lanes that nobody named. While busy nobody notifies: then a tenant's first job must not
    /// wait for its lane's turn among many, and the walk comes often, but never takes more than a twentieth of the time.
    func lanesLoop() async {
        var looks = Looks()
        while !Task.isCancelled, !desk.isDraining {
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                if sweepLink.generation != looks.generation {
                    looks = Looks()
                    looks.generation = sweepLink.generation
                }
                let took = try await lookBelowFloors(&looks)
                let many = queues.withLock { $0.open.count > Plan.fewQueues || $0.lines.count > $0.mains }
                if many, !doorman.holds { pause = .milliseconds(50) }
                pause = max(pause, took * 20)
                try await promoteLate(&looks)
            } catch {
                complaints.say("looking through the lanes failed", error)
            }
            try? await Task.sleep(for: pause)
        }
    }

    /// How the looks for what was hidden have gone.
    struct Looks {
        var bottoms = Bottoms()
        /// The connection they were made on.
        var generation = 0
        var whole = Whole()
        var timers = Whole()
        var dueBottom = DueBottom()
        /// The last look for timers that committed late, by our clock and by the database's.
        var late = (ended: ContinuousClock.now, took: Duration.zero, time: Date.distantPast)

        /// The last look that went by no bottom. What an old snapshot keeps makes it dear, and then it comes rarely.
        struct Whole {
            /// Between two of them, even where they cost nothing.
            var least = Duration.seconds(10)
            var ended = ContinuousClock.now
            var took = Duration.zero

            /// It has become dear, as it does when a snapshot is held open: most go by the bottoms.
            var isDear: Bool { took > .milliseconds(5) }
            var isDue: Bool { ended.duration(to: .now) > max(least, took * 400) }
        }

        /// So many lines have lanes that are looked at one by one.
        static let fewLines = 8
    }

    private func lookBelowFloors(_ looks: inout Looks) async throws(PostgresError) -> Duration {
        guard options.sweeps else { return .seconds(1) }
        let table = queues.withLock { $0 }
        let lines = table.serves.map { Array($0) } ?? Array(table.names.keys)
        guard lines.count <= Looks.fewLines else { return try await lookBelowFloors(sweepLink, tells: true) }
        if looks.whole.isDear {  // a sample uses up a transaction's number
            looks.bottoms.sample(try await horizon(by: sweepLink))
        }
        let bottoms = looks.bottoms
        let lanes = Bottoms.lanes(of: lines)
        let began = ContinuousClock.now
        let known = kinds.withLock { Array($0.keys) }
        let isWhole = !looks.whole.isDear || looks.whole.isDue
        let found = try await sweepLink.use { connection throws(PostgresError) in
            isWhole
                ? try await Queue.lanes(on: connection, kinds: known, queues: table.serves.map { Array($0) })
                : try await Queue.lanes(on: connection, kinds: known, above: lanes.map { ($0, bottoms.bottom(of: $0)) })
        }
        let took = began.duration(to: .now)
        if isWhole {
            looks.whole = Looks.Whole(took: took)
            lanesWalk.withLock { $0 = took }  // one by the bottoms says nothing of what a whole one costs
        }
        looks.bottoms.looked(
            at: lanes, found: Dictionary(found.map { ($0.lane, $0.first) }, uniquingKeysWith: { min($0, $1) }))
        try await heed(found, table: table, tells: true)
        return took
    }

    /// Timers that were committed behind others that have been moved.
    private func promoteLate(_ looks: inout Looks) async throws(PostgresError) {
        let atOnce = 5000
        guard looks.late.ended.duration(to: .now) > max(.seconds(1), looks.late.took * 20) else { return }
        if looks.timers.isDear {
            looks.dueBottom.sample(try await horizon(by: sweepLink), at: looks.late.time)
        }
        let floor = looks.timers.isDear && !looks.timers.isDue ? looks.dueBottom.bottom : nil
        let began = ContinuousClock.now
        let late = try await sweepLink.use { connection throws(PostgresError) in
            try await Queue.promote(on: connection, floor: floor, wanted: atOnce)
        }
        looks.late = (.now, began.duration(to: .now), late.now)
        if floor == nil { looks.timers = Looks.Whole(took: looks.late.took) }
        if late.moved < atOnce { looks.dueBottom.looked() }
        wakeups.filled(late.lanes)
    }

    /// - Parameter tells: the claim loop, asleep, of what was found. Looking itself it claims what can be had at once; the rest, behind
    ///   a bound or a limit, is no reason to look again.
    @discardableResult
    func lookBelowFloors(_ link: Link, tells: Bool) async throws(PostgresError) -> Duration {
        guard options.sweeps else { return .seconds(1) }
        let began = ContinuousClock.now
        let known = kinds.withLock { Array($0.keys) }
        let table = queues.withLock { $0 }
        let lanes = try await link.use { connection throws(PostgresError) in
            try await Queue.lanes(on: connection, kinds: known, queues: table.serves.map { Array($0) })
        }
        let took = began.duration(to: .now)
        lanesWalk.withLock { $0 = took }
        try await heed(lanes, table: table, tells: tells)
        return took
    }

    private func heed(
        _ lanes: [(lane: Lane, first: Int64, last: Int64)], table: QueueTable, tells: Bool
    ) async throws(PostgresError) {
        floors.withLock { floors in
            for lane in lanes { floors.found(lane.lane, first: lane.first, last: lane.last) }
        }
        if lanes.contains(where: { table.names[$0.lane.queue] == nil }) { try await refreshQueues() }
        if tells, !lanes.isEmpty, doorman.holds { wakeups.lookEverywhere() }
    }
}
