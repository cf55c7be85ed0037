package import CommandKit
import FoundationEssentials
import Glibc
import JSON
import LoadKit
import Postgres
import Synchronization
import Telemetry

extension Command {
    package static let loadAI = scenario(
        "ai",
        summary:
            "Ask faulty models many questions while workers are killed, and settle the bill with the models' own books",
        discussion: """
            Starts a fake that answers in two formats and has a bad day: throttling, errors, cut and stalled streams, \
            refusals, answers that are not JSON, answers without a price; halfway it does not answer in the first format at \
            all. Workers ask it the questions of twenty tenants, a fifth of them twice, and are killed all the while. Five \
            tenants have too few tokens. In the end the answers, the quotas and the fake's own books must agree.
            """,
        flags: [
            .count("questions", 100...1_000_000, 5000, "How many."),
            .count("workers", 1...50, 4, "Worker processes."),
            .count("faults", 0...50, 12, "Of a hundred calls, how many end in a fault."),
            .count("per-second", 0...100_000, 200, "Calls a second that the models take; 0 for no bound."),
            .count("seed", 0...Int.max, "Repeats the choice of faults."),
            .single(
                "models", "PROGRAM", .path, environment: .none,
                help: "The fake: FakeModelServer, which is built with the tests. [default: beside this program]"),
            .toggle("quick", environment: .none, help: "500 questions."),
        ],
        examples: [
            Example("millrace load ai", "5,000 questions, two to seven minutes"),
            Example("millrace load ai --quick --faults 30", "on a worse day"),
        ]
    ) { invocation in
        try await QuestionStorm(invocation: invocation).run()
    }
}

struct QuestionStorm: Sendable {
    let invocation: Invocation

    static let tenants = 20
    /// The first tenants have a quota that does not reach.
    static let poor = 5

    struct Outcome: Sendable {
        var asked = 0
        /// Refused by `ai_ask`, because nothing was left.
        var refused = 0
        var kills = 0
        var seconds = 0.0
        /// The most that a poor tenant was ever above its quota.
        var above = 0
    }

