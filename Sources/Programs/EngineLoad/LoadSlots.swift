package import CommandKit
import LoadKit
import Postgres

extension Command {
    package static let loadSlots = scenario(
        "slots",
        summary: "Measure how busy a worker keeps its slots",
        discussion: """
            Runs one worker process with many slots on jobs that sleep for 50 ms. Takes from history how long the \
            handlers ran in all, as a share of the slots' time from the first claim to the last end. For comparison \
            it shows how fast hand-written statements claim and end as many jobs. Use a database of its own.
            """,
        flags: [
            .count("jobs", 1...10_000_000, 300_000, "How many jobs."),
            .single(
                "sleep", "MS", .integer(1...60_000), environment: .none, fallback: "50",
                help: "How long each job takes."),
            .count("slots", 1...10_000, 1000, "Slots of the worker."),
            .count("rounds", 1...25, 1, "How many rounds."),
            Setting.directURL.flag,
        ],
        examples: [Example("millrace load slots", "1,000 slots, 50 ms")]
    ) { invocation in
        try await SlotsScenario(invocation: invocation).run()
    }
}

private struct SlotsScenario: Sendable {
    let invocation: Invocation

    static let queue = "load.slots"
    static let kind = "practice.sleep"

    func run() async throws -> ExitCode {
        let jobs = invocation.count("jobs")
        let slots = invocation.count("slots")
        let sleep = invocation.parsed.integer("sleep") ?? 50
        let rounds = invocation.count("rounds")
        let connection = try await invocation.connect()
        let draining = Draining(invocation: invocation, connection: connection, jobs: jobs, kind: Self.kind)
        var shares: [Double] = []
        var byWorker: [Costs] = []
        var byHand: [Costs] = []
        for round in 1...rounds {
            for isWorker in round % 2 == 1 ? [true, false] : [false, true] {
                let label = "round \(round) of \(rounds), \(isWorker ? "worker" : "by hand"):"
                var filling = Filling(invocation, on: connection, label: "\(label) enqueued", total: jobs)
                try await filling.add(Self.kind, count: jobs, queue: Self.queue) { _ in "{\"ms\": \(sleep)}" }
                guard isWorker else {
                    byHand.append(try await draining.drainByHand(queue: Self.queue))
                    continue
                }
                let ran = try await runTime(on: connection)
                let costs = try await draining.drain(arguments: ["--slots", "\(slots)"], label: label)
                byWorker.append(costs)
                shares.append((try await runTime(on: connection) - ran) / (Double(slots) * costs.seconds))
                invocation.console.note("\(label) \(Humane.percent(shares.last ?? .nan)) busy, \(costs.summary)")
            }
        }
        await connection.close()
        return invocation.report(
            "slots",
            [
                .atLeast(
                    "\(Humane.count(slots, "slot")), jobs of \(sleep) ms: share of the time that slots were busy", 0.9,
                    measured: median(shares), unit: "×")
            ],
            figures: [
                ("jobs", .init(jobs)), ("slots", .init(slots)), ("sleep_ms", .init(sleep)), ("rounds", .init(rounds)),
                ("busy", .array(shares.map { .double($0) })), ("worker", .array(byWorker.map(\.json))),
                ("by_hand", .array(byHand.map(\.json))),
            ])
    }

    /// Seconds that handlers of this kind have run, in all of history. What was ended by hand counts as nothing.
    private func runTime(on connection: Connection) async throws(PostgresError) -> Double {
        try await connection.double(
            """
            select coalesce(sum(h.ms), 0)::float8 / 1000
              from millrace.history h join millrace.kind k on k.id = h.kind where k.name = $1
            """, [.text(Self.kind)], deadline: .seconds(120)
        )
    }
}
