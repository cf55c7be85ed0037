import FoundationEssentials
import MillraceQueues
import Postgres
import Synchronization

/// Looks for what claims and promotions may have gone past: what the floors hide, and lanes that nobody named. While the worker is busy
/// nobody notifies: then a tenant's first job must not wait for its lane's turn among many, and the walk comes often, but never takes
/// more than a twentieth of the time.
actor LaneLooking: SharingPart {
    nonisolated let shared: WorkerShared
    private let survey: LaneSurvey

    init(_ shared: WorkerShared) {
        self.shared = shared
        survey = LaneSurvey(shared)
    }

    func run() async {
        var looks = Looks()
        while !Task.isCancelled, !state.isDraining {
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                if links.sweep.generation != looks.generation {
                    looks = Looks()
                    looks.generation = links.sweep.generation
                }
                let took = try await lookBelowFloors(&looks)
                let many = catalog.known.hasManyLanes
                if many, !sleepLock.isCovered { pause = .milliseconds(50) }
                pause = max(pause, took * 20)
                try await promoteLate(&looks)
            } catch {
                limitedLog.say("looking through the lanes failed", error)
            }
            try? await Task.sleep(for: pause)
        }
    }

    /// How the looks for what was hidden have gone.
    struct Looks {
        var emptyBelow = EmptyLaneMemory()
        /// The connection they were made on.
        var generation = 0
        /// Below the emptyBelow, of places in line and of times, and when a piece of places was looked at. One a second.
        var places = BelowFloorScan(firstReach: 10_000, end: 0)
        var piece = ContinuousClock.now
        var times = BelowFloorScan(firstReach: 1, end: Date.distantPast.timeIntervalSinceReferenceDate)
        var nothingDueBefore = NothingDueBefore()
        /// The last look for timers that committed late, by our clock and by the database's.
        var late = (ended: ContinuousClock.now, took: Duration.zero, time: Date.distantPast)

        /// Up to this number of lines, each lane is looked at by itself.
        static let fewLines = 8
    }

    private func lookBelowFloors(_ looks: inout Looks) async throws(PostgresError) -> Duration {
        let table = catalog.known
        let lines = table.serves.map { Array($0) } ?? Array(table.names.keys)
        guard lines.count <= Looks.fewLines else { return try await survey.walk(by: links.sweep, tells: true) }
        let isWhole = !looks.places.isDear
        // it uses up a transaction's number
        if !isWhole { looks.emptyBelow.sample(try await survey.horizon(by: links.sweep)) }
        let emptyBelow = looks.emptyBelow
        let lanes = EmptyLaneMemory.lanes(of: lines)
        let known = catalog.kindIDs
        let began = ContinuousClock.now
        let found = try await links.sweep.use { connection throws(PostgresError) in
            isWhole
                ? try await Queue.lanes(on: connection, kinds: known, queues: table.serves.map { Array($0) })
                : try await Queue.lanes(
                    on: connection, kinds: known, above: lanes.map { ($0, emptyBelow.bottom(of: $0)) })
        }
        let took = began.duration(to: .now)
        looks.emptyBelow.looked(
            at: lanes, found: Dictionary(found.map { ($0.lane, $0.first) }, uniquingKeysWith: { min($0, $1) }))
        try await survey.heed(found, table: table, tells: true)
        if isWhole {
            looks.places.lookedWhole(took: took)
            catalog.lastWalk = took  // one by the emptyBelow says nothing of what a whole one costs
        } else if looks.piece.duration(to: .now) > .seconds(1) {
            try await lookAtPiece(of: &looks.places, below: emptyBelow.highest, kinds: known, table: table)
            looks.piece = .now
        }
        return took
    }

    private func lookAtPiece(
        of places: inout BelowFloorScan, below bottom: Int64, kinds: [Int32], table: KnownQueues
    ) async throws(PostgresError) {
        let piece = places.piece(below: Double(bottom))
        let began = ContinuousClock.now
        let found = try await links.sweep.use { connection throws(PostgresError) in
            try await Queue.lanes(
                on: connection, kinds: kinds, queues: table.serves.map { Array($0) },
                above: Int64(piece.above), upTo: Int64(piece.upTo))
        }
        places.lookedAtPiece(took: began.duration(to: .now))
        try await survey.heed(found, table: table, tells: true)
    }

    /// Timers that were committed behind others that have been moved.
    private func promoteLate(_ looks: inout Looks) async throws(PostgresError) {
        let atOnce = 5000
        guard looks.late.ended.duration(to: .now) > max(.seconds(1), looks.late.took * 20) else { return }
        let isDear = looks.times.isDear
        if isDear { looks.nothingDueBefore.sample(try await survey.horizon(by: links.sweep), at: looks.late.time) }
        var floor = isDear ? looks.nothingDueBefore.bottom : nil
        let isWhole = floor == nil
        let began = ContinuousClock.now
        if let bottom = floor, let left = try await lookAtPiece(of: &looks.times, below: bottom) { floor = left }
        let late = try await links.sweep.use { connection throws(PostgresError) in
            try await Queue.promote(on: connection, floor: floor, wanted: atOnce)
        }
        looks.late = (.now, began.duration(to: .now), late.now)
        if isWhole { looks.times.lookedWhole(took: looks.late.took) }
        if late.moved < atOnce { looks.nothingDueBefore.looked() }
        wakeups.filled(late.lanes)
    }

    /// - Returns: a time behind which something below the bottom waits to be moved.
    private func lookAtPiece(of times: inout BelowFloorScan, below bottom: Date) async throws(PostgresError) -> Date? {
        let piece = times.piece(below: bottom.timeIntervalSinceReferenceDate)
        let above = Date(timeIntervalSinceReferenceDate: piece.above)
        let upTo = Date(timeIntervalSinceReferenceDate: piece.upTo)
        let began = ContinuousClock.now
        let isDue = try await links.sweep.use { connection throws(PostgresError) in
            try await Queue.isDue(on: connection, above: above, upTo: upTo)
        }
        if !isDue { times.lookedAtPiece(took: began.duration(to: .now)) }  // else once more, until all of it is moved
        return isDue ? above : nil
    }
}