    private var count: Int {
        invocation.parsed.isOn("quick") ? 500 : invocation.count("questions")
    }

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        try await SchemaCheck.check(on: connection)
        let seed = invocation.parsed.integer("seed") ?? Int.random(in: 0...1_000_000)
        let perSecond = invocation.count("per-second")
        let models = try ModelServer.start(
            [
                "seed": .int(seed), "faults": .int(invocation.count("faults")),
                "per_second": .int(perSecond),
            ], program: invocation.parsed.string("models"))
        defer { models.stop() }
        let directory = try Scratch.directory("ai")
        let kept = KeptWorkers(directory: directory)
        let names = try await startWorkers(kept, models, on: connection)
        try await prepare(on: connection)
        let outcome = try await storm(kept, names, models, on: connection)
        let bad = try await kept.stop()
        if !bad.isEmpty { invocation.console.warning(bad.joined(separator: "; ")) }
        let judge = QuestionJudge(
            connection: connection, figures: try await models.figures(), outcome: outcome, count: count, seed: seed,
            isPaced: perSecond > 0)
        let (bars, figures) = try await judge.judge(console: invocation.console)
        await connection.close()
        return invocation.report("ai", bars, figures: figures)
    }

    private func startWorkers(
        _ kept: KeptWorkers, _ models: ModelServer, on connection: Connection
    ) async throws -> [String] {
        var variables = invocation.environment.filter { !$0.key.hasPrefix("MILLRACE_AI") }
        variables["DATABASE_URL"] = try invocation.connectionOptions().location
        variables["MILLRACE_LISTEN"] = "off"
        variables["MILLRACE_AI_OPENAI_MODEL"] = "small"
        variables["MILLRACE_AI_OPENAI_URL"] = "http://127.0.0.1:\(models.port)/v1"
        variables["MILLRACE_AI_ANTHROPIC_MODEL"] = "large"
        variables["MILLRACE_AI_ANTHROPIC_URL"] = "http://127.0.0.1:\(models.port)"
        variables["MILLRACE_AI_ANTHROPIC_KEY"] = "none"
        variables["MILLRACE_AI_STALL"] = "2s"
        variables["MILLRACE_AI_TIMEOUT"] = "20s"
        let names = (1...(invocation.count("workers"))).map { "w\($0)" }
        for name in names {
            kept.keep(
                name,
                arguments: ["worker", "--name", name, "--parent", "\(getpid())", "--log-level", "warning"],
                environment: variables)
        }
        try await Patience.wait(.seconds(60), else: "the workers do not start: see their logs") {
            try await connection.int("select count(*) from millrace.session") >= names.count
        }
        return names
    }

    private func prepare(on connection: Connection) async throws {
        try await connection.execute(
            "select count(millrace.ai_switch('tenant', 't' || n, true)) from generate_series(1, $1::int) n",
            [.int4(Int32(Self.tenants))])
        try await connection.execute(
            "select count(millrace.quota_set('t' || n, 'ai_tokens', $2)) from generate_series(1, $1::int) n",
            [.int4(Int32(Self.poor)), .int8(Int64(count / Self.tenants * 100))])
        try await connection.run(
            script: """
                create function pg_temp.ask(n int, tenants int) returns boolean language plpgsql as $$
                declare
                    the_tenant text := 't' || n % tenants + 1;
                begin
                    perform millrace.ai_ask('sentiment', jsonb_build_object('text', format('Question [[%s-%s]]: how was the day?', the_tenant, n)), the_tenant);
                    return true;
                exception when sqlstate '53400' then
                    return false;
                end $$;
                """)
    }

    /// Asks all, a fifth of them twice, while workers are killed; and waits until all have ended.
    private func storm(
        _ kept: KeptWorkers, _ names: [String], _ models: ModelServer, on connection: Connection
    ) async throws -> Outcome {
        var outcome = Outcome()
        let began = ContinuousClock.now
        let live = invocation.console.live()
        let kills = Mutex(0)
        let killing = Task {  // awaited below
            // Of few questions each kill would delay the rest by a lease or a timeout.
            while !Task.isCancelled, kills.withLock({ $0 }) < count / 20 {
                try? await Task.sleep(for: .milliseconds(.random(in: 1000...3000)))
                guard !Task.isCancelled, let pid = names.randomElement().flatMap({ kept.pid(of: $0) }) else { continue }
                kill(pid, SIGKILL)
                kills.withLock { $0 += 1 }
            }
        }
        defer { killing.cancel() }
        var next = 0
        var (isDown, wasDown) = (false, false)
        var (left, since) = (Int.max, ContinuousClock.now)
        while true {
            if next < count {
                let last = min(next + 100, count)
                let (asked, refused) = try await ask(next..<last, on: connection)
                outcome.asked += asked
                outcome.refused += refused
                next = last
            }
            outcome.above = max(outcome.above, try await above(on: connection))
            let open = try await connection.int("select count(*) from millrace.ai_question where ended_at is null")
            live.update(["\(Humane.count(next)) asked, \(Humane.count(open)) open"])
            if open != left { (left, since) = (open, .now) }
            if next == count, open < count / 10 { killing.cancel() }
            if next == count, open == 0 { break }
            let ended = outcome.asked - open
            if !wasDown, ended > count / 2 {
                (isDown, wasDown) = (true, true)
                try await models.down(true)
            } else if isDown, ended > count * 7 / 10 || open < count / 10 {
                isDown = false
                try await models.down(false)
            }
            guard since.duration(to: .now) < .seconds(300) else {
                invocation.console.warning("\(open) questions have not ended for five minutes")
                break
            }
            try await Task.sleep(for: next < count ? .milliseconds(20) : .milliseconds(500))
        }
        live.update([])
        await killing.value
        outcome.kills = kills.withLock { $0 }
        outcome.seconds = began.duration(to: .now) / .seconds(1)
        return outcome
    }

    private func ask(_ numbers: Range<Int>, on connection: Connection) async throws -> (asked: Int, refused: Int) {
        try await connection.query(
            """
            select count(*) filter (where pg_temp.ask(n, $3)), count(*) from (
                select n from generate_series($1::int, $2::int - 1) n union all
                select n from generate_series($1::int, $2::int - 1) n where n % 5 = 0) x
            """,
            [.int4(Int32(numbers.lowerBound)), .int4(Int32(numbers.upperBound)), .int4(Int32(Self.tenants))],
            deadline: .seconds(120)
        ) { row throws(PostgresError) in
            (asked: Int(try row.int(0)), refused: Int(try row.int(1)) - Int(try row.int(0)))
        }.first ?? (0, 0)
    }

    private func above(on connection: Connection) async throws -> Int {
        try await connection.int(
            "select coalesce(max(ceil(q.used - q.allowed)), 0)::bigint from millrace.quota q where q.name = 'ai_tokens' and q.allowed is not null"
        )
    }
}
