import Faults
import Supervision
import TestSupport
import Testing

@Suite struct ProviderMathTests {
    @Test(arguments: [
        ("", UInt32(0)), ("hello", 0x248b_fa47), ("Hello, world!", 0xc036_3e43),
        ("The quick brown fox jumps over the lazy dog", 0x2e4f_f723), ("a", 0x3c25_69b2), ("abcd", 0x43ed_676a),
    ])
    func `the hash is the one that everybody has`(text: String, hash: UInt32) {
        #expect(Flag.murmur(text) == hash)
    }

    @Test func `a flag is sticky, only ever grows with its share, and is as large as it says`() {
        for name in ["new-sender", "dark mode", "flag"] {
            var on: Set<Int> = []
            for percent in 0...100 {
                let flag = Flag(name: name, percent: percent)
                let now = Set((0..<2000).filter { flag.isOn("user-\($0)") })
                #expect(now.isSuperset(of: on))
                #expect(abs(now.count - percent * 20) <= 120)
                on = now
            }
            #expect(on.count == 2000)
        }
        #expect(Flag(name: "f", percent: 0, always: ["me"]).isOn("me"))
        #expect(!Flag(name: "f", percent: 0, always: ["me"]).isOn("you"))
    }

    @Test func `quantiles are no more than a fifth off`() {
        for microseconds in [1, 3, 4, 7, 90, 1500, 20_000, 777_777, 9_000_000] as [Int64] {
            let found = Latencies.milliseconds(of: Latencies.bucket(microseconds: microseconds))
            #expect(abs(found - Double(microseconds) / 1000) <= Double(microseconds) / 1000 * 0.2)
        }
        #expect(Latencies.bucket(microseconds: .max) == Latencies.buckets - 1)
        var counts = [Int32](repeating: 0, count: Latencies.buckets)
        #expect(Latencies.quantile(0.5, of: counts) == nil)
        counts[10] = 98
        counts[60] = 2
        #expect(Latencies.quantile(0.5, of: counts) == Latencies.milliseconds(of: 10))
        #expect(Latencies.quantile(0.99, of: counts) == Latencies.milliseconds(of: 60))
    }

    @Test func `a window forgets what is older than itself, and its sums stay right`() {
        for seed in 0..<500 {
            var random = SeededRandom(seed)
            var window = Window(length: .seconds(30))
            var now = Moment.start
            var all: [(at: Moment, failed: Bool)] = []
            for _ in 0..<200 {
                now = now.after(random.below(2000))
                var counts = Window.Counts()
                let failed = random.below(2) == 0
                if failed { counts.failed = 1 } else { counts.ok = 1 }
                window.add(counts, took: Int64(random.below(1_000_000)), at: now)
                all.append((now, failed))
            }
            // A slot is dropped as a whole: these calls are certainly in, and certainly out.
            let least = all.count { now - $0.at <= .seconds(28) }
            let most = all.count { now - $0.at <= .seconds(30) }
            #expect((least...most).contains(Int(window.counts.judged)))
            #expect(window.latencies.reduce(0) { $0 + Int($1) } == Int(window.counts.judged))
            window.advance(to: now.after(60_000))
            #expect(window.counts == .init() && window.latencies.allSatisfy { $0 == 0 })
        }
    }

    @Test func `a bulkhead admits its number of calls, and the others in the order in which they came`() {
        for seed in 0..<2000 {
            var random = SeededRandom(seed)
            var bulkhead = Bulkhead(slots: 3)
            var inside = 0
            var line: [Int64] = []
            for _ in 0..<80 {
                switch random.below(3) {
                case 0:
                    if bulkhead.enter() { inside += 1 } else { line.append(bulkhead.queue()) }
                case 1 where inside > 0:
                    let next = bulkhead.leave()
                    #expect(next == line.first)
                    if next == nil { inside -= 1 } else { line.removeFirst() }
                default:
                    guard let index = line.indices.randomElement(using: &random) else { continue }
                    let ticket = line.remove(at: index)
                    #expect(bulkhead.giveUp(ticket) == true)
                    #expect(bulkhead.giveUp(ticket) == false)
                }
                #expect(inside <= 3 && bulkhead.taken == inside && bulkhead.waiting == line.count)
                #expect(line.isEmpty || inside == 3)
            }
        }
    }

    @Test func `retries are a share of the calls, beyond a small reserve`() {
        var budget = RetryBudget(share: 0.2)
        var spent = 0
        for _ in 0..<1000 {
            budget.earn()
            while budget.spend(at: .start) { spent += 1 }
        }
        #expect((205...210).contains(spent))
    }

    @Test func `when nothing new comes, what is in doubt can still be tried again, once a second`() {
        var budget = RetryBudget(share: 0)
        var spent = 0
        for tenth in 0...6000 {
            if budget.spend(at: Moment.start.after(tenth * 100)) { spent += 1 }
        }
        #expect((600...612).contains(spent))
        while budget.spend(at: Moment.start.after(600_000)) {}
        var atOnce = 0
        while budget.spend(at: Moment.start.after(90_000_000)) { atOnce += 1 }
        #expect(atOnce == 10, "what was not spent is not saved up beyond the reserve")
    }

