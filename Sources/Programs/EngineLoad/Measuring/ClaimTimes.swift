import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Workers

/// How long claims of one queue took.
struct ClaimTimes: Sendable {
    var first: Double
    /// In milliseconds, without the first tenth, sorted.
    var sorted: [Double]

    var median: Double { percentile(sorted, 0.5) }

    private init(_ times: [Double]) {
        first = times.first ?? .nan
        sorted = times.dropFirst(times.count / 10).sorted()
    }

    init() {
        self.init([])
    }

    /// The queues take turns, claim by claim, so that everything else on the machine affects all of them alike.
    static func measure(
        _ places: [(queue: String, connection: Connection)], kind: String, batch: Int, rounds: Int
    ) async throws -> [ClaimTimes] {
        var claimers: [Claimer] = []
        for place in places {
            claimers.append(try await Claimer(queue: place.queue, kind: kind, batch: batch, on: place.connection))
        }
        for _ in 0..<rounds {
            for index in claimers.indices { try await claimers[index].turn() }
        }
        for claimer in claimers { try await claimer.close() }
        return claimers.map { ClaimTimes($0.times) }
    }
}

/// Claims and finishes jobs of one queue as a worker does, through the same plan and floors.
private struct Claimer {
    private let connection: Connection
    private let session = Int64.random(in: 1 ... .max)
    private let kinds: [Int32]
    private let queues: [Int32]
    private let shares: [Int32: FairShares.Line]
    private let limited: Set<Int32>
    private let batch: Int
    private var floors = Floors()
    private var plan = ClaimPlan()
    private(set) var times: [Double] = []

    init(queue name: String, kind: String, batch: Int, on connection: Connection) async throws {
        self.connection = connection
        self.batch = batch
        kinds = try await Queue.registerKinds(on: connection, [(kind, nil)])
        try await Queue.openSession(
            on: connection,
            SessionCard(
                id: session, name: "load", host: JobWorker.Options.host, pid: 1, version: JobWorker.version,
                queues: [name],
                kinds: kinds, slots: 100, direct: false))
        let lines = try await Queue.queues(on: connection).filter { $0.name == name }
        queues = lines.map(\.id)
        shares = Dictionary(uniqueKeysWithValues: lines.map { ($0.id, FairShares.Line(main: $0.main, weight: 1)) })
        limited = Set(lines.filter(\.limited).map(\.id))
    }

    mutating func turn() async throws {
        let isHurried = !times.isEmpty
        var ranges = plan.ranges(
            floors: floors, queues: queues, lines: shares, room: [:], wanted: batch,
            allowance: ClaimPlan.Allowance(suspects: 16, lone: true), hurried: isHurried)
        if isHurried { ranges = plan.apart(ranges, floors: floors, limited: limited) }
        let isLimited = ranges.contains { limited.contains($0.lane.queue) }
        floors.planned()
        let began = ContinuousClock.now
        let found = try await Queue.claim(
            on: connection, session: session, number: Int64(times.count + 1) * 8, kinds: kinds, from: ranges,
            wanted: batch, shortQueues: [], longQueues: [], limited: isLimited)
        times.append(began.duration(to: .now) / .milliseconds(1))
        floors.claimed(found.places, from: ranges, wanted: batch, heldBack: found.heldBack)
        _ = plan.went(brought: found.places.count, heldBack: found.heldBack)
        let numbers = Dictionary(grouping: found.jobs, by: \.number)
        _ = try await Queue.finish(
            on: connection, session: session,
            Flush(
                ended: found.jobs.map { Ended(job: $0, outcome: .succeeded) }, partial: [],
                complete: numbers.map { ($0.key, Int32($0.value.count)) }))
    }

    func close() async throws(PostgresError) {
        _ = try await Queue.closeSession(on: connection, session: session)
    }
}
