import Jobs
import Postgres
import Queues

extension Command {
    static let loadClaims = Command(
        ["load", "claims"],
        summary: "Measure what a claim costs with a million jobs in its way",
        discussion: """
            Claims and finishes known jobs in batches of 100, as a worker does, and compares the median claim: alone; with a \
            million jobs scheduled for tomorrow; with a million jobs in front, of a kind that nobody knows; and with a million \
            jobs of a full limit key, which the first claims park. Needs a database of its own, about 1.5 GB of disk and two \
            minutes.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1000...50_000_000), environment: .none, fallback: "1000000",
                help: "How many stand in the way."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
        ],
        examples: [Example("millrace load claims", "the whole comparison")]
    ) { invocation in
        do {
            let connection = try await Connection.open(try invocation.connectionOptions(), name: "load")
            let code = try await ClaimsScenario(invocation: invocation, connection: connection).run()
            await connection.close()
            return code
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

private struct ClaimsScenario: Sendable {
    let invocation: Invocation
    let connection: Connection

    static let batch = 100
    static let rounds = 200

    func run() async throws -> ExitCode {
        let obstacle = invocation.parsed.integer("jobs") ?? 1_000_000
        // A queue for each part, so that none inherits another's dead rows.
        let alone = try await medians(queue: "load.alone")
        try await enqueue("load.nothing", count: obstacle, queue: "load.scheduled", runAt: "tomorrow")
        let scheduled = try await medians(queue: "load.scheduled")
        try await enqueue("load.nobody", count: obstacle, queue: "load.unknown", runAt: nil)
        let unknown = try await medians(queue: "load.unknown")
        _ = try await Queue.setLimit(of: .key("load.full"), to: Limit(concurrency: 0), on: connection)
        try await enqueue("load.nothing", count: obstacle, queue: "load.full", runAt: nil, limitKey: "load.full")
        let parking = try await park("load.full")
        let full = try await medians(queue: "load.full")
        let again = try await medians(queue: "load.again")
        let base = (alone.median + again.median) / 2
        return invocation.report(
            "claims",
            [
                .atMost(
                    "claim of \(Self.batch), \(Humane.count(obstacle)) scheduled jobs aside", base * 1.25,
                    measured: scheduled.median, unit: "ms"),
                .atMost(
                    "claim of \(Self.batch), \(Humane.count(obstacle)) unknown jobs in front", base * 1.25,
                    measured: unknown.median, unit: "ms"),
                .atMost(
                    "claim of \(Self.batch), \(Humane.count(obstacle)) jobs of a full key in front", base * 1.25,
                    measured: full.median, unit: "ms"),
            ],
            figures: [
                ("alone_ms", .double(alone.median)), ("again_ms", .double(again.median)),
                ("scheduled_ms", .double(scheduled.median)),
                ("unknown_ms", .double(unknown.median)), ("unknown_first_ms", .double(unknown.first)),
                ("full_ms", .double(full.median)), ("parking_s", .double(parking)),
            ])
    }

    private func enqueue(_ kind: String, count: Int, queue: String, runAt: String?, limitKey: String? = nil)
        async throws
    {
        let live = invocation.console.live()
        var left = count
        while left > 0 {
            let chunk = min(left, 100_000)
            try await connection.execute(
                "select millrace.enqueue_bulk($1, array(select '{\"n\": 1}'::text from generate_series(1, $2)), $3, null, $4::text::timestamptz, null, null, $5)",
                [.text(kind), .int4(Int32(chunk)), .text(queue), .text(runAt), .text(limitKey)], deadline: .seconds(300)
            )
            left -= chunk
            live.update(["\(kind): \(Humane.count(count - left)) of \(Humane.count(count))"])
        }
        live.update([])
    }

    /// Seconds until claims have moved every job of the full key out of the way.
    private func park(_ name: String) async throws -> Double {
        let kinds = try await Queue.registerKinds(on: connection, [("load.nothing", nil)])
        let lines = try await Queue.queues(on: connection).filter { $0.name == name }.map(\.id)
        let began = ContinuousClock.now
        var floors: [Int64] = lines.map { _ in 0 }
        let live = invocation.console.live()
        var moved = 0
        while true {
            let stretches = zip(lines, floors).map {
                Stretch(lane: Lane(queue: $0, priority: 4, line: .normal), floor: $1, limit: 1000)
            }
            let found = try await Queue.claim(
                on: connection, session: 0, number: 8, kinds: kinds, from: stretches, wanted: 1000, shortQueues: [],
                longQueues: [])
            guard !found.turnedAway.isEmpty else { break }
            moved += found.turnedAway.count
            for place in found.turnedAway {
                guard let index = lines.firstIndex(of: place.lane.queue) else { continue }
                floors[index] = max(floors[index], place.seq)
            }
            live.update(["parked \(Humane.count(moved))"])
        }
        live.update([])
        return began.duration(to: .now) / .seconds(1)
    }

    /// Claims through the same plan and floors as a worker; the first claim may have to walk, and is told apart.
    private func medians(queue name: String) async throws -> (median: Double, first: Double) {
        try await enqueue("load.nothing", count: Self.batch * (Self.rounds + 10), queue: name, runAt: nil)
        let times = try await ClaimTimes.measure(
            queue: name, kind: "load.nothing", batch: Self.batch, rounds: Self.rounds, on: connection)
        return (times.median, times.first)
    }
}