    @Test(
        arguments: [
            (["ratelimit-limit": "10", "ratelimit-remaining": "3", "ratelimit-reset": "1"], 10.0),
            (["X-RateLimit-Limit": "100", "X-RateLimit-Reset": "60"], 100.0 / 60),
            (["RateLimit-Policy": "\"default\";q=100;w=10", "RateLimit": "\"default\";r=50;t=3"], 10),
            (["RateLimit-Limit": "100, 100;w=60"], 100.0 / 60), (["RateLimit-Policy": "10;w=2"], 5),
            (["RateLimit": "limit=20, remaining=3, reset=4"], 5),
            (["x-ratelimit-limit": "50", "x-ratelimit-reset": "1000000010"], 5),
            (["x-ratelimit-limit": "50", "x-ratelimit-reset": "1000000010000"], 5),
            (["ratelimit-limit": "0"], nil), (["ratelimit-limit": "many"], nil), (["content-type": "text/plain"], nil),
            (["ratelimit-limit": "5"], nil),
        ] as [([String: String], Double?)])
    func `the pace is in the headers, in each of the ways they are written`(headers: [String: String], rate: Double?) {
        let notes = RateNotes(headers: headers.map { (name: $0.key, value: $0.value) }, now: 1_000_000_000)
        let found = notes.rate(longestReset: notes.reset)
        #expect(found.map { ($0 * 1000).rounded() } == rate.map { ($0 * 1000).rounded() })
    }

    @Test func `Retry-After is a number or a date`() {
        func wait(_ text: String) -> Duration? {
            RateNotes(headers: [("Retry-After", text)], now: 784_111_777).retryAfter
        }
        #expect(wait("120") == .seconds(120))
        #expect(wait("Sun, 06 Nov 1994 08:50:37 GMT") == .seconds(60))
        #expect(wait("Sun, 06 Nov 1994 08:48:37 GMT") == .zero)
        for nonsense in ["soon", "", "-5", "Sun, 31 Foo 1994 08:50:37 GMT", "nan", "inf"] {
            #expect(wait(nonsense) == nil)
        }
    }

    @Test func `what says nothing about a provider's health opens nothing`() {
        var circuit = Circuit(Breaker.Settings())
        for kind in [.throttled, .cancelled, .internal, .notFound, .invalid, .permission, .conflict] as [ErrorClass] {
            for _ in 0..<10 {
                guard case .go(let permit) = circuit.admit(at: .start) else {
                    Issue.record("\(kind) opened it")
                    return
                }
                #expect(circuit.record(permit, kind, took: .zero, jitter: 0.5, at: .start) == false)
            }
        }
        guard case .go(let permit) = circuit.admit(at: .start) else { return }
        #expect(circuit.record(permit, .authentication, code: "401", took: .zero, jitter: 0.5, at: .start) == true)
        #expect(circuit.reason == "authentication (401)" && circuit.isAuthoritative && circuit.votes(at: .start))
        #expect(circuit.admit(at: .start.after(100)) != .go(permit))
    }

    @Test func `a fleet's word comes before our own, and an operator's before both`() {
        var circuit = Circuit(Breaker.Settings())
        func adopt(_ state: FleetView.State, _ generation: Int64, leases: [Int64] = []) {
            circuit.adopt(state, generation: generation, reason: nil, leases: leases, at: .start)
        }
        adopt(.open(until: .start.after(1000)), 2)
        #expect(circuit.admit(at: .start) == .refused(until: .start.after(1000)))
        #expect(circuit.admit(at: .start.after(1001)) == .refused(until: .start.after(2001)))
        #expect(circuit.mirror.wantsProbe)
        adopt(.probing, 3, leases: [7])
        guard case .go(let probe) = circuit.admit(at: .start) else {
            Issue.record("a lent probe was not used")
            return
        }
        #expect(probe.right == .fleetProbe(lease: 7))
        #expect(circuit.admit(at: .start) == .refused(until: .start.after(1000)))
        circuit.giveBack(probe, at: .start)
        #expect(circuit.admit(at: .start) == .go(probe), "a call that waits for its turn keeps its probe")
        #expect(circuit.record(probe, .cancelled, took: .zero, jitter: 0, at: .start) == true)
        #expect(circuit.mirror.results == [.init(lease: 7, passed: nil)])
        #expect(circuit.record(probe, nil, took: .zero, jitter: 0, at: .start) == false)
        adopt(.forcedClosed(until: .start.after(1000)), 4)
        for _ in 0..<20 {
            guard case .go(let permit) = circuit.admit(at: .start) else {
                Issue.record("refused though forced closed")
                return
            }
            _ = circuit.record(permit, .unavailable, took: .zero, jitter: 0, at: .start)
        }
        adopt(.forcedOpen(until: .start.after(1000)), 5)
        #expect(circuit.admit(at: .start) == .refused(until: .start.after(1000)))
        guard case .go = circuit.admit(at: .start.after(1000)) else {
            Issue.record("it was forced for longer than was said")
            return
        }
    }

    @Test func `cut off from the fleet, its word holds until its time, and then our own probes decide`() {
        var circuit = Circuit(Breaker.Settings())
        circuit.adopt(.open(until: .start.after(1000)), generation: 2, reason: nil, leases: [], at: .start)
        circuit.detach(at: .start)
        #expect(circuit.admit(at: .start) == .refused(until: .start.after(1000)))
        for _ in 0..<2 {
            guard case .go(let permit) = circuit.admit(at: .start.after(1000)) else {
                Issue.record("no probe of its own")
                return
            }
            _ = circuit.record(permit, nil, took: .zero, jitter: 0, at: .start.after(1000))
        }
        #expect(circuit.hasRecovered)
    }
}
