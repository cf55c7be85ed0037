package import CommandKit
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    package static let loadClaims = scenario(
        "claims",
        summary: "Measure what a claim costs with a million jobs in its way",
        discussion: """
            Claims and finishes known jobs in batches of 100, as a worker does, and compares the median claim with \
            that of a queue which holds nothing else; claims of both queues alternate. In the way are, one after the \
            other: a million jobs scheduled for tomorrow; a million jobs in front, of an unknown kind; and a million \
            jobs of a full limit key, which the first claims park, before jobs without a key and before jobs with \
            another key. Every run makes queues of its own, and leaves in them the jobs that stood in the way. Needs \
            a database of its own, about 1.5 GB of disk and two minutes.
            """,
        flags: [
            .count("jobs", 1000...50_000_000, 1_000_000, "How many jobs stand in the way."),
            .count("claims", 10...10_000, 400, "How many claims the median is of."),
        ],
        examples: [Example("millrace load claims", "the whole comparison")]
    ) { invocation in
        let connection = try await invocation.connect()
        let code = try await ClaimsScenario(invocation: invocation, connection: connection).run()
        await connection.close()
        return code
    }
}

private struct ClaimsScenario: Sendable {
    let invocation: Invocation
    let connection: Connection

    static let batch = 100
    private let run = String(UInt32.random(in: .min ... .max), radix: 36)

    private var claims: Int { invocation.count("claims") }

    private func queue(_ what: String) -> String { "load.\(what).\(run)" }

    func run() async throws -> ExitCode {
        let obstacle = invocation.count("jobs")
        // A queue for each part, so that none inherits another's dead rows.
        try await enqueue("load.nothing", count: obstacle, queue: queue("scheduled"), runAt: "tomorrow")
        let scheduled = try await sights(queue: queue("scheduled"))
        try await enqueue("load.nobody", count: obstacle, queue: queue("unknown"), runAt: nil)
        let unknown = try await sights(queue: queue("unknown"))
        _ = try await Queue.setLimit(of: .key("load.full"), to: Limit(concurrency: 0), on: connection)
        try await enqueue("load.nothing", count: obstacle, queue: queue("full"), runAt: nil, limitKey: "load.full")
        let parking = try await park(queue("full"))
        let full = try await sights(queue: queue("full"))
        _ = try await Queue.setLimit(of: .key("load.other"), to: Limit(concurrency: 1_000_000), on: connection)
        let other = try await sights(queue: queue("full"), limitKey: "load.other")
        let count = Humane.count(obstacle)
        return invocation.report(
            "claims",
            [
                scheduled.bar("claim of \(Self.batch), \(count) scheduled jobs aside"),
                unknown.bar("claim of \(Self.batch), \(count) unknown jobs in front"),
                full.bar("claim of \(Self.batch), \(count) jobs of a full key in front"),
                other.bar("claim of \(Self.batch) with another key, \(count) jobs of a full key in front"),
            ],
            figures: scheduled.figures("scheduled") + unknown.figures("unknown") + full.figures("full")
                + other.figures("other_key") + [
                    ("unknown_first_ms", .double(unknown.obstructed.first)), ("parking_s", .double(parking)),
                ])
    }

    /// Claims with something in their way, and between them those of an empty queue's jobs.
    private struct Sights {
        var obstructed: ClaimTimes
        var free: ClaimTimes

        func bar(_ what: String) -> Bar {
            .atMost(what, free.median * 1.25, measured: obstructed.median, unit: "ms")
        }

        func figures(_ name: String) -> [(String, JSONValue)] {
            [("\(name)_ms", .double(obstructed.median)), ("\(name)_free_ms", .double(free.median))]
        }
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
            let ranges = zip(lines, floors).map {
                ClaimRange(lane: Lane(queue: $0, priority: 4, line: .normal), floor: $1, limit: 1000)
            }
            let found = try await Queue.claim(
                on: connection, session: 0, number: 8, kinds: kinds, from: ranges, wanted: 1000, shortQueues: [],
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

    private func sights(queue name: String, limitKey: String? = nil) async throws -> Sights {
        let names = [name, name + ".free"]
        for name in names {
            try await enqueue(
                "load.nothing", count: Self.batch * (claims + 10), queue: name, runAt: nil, limitKey: limitKey)
        }
        let times = try await ClaimTimes.measure(
            names.map { ($0, connection) }, kind: "load.nothing", batch: Self.batch, rounds: claims)
        return Sights(obstructed: times[0], free: times[1])
    }
}
