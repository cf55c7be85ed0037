package import CommandKit
import LoadKit
import MillraceQueues
import Postgres

extension Command {
    package static let loadStalls = scenario(
        "stalls",
        summary: "Make things stall for known reasons, ask why, and judge the answers",
        discussion: """
            In a database of its own, with a clock that it moves: makes jobs, queues, schedules, mail, documents and alarms stall \
            for each of 31 causes, mixed with other causes that would hold the same thing up besides, and with what has nothing to do \
            with it. Asks millrace.why or millrace.why_queue, and compares the reason, who is named, and whether there is a command. Of \
            several causes the one that must be gone first is the answer: a paused queue before workers, workers before limits, limits \
            before busy slots, and these before a suspect's isolation and a pinned snapshot. Of a job at which workers ended, that is said \
            first where no worker would start it. Everything is rolled back after the question. \
            With --jobs, others wait beside them.
            """,
        flags: [
            .count("each", 1...1000, 8, "Stalls of each cause."),
            .count("seed", 0...Int(Int32.max), 1, "Of the mixtures."),
            .count("jobs", 0...50_000_000, 0, "Jobs that wait in the queue default meanwhile."),
        ],
        examples: [Example("millrace load stalls --seed 7 --strict", "248 stalls, the same each time")]
    ) { invocation in
        try await StallScenario(invocation: invocation).run()
    }
}

struct StallScenario {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let office = try await Connection.open(options, name: "load")
        let name = "millrace_stalls_\(UInt32.random(in: .min ... .max))"
        try await office.execute("create database %I", naming: name, deadline: .seconds(60))
        LoadGround.atEnd {
            guard let connection = try? await Connection.open(options, name: "load") else { return }
            try? await connection.execute(
                "drop database if exists %I with (force)", naming: name, deadline: .seconds(60))
            await connection.close()
        }
        await office.close()
        let own = invocation.options(at: LoadGround.location(options.location, database: name))
        let connection = try await Connection.open(own, name: "load")
        _ = try await Migrator.ofAllRooms(testClock: true).migrate(on: connection)
        let jobs = invocation.count("jobs")
        if jobs > 0 {
            var filling = Filling(invocation, on: connection, label: "filled:", total: jobs)
            try await filling.add("load.stall", count: jobs, queue: "default")
            try await connection.run(script: .shipped(Array("analyze".utf8)), deadline: .seconds(600))
        }
        let seed = UInt64(invocation.count("seed"))
        let pin = try await Pin(own)
        let score = try await Self.score(
            on: connection, seed: seed, each: invocation.count("each"))
        try await pin.release()
        await connection.close()
        for complaint in score.complaints { invocation.console.note(complaint) }
        if invocation.console.format == .human { invocation.console.print(score.table) }
        let times = score.times.sorted()
        return invocation.report(
            "stalls",
            [
                .atLeast("stalls that were asked about", 200, measured: Double(score.all), unit: ""),
                .atLeast("share of right answers", 0.99, measured: score.share, unit: ""),
                .atMost("stalls without an answer", 0, measured: Double(score.silent), unit: ""),
                .atMost("time of why, p95", 50, measured: percentile(times, 0.95), unit: "ms"),
            ],
            figures: [
                ("seed", .int(Int(seed))), ("jobs", .int(jobs)), ("stalls", .int(score.all)),
                ("right", .int(score.right)),
                ("silent", .int(score.silent)), ("p50_ms", .double(percentile(times, 0.5))),
                ("p95_ms", .double(percentile(times, 0.95))), ("max_ms", .double(times.last ?? .nan)),
                ("causes", score.json), ("complaints", JSONValue(score.complaints)),
            ])
    }

    /// Every cause in turn, as often as asked for. The pinned snapshot is another connection's, which the caller holds open.
    static func score(on connection: Connection, seed: UInt64, each: Int) async throws -> StallScore {
        var maker = StallMaker(connection, seed: seed)
        var score = StallScore()
        for round in 0..<each {
            for cause in StallCause.allCases {
                // The first of each is plain.
                let companions = maker.companions(
                    of: cause, most: round == 0 ? 0 : Int.random(in: 0...3, using: &maker.random))
                try await connection.execute("begin")
                do {
                    let stall = try await maker.make(cause, with: companions)
                    let began = ContinuousClock.now
                    let answer = try await ask(stall.question, on: connection)
                    score.times.append(began.duration(to: .now) / .milliseconds(1))
                    score.add(StallVerdict(stall, answer: answer), of: stall)
                    try await connection.execute("rollback")
                } catch {
                    _ = try? await connection.execute("rollback")
                    throw Failure("\(cause.rawValue), with \(companions.map(\.rawValue)): \(error)")
                }
            }
        }
        return score
    }

    private static func ask(_ question: Stall.Question, on connection: Connection) async throws -> JSONValue? {
        switch question {
        case .job(let id): try await Queue.why(id, on: connection).map { try JSONValue.read($0) }
        case .queue(let name): try await Queue.why(queue: name, on: connection).map { try JSONValue.read($0) }
        }
    }
}
