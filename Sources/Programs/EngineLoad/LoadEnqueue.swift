package import CommandKit
import LoadKit
import MillraceQueues
import Postgres

extension Command {
    package static let loadEnqueue = scenario(
        "enqueue",
        summary: "Measure what an enqueue costs, compared with hand-written inserts",
        discussion: """
            Calls millrace.enqueue again and again, each call in a transaction of its own, from one caller and from \
            many, with waking on: while a worker process works through a backlog of practice.sleep, and beside an \
            idle one. Every half second it changes to a hand-written insert into the same two tables, job and ready, \
            which also returns the job's number. Both use the same C loop on the same connections. Then it compares \
            jobs in bulk, through the library's call, with hand-written bulk inserts. Prints medians of the rounds. \
            The processor time of Postgres includes what the worker uses meanwhile. Use a database of its own on a \
            quiet machine.
            """,
        flags: [
            .count("seconds", 1...600, 4, "How long each measurement lasts."),
            .count("callers", 2...64, 16, "Callers at the same time."),
            .count("jobs", 1...100_000_000, 500_000, "Jobs to enqueue in bulk."),
            .count("chunk", 1...10_000, 1000, "Jobs in each bulk call."),
            .count("rounds", 1...25, 3, "How many rounds."),
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load enqueue", "about three minutes"),
            Example("millrace load enqueue --rounds 1 --seconds 2", "a first impression"),
        ]
    ) { invocation in
        try await EnqueueScenario(invocation: invocation).run()
    }
}

/// The same enqueues by hand and by a call of ours, once for each round.
private struct EnqueuePair: Sendable {
    let fleet: String
    let callers: Int
    var byHand: [Costs] = []
    var calls: [Costs] = []

    var share: Double { median(zip(calls, byHand).map { $0.perSecond / $1.perSecond }) }

    var json: JSONValue {
        [
            "fleet": .string(fleet), "callers": .init(callers), "share": .double(share),
            "calls": .array(calls.map(\.json)), "by_hand": .array(byHand.map(\.json)),
        ]
    }
}

private struct EnqueueScenario: Sendable {
    let invocation: Invocation

    static let queue = "load.enqueue"
    static let kind = "practice.nothing"
    /// The lane of a job with the usual priority.
    static let lane: Int32 = 17
    static let turn = Duration.milliseconds(500)

