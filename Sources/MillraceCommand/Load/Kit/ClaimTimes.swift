import Postgres
import Queues
import Workers

/// Claims and finishes jobs of one queue as a worker does, through the same plan and floors, and says how long each claim took.
struct ClaimTimes: Sendable {
    var first: Double
    /// In milliseconds, without the first tenth, sorted.
    var sorted: [Double]

    var median: Double { percentile(sorted, 0.5) }

    static func measure(queue name: String, kind: String, batch: Int, rounds: Int, on connection: Connection)
        async throws -> ClaimTimes
    {
        let kinds = try await Queue.registerKinds(on: connection, [(kind, nil)])
        let session = Int64.random(in: 1 ... .max)
        try await Queue.openSession(
            on: connection,
            SessionCard(
                id: session, name: "load", host: Worker.Options.host, pid: 1, version: Worker.version, queues: [name],
                kinds: kinds, slots: 100, direct: false))
        let lines = try await Queue.queues(on: connection).filter { $0.name == name }
        let queues = lines.map(\.id)
        let shares = Dictionary(uniqueKeysWithValues: lines.map { ($0.id, Shares.Line(main: $0.main, weight: 1)) })
        var floors = Floors()
        var plan = Plan()
        var times: [Double] = []
        for round in 0..<rounds {
            let stretches = plan.stretches(
                floors: floors, queues: queues, lines: shares, room: [:], wanted: batch,
                allowance: Plan.Allowance(suspects: 16, lone: true), hurried: round > 0)
            floors.planned()
            let began = ContinuousClock.now
            let found = try await Queue.claim(
                on: connection, session: session, number: Int64(round + 1) * 8, kinds: kinds, from: stretches,
                wanted: batch, shortQueues: [], longQueues: [])
            times.append(began.duration(to: .now) / .milliseconds(1))
            let jobs = found.jobs
            floors.claimed(found.places, from: stretches, wanted: batch)
            let numbers = Dictionary(grouping: jobs, by: \.number)
            _ = try await Queue.finish(
                on: connection, session: session,
                Flush(
                    ended: jobs.map { Ended(job: $0, outcome: .succeeded) }, partial: [],
                    complete: numbers.map { ($0.key, Int32($0.value.count)) }))
        }
        _ = try await Queue.closeSession(on: connection, session: session)
        return ClaimTimes(first: times.first ?? .nan, sorted: times.dropFirst(rounds / 10).sorted())
    }
}
