import JSON
import Listeners
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// How fast one may call.
@Suite(.timeLimit(.minutes(10))) struct CallLimitTests {
    @Test func `processes that lease tokens never use more than the bucket gave`() {
        var random = SeededRandom(39)
        for _ in 0..<200 {
            let rate = GatewayRate(
                perSecond: Double(Int.random(in: 1...20, using: &random)),
                burst: Double(Int.random(in: 1...80, using: &random)))
            var processes = [RateLeases](repeating: RateLeases(), count: 3)
            var bucket = rate.burst
            var (now, used) = (Duration.zero, 0)
            for _ in 0..<300 {
                let step = Double(Int.random(in: 0...200, using: &random)) / 1000
                now += .seconds(step)
                bucket = min(rate.burst, bucket + rate.perSecond * step)
                let place = Int.random(in: 0..<3, using: &random)
                let want = RateLeases.Want(
                    key: "k", policy: "subject", rate: rate,
                    tokens: Int.random(in: 1...max(1, Int(rate.burst) / 3), using: &random))
                asking: for _ in 0..<3 {
                    switch processes[place].use([want], at: now) {
                    case .granted:
                        used += want.tokens
                        break asking
                    case .refused(_, let wait):
                        #expect(wait > .zero)
                        break asking
                    case .asks(let refills):
                        for refill in refills {
                            let given = min(refill.tokens, Int(bucket))
                            bucket -= Double(given)
                            processes[place].add(
                                refill.key, tokens: given,
                                wait: given < refill.tokens ? .seconds((1 - bucket) / rate.perSecond) : .zero, at: now)
                        }
                    }
                }
                #expect(Double(used) <= rate.burst + rate.perSecond * (now / .seconds(1)) + 0.001)
            }
            #expect(used > 0)
        }
    }

    @Test func `tokens that nobody used are given up, and what is over is forgotten`() {
        var leases = RateLeases()
        let rate = GatewayRate(perSecond: 1, burst: 40)
        func want(_ key: String) -> RateLeases.Want {
            RateLeases.Want(key: key, policy: "subject", rate: rate, tokens: 1)
        }
        #expect(leases.use([want("a")], at: .zero) == .asks([.init(key: "a", rate: rate, tokens: 10)]))
        leases.add("a", tokens: 10, wait: .zero, at: .zero)
        #expect(leases.use([want("a")], at: .seconds(9)) == .granted([9]))
        #expect(leases.use([want("a")], at: .seconds(10)) == .asks([.init(key: "a", rate: rate, tokens: 10)]))
        leases.add("a", tokens: 0, wait: .seconds(3), at: .seconds(10))
        #expect(leases.use([want("a")], at: .seconds(11)) == .refused(want("a"), wait: .seconds(2)))
        #expect(leases.wait(for: "a", at: .seconds(11)) == .seconds(2))
        #expect(leases.wait(for: "a", at: .seconds(13)) == nil)
        // Of two, both or none.
        leases.add("b", tokens: 1, wait: .zero, at: .seconds(11))
        #expect(leases.use([want("b"), want("a")], at: .seconds(11)) == .refused(want("a"), wait: .seconds(2)))
        #expect(leases.use([want("b")], at: .seconds(11)) == .granted([0]))
        for number in 0..<5000 { leases.add("k\(number)", tokens: 1, wait: .zero, at: .seconds(number)) }
        #expect(leases.count <= 1100)
    }

    private func setup(_ now: Locked<Duration>, _ rates: GatewayRates) -> GatewayWorld.Setup {
        var setup = GatewayWorld.Setup()
        setup.template = GatewayWorld.movableClock
        setup.change = { options in
            options.rates = rates
            options.now = { now.value }
        }
        return setup
    }

    @Test func `a person who calls too fast is told when to try again, and nobody else is`() async throws {
        let now = Locked(Duration.zero)
        var rates = GatewayRates()
        rates.subject = GatewayRate(perSecond: 1, burst: 3)
        try await GatewayWorld.with(setup(now, rates)) { world in
            try await world.owner.stopClock()
            for left in 0..<3 {
                let answer = try await world.call("now")
                #expect(answer.status == 200, "\(left): \(answer.text)")
                #expect(answer.header("ratelimit-policy") == "\"subject\";q=3;w=3")
                #expect(answer.header("ratelimit") == "\"subject\";r=0;t=3")
            }
            for _ in 0..<3 {
                let answer = try await world.call("now")
                #expect(answer.status == 429 && answer.word("class") == "throttled", "\(answer.text)")
                #expect(answer.header("retry-after") == "1" && answer.header("ratelimit") == "\"subject\";r=0;t=1")
                #expect(answer.word("user_message") == "There is a lot going on right now. This will be done shortly.")
            }
            #expect(try await world.call("now", as: "bob").status == 200)
            now.withLock { $0 += .seconds(1) }
            try await world.owner.run("select millrace.test_clock_advance('1 second')")
            #expect(try await world.call("now").status == 200)
            #expect(try await world.call("now").status == 429)
            // A batch counts as its calls.
            let calls = Array(repeating: #"{"function": "now"}"#, count: 3).joined(separator: ",")
            let batch = try await world.ask("POST", "/v1/batch", as: "carl", "{\"calls\": [\(calls)]}")
            #expect(batch.status == 200, "\(batch.text)")
            #expect(try await world.call("now", as: "carl").status == 429)
        }
    }

    @Test func `tokens are leased, so most requests ask nobody, and two gateways share a bucket`() async throws {
        let now = Locked(Duration.zero)
        var rates = GatewayRates()
        let subject = GatewayRate(perSecond: 1, burst: 40)
        rates.subject = subject
        rates.address = nil
        rates.functions = ["hobby_presets": GatewayRate(perSecond: 0.5, burst: 1)]
        try await GatewayWorld.with(setup(now, rates)) { world in
            try await world.owner.stopClock()
            for number in 0..<10 {
                #expect(try await world.call("now").status == 200)
                #expect(try await world.owner.int("select tokens::int from millrace.gateway_bucket") == 30, "\(number)")
            }
            let other = GatewayLimits(pool: world.service.pool, log: .silent, now: { now.value })
            let want = RateLeases.Want(
                key: GatewayRates.key("s", "ada"), policy: "subject", rate: subject,
                tokens: 1)
            var granted = 0
            while (try? await other.take([want])) != nil { granted += 1 }
            #expect(granted == 30)
            #expect(try await world.call("now").status == 429)
            let once = try await world.call("hobby_presets", as: "bob")
            #expect(once.status == 200 && once.header("ratelimit")?.contains("\"hobby_presets\";r=0;t=2") == true)
            let twice = try await world.call("hobby_presets", as: "bob")
            #expect(twice.status == 429 && twice.word("field") == "hobby_presets", "\(twice.text)")
            #expect(twice.header("retry-after") == "2")
            #expect(try await world.call("now", as: "bob").status == 200)
            // A broken table of buckets keeps nobody out.
            try await world.owner.run("alter table millrace.gateway_bucket rename to gone")
            #expect(try await world.call("now", as: "eve").status == 200)
        }
    }

    @Test func `an address counts also for tokens that are refused, as trusted proxies tell it`() async throws {
        let now = Locked(Duration.zero)
        var rates = GatewayRates()
        rates.address = GatewayRate(perSecond: 1, burst: 2)
        try await GatewayWorld.with(setup(now, rates)) { world in
            try await world.owner.stopClock()
            let from = ["X-Forwarded-For": "198.51.100.7, 203.0.113.9"]
            #expect(try await world.call("now", as: nil, headers: from).status == 401)
            #expect(try await world.call("now", headers: from).status == 200)
            let third = try await world.call("now", as: nil, headers: from)
            #expect(third.status == 429 && third.word("field") == "address")
            // What a client says before the proxy does is not believed.
            let forged = try await world.call("now", headers: ["X-Forwarded-For": "192.0.2.1, 203.0.113.9"])
            #expect(forged.status == 429)
            #expect(try await world.call("now", headers: ["X-Forwarded-For": "203.0.113.10"]).status == 200)
            #expect(try await world.ask("GET", "/v1/openapi.json", as: nil, headers: from).status == 429)
        }
    }
}