    func run() async throws -> ExitCode {
        let callers = invocation.count("callers")
        let rounds = invocation.count("rounds")
        let span = Duration.seconds(invocation.count("seconds"))
        let connection = try await invocation.connect()
        try await enqueueOne(on: connection)  // the queue and the kind come into being with a first job
        var line = try await Yardstick.line(queue: Self.queue, kind: Self.kind, on: connection)
        line.lane = Self.lane

        var busy = [1, callers].map { EnqueuePair(fleet: "busy", callers: $0) }
        try await beside(backlogFor: span * Double(4 * rounds), on: connection) {
            try await measure(&busy, rounds: rounds, for: span, line: line, on: connection) {
                _ = try await Yardstick(invocation).drain(line, on: connection)
            }
        }
        var idle = [1, callers].map { EnqueuePair(fleet: "idle", callers: $0) }
        try await beside(backlogFor: nil, on: connection) {
            try await measure(&idle, rounds: rounds, for: span, line: line, on: connection, wakesByHand: true) {
                try await untilNothingWaits(on: connection)
                // Longer than a worker lingers, also after a stream.
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        var bulk = EnqueuePair(fleet: "none", callers: 1)
        for round in 1...rounds { try await measureBulk(&bulk, round: round, of: rounds, line: line, on: connection) }
        await connection.close()
        return invocation.report(
            "enqueue", (busy + idle).map(Self.single) + [Self.inBulk(bulk)],
            figures: [
                ("rounds", .init(rounds)), ("seconds", .double(span / .seconds(1))),
                ("single", .array((busy + idle).map(\.json))), ("bulk", bulk.json),
            ])
    }

    private static func single(_ pair: EnqueuePair) -> Bar {
        .atLeast(
            "\(Humane.count(pair.callers, "caller")), fleet \(pair.fleet): share of hand-written inserts", 0.8,
            measured: pair.share, unit: "×")
    }

    private static func inBulk(_ bulk: EnqueuePair) -> Bar {
        let rate = median(bulk.calls.map(\.perSecond))
        return Bar(
            what: "in bulk: jobs per second, or share of hand-written bulk inserts", bar: "≥ 200,000 /s or ≥ 0.75 ×",
            measured: "\(Humane.count(Int(rate))) /s, \(Humane.decimal(bulk.share, places: 2)) ×",
            met: rate >= 200_000 || bulk.share >= 0.75)
    }

    /// Runs `body` beside a worker process that either sleeps through a backlog of `backlogFor`, or has nothing to do.
    private func beside(backlogFor span: Duration?, on connection: Connection, _ body: () async throws -> Void)
        async throws
    {
        var backlog: Yardstick.Line?
        if let span {
            // Ten slots, each with one job of a tenth of a second after the other; many more, because a busy machine measures for longer.
            let sleeps = Int(span / .milliseconds(1)) / 5 + 20_000
            var filling = Filling(invocation, on: connection, label: "jobs to sleep:", total: sleeps)
            try await filling.add("practice.sleep", count: sleeps, queue: Self.queue, priority: 0) { _ in
                "{\"ms\": 100}"
            }
            backlog = try await Yardstick.line(queue: Self.queue, kind: "practice.sleep", on: connection)
            backlog?.lane = 1
        } else {
            try await untilNothingWaits(on: connection, byHand: true)
        }
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: ["--slots", span == nil ? "100" : "10"], on: connection)
        try await body()
        if span != nil {
            let left = try await Queue.outstanding(on: connection, kinds: ["practice.sleep"])
            guard left > 0 else { throw Failure("the worker ran out of work, and was not busy all the time") }
        }
        try await workers.stop()
        if let backlog { _ = try await Yardstick(invocation).drain(backlog, on: connection) }
    }

    private func enqueueOne(on connection: Connection) async throws {
        _ = try await Queue.enqueueBulk(
            kind: Self.kind, args: [Array("{\"n\": 1}".utf8)], queue: Self.queue, on: connection)
    }

    private func untilNothingWaits(on connection: Connection, byHand: Bool = false) async throws {
        if byHand {
            var line = try await Yardstick.line(queue: Self.queue, kind: Self.kind, on: connection)
            // A stopped worker has handed some back, and those are in another lane.
            for lane in [Self.lane & ~3, Self.lane] {
                line.lane = lane
                _ = try await Yardstick(invocation).drain(line, on: connection)
            }
        }
        try await Patience.wait(
            .seconds(120), else: "jobs of \(Self.kind) wait that nobody works off: is this a database of its own?"
        ) {
            try await Queue.outstanding(on: connection, kinds: [Self.kind]) == 0
        }
    }

    /// Each pair in turns of half a second, by hand and by call, with the first one alternating; `rest` before the first of each.
    /// - Parameter wakesByHand: inserts by hand do not wake the worker. With this, one call before them does; otherwise the worker would
    ///   sleep during a part of them, and do its work beside the calls only.
    private func measure(
        _ pairs: inout [EnqueuePair], rounds: Int, for span: Duration, line: Yardstick.Line, on connection: Connection,
        wakesByHand: Bool = false, rest: () async throws -> Void
    ) async throws {
        let yardstick = try Yardstick(invocation)
        let meter = try await ServerMeter(on: connection)
        let turns = max(1, Int(span / Self.turn))
        for round in 1...rounds {
            for index in pairs.indices {
                let callers = try await YardstickCallers.open(
                    pairs[index].callers, of: yardstick, line: line, call: .enqueue(Self.kind, queue: Self.queue))
                var byHand: [Costs] = []
                var calls: [Costs] = []
                for turn in 0..<turns {
                    for isCall in turn % 2 == 0 ? [true, false] : [false, true] {
                        if turn == 0 { try await rest() }
                        let costs = try await metered(by: meter) {
                            try await callers.turn(
                                isCall ? .call : .byHand, for: span / turns, afterCall: wakesByHand && !isCall)
                        }
                        if isCall { calls.append(costs) } else { byHand.append(costs) }
                    }
                }
                pairs[index].byHand.append(Costs(summing: byHand))
                pairs[index].calls.append(Costs(summing: calls))
                for (what, costs) in [("by hand", byHand), ("enqueue", calls)] {
                    invocation.console.note(
                        "round \(round) of \(rounds), fleet \(pairs[index].fleet), \(Humane.count(pairs[index].callers, "caller")), \(what): \(Costs(summing: costs).summary)"
                    )
                }
            }
            try await rest()
        }
    }

    private func measureBulk(
        _ pair: inout EnqueuePair, round: Int, of rounds: Int, line: Yardstick.Line, on connection: Connection
    ) async throws {
        let jobs = invocation.count("jobs")
        let chunk = invocation.count("chunk")
        let yardstick = try Yardstick(invocation)
        let meter = try await ServerMeter(on: connection)
        for isCall in round % 2 == 0 ? [true, false] : [false, true] {
            let costs = try await metered(by: meter) {
                guard isCall else { return try await yardstick.enqueueBulk(line, jobs: jobs, batch: chunk) }
                let began = ContinuousClock.now
                var filling = Filling(invocation, on: connection, label: nil, total: jobs)
                try await filling.add(Self.kind, count: jobs, chunk: chunk, queue: Self.queue)
                return Yardstick.Result(jobs: jobs, seconds: began.duration(to: .now) / .seconds(1))
            }
            if isCall { pair.calls.append(costs) } else { pair.byHand.append(costs) }
            invocation.console.note(
                "round \(round) of \(rounds), \(isCall ? "enqueue in bulk" : "bulk by hand"): \(costs.summary)")
            _ = try await yardstick.drain(line, on: connection)
        }
    }

    private func metered(by meter: ServerMeter, _ body: () async throws -> Yardstick.Result) async throws -> Costs {
        let before = try await meter.read()
        let result = try await body()
        return Costs(jobs: result.jobs, seconds: result.seconds, server: try await meter.read() - before)
    }
}
