import FoundationEssentials
import JSON
import Postgres
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// One person asks for all that there is, and another is served as before. Nothing here looks at the clock: what a greedy person can hold is
/// held still, and counted.
@Suite(.timeLimit(.minutes(10))) struct GreedyTests {
    /// With a function that waits until the owner lets it go on.
    private static func with(
        _ change: @escaping @Sendable (inout GatewayService.Options) -> Void = { _ in },
        _ body: @Sendable (GatewayWorld) async throws -> Void
    ) async throws {
        var setup = GatewayWorld.Setup()
        setup.template = GatewayWorld.movableClock
        setup.script = """
            create function millrace.hold(word text default '') returns text language plpgsql as
                'begin perform pg_advisory_xact_lock_shared(4711); return word; end';
            grant execute on function millrace.hold to ROLE
            """
        setup.change = { options in
            options.turns = GatewayTurns(patience: .ample)
            change(&options)
        }
        try await GatewayWorld.with(setup, body)
    }

    /// How many sessions of this database stand still for a lock.
    private static func waiting(_ world: GatewayWorld) async throws -> Int {
        try await world.owner.int(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
    }

    /// Asks many times at once, waits until the database is as busy as it gets, serves somebody else, and lets go.
    private static func flood(
        _ world: GatewayWorld, _ times: Int, holding: String, releasing: String, expects busy: Int,
        _ ask: @escaping @Sendable (Int) async throws -> GatewayWorld.Answer
    ) async throws -> [Int] {
        let other = try await world.database.connect("holder")
        try await other.run(holding)
        let answered = Locked(0)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<times {
                group.addTask {
                    let status = try await ask(number).status
                    answered.add()
                    return status
                }
            }
            try await eventually("the database holds some of them") { try await waiting(world) >= busy }
            for _ in 0..<3 {
                // Another person meets nothing of this.
                #expect(try await world.call("now", as: "bob").status == 200)
                #expect(
                    try await world.call("hobby_presets", as: "bob", headers: ["Idempotency-Key": "k"]).status == 200)
                #expect(try await waiting(world) <= busy)
            }
            try await other.run(releasing)
            return try await group.reduce(into: []) { $0.append($1) }
        }
        await other.close()
        return statuses
    }

    private static let hold = "select pg_advisory_lock(4711)"
    private static let letGo = "select pg_advisory_unlock(4711)"

    @Test func `a person's calls have a few connections, and wait for them without any`() async throws {
        try await Self.with { world in
            let statuses = try await Self.flood(
                world, 40, holding: Self.hold, releasing: Self.letGo, expects: 2
            ) { _ in try await world.call("hold") }
            #expect(statuses.allSatisfy { $0 == 200 } && statuses.count == 40)
            // More at once than a person may have: refused, and told to come again.
            let more = try await Self.flood(
                world, 90, holding: Self.hold, releasing: Self.letGo, expects: 2
            ) { _ in try await world.call("hold", as: "cyd") }
            #expect(more.allSatisfy { $0 == 200 || $0 == 429 } && more.contains(200))
        }
    }

    @Test func `requests with one key wait for the first of them outside of the database`() async throws {
        try await Self.with { world in
            let replayed = Locked(0)
            let statuses = try await Self.flood(
                world, 12, holding: Self.hold, releasing: Self.letGo, expects: 1
            ) { _ in
                let answer = try await world.call("hold", headers: ["Idempotency-Key": "one"])
                if answer.header("idempotent-replayed") == "true" { replayed.add() }
                return answer
            }
            #expect(statuses == Array(repeating: 200, count: 12) && replayed.value == 11)
        }
    }

    /// As two gateways have one person's requests: this one meets another's transaction.
    @Test func `what another process holds is tried again, and the connection given back meanwhile`() async throws {
        try await Self.with { world in
            let other = try await world.database.connect("other gateway")
            try await other.signIn(#"{"sub": "ada"}"#)
            try await other.run(
                "begin; select millrace.gateway_begin('two', 'r'); select millrace.gateway_end('two', 200, '1')")
            async let second = world.call("now", headers: ["Idempotency-Key": "two"])
            try await eventually("it meets the other") { try await Self.waiting(world) == 1 }
            try await eventually("it has given up for a moment") { try await Self.waiting(world) == 0 }
            try await other.run("rollback")
            #expect(try await second.status == 200)
            try await other.run(
                "begin; insert into millrace.sync_person (person, pushed_at) values ('ada', now()) on conflict (person) do update set pushed_at = now()"
            )
            async let pushed = world.ask("POST", "/v1/sync", Self.push(1))
            try await eventually("it meets the other") { try await Self.waiting(world) == 1 }
            try await eventually("it has given up for a moment") { try await Self.waiting(world) == 0 }
            try await other.run("commit")
            #expect(try await pushed.status == 200)
            await other.close()
        }
    }

    private static func push(_ count: Int) -> String {
        let operations = (0..<count).map { _ in
            #"{"id": "\#(UUID().uuidString)", "op": "mood_log", "at": "2026-01-01T00:00:00Z", "args": {"person": "ada", "color": "calm"}}"#
        }
        return #"{"device": "phone", "ops": [\#(operations.joined(separator: ","))]}"#
    }

    @Test func `of a person's pushes one has a connection, also as calls of the function`() async throws {
        try await Self.with { world in
            let operations = try JSONValue.read(Self.push(1))["ops"] ?? .null
            let statuses = try await Self.flood(
                world, 20,
                holding:
                    "begin; insert into millrace.sync_person (person, pushed_at) values ('ada', now()) on conflict (person) do update set pushed_at = now()",
                releasing: "commit", expects: 1
            ) { number in
                switch number % 4 {
                case 0: try await world.call("sync_push", #"{"device": "phone", "ops": \#(operations.compact)}"#)
                case 1: try await world.ask("POST", "/v1/sync/devices", #"{"device": "phone-\#(number)"}"#)
                case 2:
                    try await world.ask(
                        "POST", "/v1/batch",
                        #"{"calls": [{"function": "sync_push_text", "args": {"device": "phone", "ops": \#(JSONText.quoted(operations.compact))}}]}"#
                    )
                default: try await world.ask("POST", "/v1/sync", Self.push(10))
                }
            }
            // What finds its line full comes again.
            #expect(statuses.allSatisfy { [200, 429, 503].contains($0) } && statuses.contains(200))
            #expect(try await world.ask("POST", "/v1/sync", Self.push(1)).status == 200)
        }
    }

    @Test func `pushes, long lists and bytes are charged for what they are`() async throws {
        var rates = GatewayRates()
        // So slow that nothing comes back while a busy machine runs this.
        rates.operations = GatewayRate(perSecond: 0.001, burst: 1000)
        rates.subject = GatewayRate(perSecond: 0.001, burst: 100)
        let chosen = rates
        try await Self.with({ $0.rates = chosen }) { world in
            func left(_ kind: String, of person: String) async throws -> Int {
                try await world.owner.int(
                    "select coalesce(max(tokens::int), -1) from millrace.gateway_bucket where key = '\(GatewayRates.key(kind, person))'"
                )
            }
            // A phone that comes back after a week gets through, twice; and a check-in still does when the third does not.
            for rest in [500, 0] {
                let answer = try await world.ask("POST", "/v1/sync", Self.push(500))
                #expect(answer.status == 200, "\(answer.text.prefix(300))")
                #expect(try await left("o", of: "ada") == rest)
            }
            let third = try await world.ask("POST", "/v1/sync", Self.push(500))
            #expect(third.status == 429 && third.word("field") == "operations" && third.word("class") == "throttled")
            #expect(third.header("retry-after") == "86400", "as long as it takes, and a day at most")
            #expect(try await world.call("now").status == 200, "calls have a bucket of their own")
            // The same through the function, and lists of other functions.
            let operations = try JSONValue.read(Self.push(300))["ops"] ?? .null
            for (person, body, used) in [
                ("bob", ("sync_push", #"{"device": "phone", "ops": \#(operations.compact)}"#), 300),
                (
                    "cyd", ("sync_push_text", #"{"device": "phone", "ops": \#(JSONText.quoted(operations.compact))}"#),
                    300
                ),
                (
                    "dan",
                    ("mood_log_many", #"{"moods": [\#(Array(repeating: "{}", count: 420).joined(separator: ","))]}"#),
                    400
                ),
            ] {
                _ = try await world.call(body.0, body.1, as: person)
                #expect(try await left("o", of: person) == 1000 - used, "\(person)")
                let batch = #"{"calls": [{"function": "\#(body.0)", "args": \#(body.1)}, {"function": "now"}]}"#
                _ = try await world.ask("POST", "/v1/batch", as: person, batch)
                #expect(try await left("o", of: person) == 1000 - 2 * used, "\(person) in a batch")
            }
            // A body of five times 64 KiB and an answer of three times that.
            let long = try await world.call(
                "hold", "{\"word\": \"\(String(repeating: "x", count: 5 * 65_536))\"}", as: "eve")
            #expect(long.status == 200 && long.text.utf8.count > 5 * 65_536)
            // 20 were asked for at once; one for the call, five for its body, and five are owed for the answer.
            let next = try await world.call("now", as: "eve")
            #expect(next.header("ratelimit") == "\"subject\";r=8;t=100000", "\(next.headers)")
        }
    }

    @Test func `what was given is paid before anything else is`() {
        var leases = RateLeases()
        let rate = GatewayRate(perSecond: 1, burst: 40)
        func want(_ tokens: Int) -> RateLeases.Want {
            RateLeases.Want(key: "a", policy: "subject", rate: rate, tokens: tokens)
        }
        leases.owe(want(7), at: .zero)
        #expect(leases.use([want(1)], at: .zero) == .asks([.init(key: "a", rate: rate, tokens: 10)]))
        leases.add("a", tokens: 10, wait: .zero, at: .zero)
        #expect(leases.use([want(1)], at: .zero) == .granted([2]))
        // More than the lease holds: the rest is asked for with the next call, and waited for as long as it takes.
        leases.owe(want(12), at: .zero)
        #expect(leases.use([want(1)], at: .zero) == .asks([.init(key: "a", rate: rate, tokens: 11)]))
        leases.add("a", tokens: 4, wait: .seconds(1), at: .zero)
        #expect(leases.use([want(1)], at: .zero) == .refused(want(1), wait: .seconds(7)))
        // At most a full bucket is owed, and time does not forgive it.
        leases.owe(want(1000), at: .zero)
        #expect(leases.use([want(1)], at: .seconds(100)) == .asks([.init(key: "a", rate: rate, tokens: 41)]))
    }

    @Test func `of many who want tokens of one bucket, one asks for all`() async throws {
        try await Self.with { world in
            let rate = GatewayRate(perSecond: 0.001, burst: 1000)
            let limits = GatewayLimits(pool: world.service.pool, log: .silent, now: { .zero })
            let want = RateLeases.Want(key: "k", policy: "subject", rate: rate, tokens: 1)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = try await limits.take([want]) } }
                try await group.waitForAll()
            }
            #expect(
                try await world.owner.int("select tokens::int from millrace.gateway_bucket where key = 'k'") == 940,
                "three times twenty")
        }
    }
}
