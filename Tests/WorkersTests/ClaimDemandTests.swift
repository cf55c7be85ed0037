import Testing

@testable import Workers

@Suite struct ClaimDemandTests {
    @Test func `without a past, free slots are what is wanted`() {
        let demand = ClaimDemand()
        #expect(demand.wanted(slots: 10, held: 0) == 10)
        #expect(demand.wanted(slots: 10, held: 7) == 3)
        #expect(demand.wanted(slots: 10, held: 10) == 0)
        #expect(demand.wanted(slots: 10, held: 15) == 0)
    }

    @Test func `no claim takes more than two thousand`() {
        #expect(ClaimDemand().wanted(slots: 5000, held: 0) == ClaimDemand.most)
    }

    @Test func `fast jobs are claimed a little ahead`() {
        var demand = ClaimDemand()
        var now = ContinuousClock.now
        for _ in 0..<200 {
            now += .milliseconds(10)
            demand.ended(100, at: now)
        }
        #expect(demand.rate > 9000 && demand.rate < 11000)
        let ahead = 10_000 * ClaimDemand.ahead
        #expect(demand.wanted(slots: 100, held: 100) > Int(ahead * 0.85))
        #expect(demand.wanted(slots: 100, held: 100) < Int(ahead * 1.15))
        #expect(demand.wanted(slots: 100, held: 100 + Int(ahead * 0.7)) == 0, "a small claim is put off")
    }

    @Test func `what is held ahead lasts while the next is claimed`() {
        var demand = ClaimDemand()
        var now = ContinuousClock.now
        for _ in 0..<500 {
            now += .milliseconds(10)
            demand.ended(1000, at: now)
        }
        // A hundred thousand a second: two claims' worth is left when the third is asked for.
        #expect(demand.wanted(slots: 100, held: 100 + 2 * ClaimDemand.most) == ClaimDemand.most)
        #expect(demand.wanted(slots: 100, held: 100 + 5 * ClaimDemand.most / 2) == 0)
    }

    @Test func `slow jobs are not claimed ahead`() {
        var demand = ClaimDemand()
        var now = ContinuousClock.now
        for _ in 0..<50 {
            now += .seconds(1)
            demand.ended(1, at: now)
        }
        #expect(demand.wanted(slots: 10, held: 10) == 0)
    }

    @Test func `the rate follows when jobs become slower`() {
        var demand = ClaimDemand()
        var now = ContinuousClock.now
        for _ in 0..<200 {
            now += .milliseconds(10)
            demand.ended(100, at: now)
        }
        for _ in 0..<5 {
            now += .seconds(1)
            demand.ended(1, at: now)
        }
        #expect(demand.rate < 2)
    }

    @Test func `many ends in one instant do not make an infinite rate`() {
        var demand = ClaimDemand()
        let now = ContinuousClock.now
        for _ in 0..<10_000 { demand.ended(1, at: now) }
        #expect(demand.rate == 0)
        demand.ended(1, at: now + .milliseconds(10))
        #expect(demand.rate.isFinite)
        #expect(demand.wanted(slots: 10, held: 0) <= ClaimDemand.most)
    }

    @Test func `a claim waits its turn while what is held ahead lasts, for the disk below a quarter`() {
        var demand = ClaimDemand()
        func isLoose(slots: Int, held: Int, wanted: Int = 100) -> Bool {
            demand.isLoose(wanted: wanted, slots: slots, held: held)
        }
        #expect(demand.patience(slots: 10, held: 10) == nil && !isLoose(slots: 10, held: 10))
        var now = ContinuousClock.now
        for _ in 0..<200 {
            now += .milliseconds(10)
            demand.ended(100, at: now)
        }
        #expect(demand.patience(slots: 10, held: 10 + 30) == nil)
        #expect(demand.patience(slots: 10, held: 10 + 100).map { ($0 / .milliseconds(0.1)).rounded() } == 75)
        #expect(demand.patience(slots: 10, held: 10 + 210).map { ($0 / .milliseconds(0.1)).rounded() } == 150)
        #expect(demand.patience(slots: 1000, held: 900) == nil && !isLoose(slots: 1000, held: 900))
        #expect(!isLoose(slots: 10, held: 10 + 140))
        #expect(isLoose(slots: 10, held: 10 + 160))
        #expect(isLoose(slots: 10, held: 0, wanted: 500), "many do not wait")
        #expect(!isLoose(slots: 10, held: 0, wanted: 499))
    }

    @Test func `a young average rises fast, and one that has slept is young again`() {
        var demand = ClaimDemand()
        var now = ContinuousClock.now
        demand.ended(0, at: now)
        func work() {
            for _ in 0..<5 {
                now += .milliseconds(10)
                demand.ended(100, at: now)
            }
        }
        work()
        #expect(abs(demand.rate - 5000) < 1, "an old one would be at 1800")
        for _ in 0..<20 { work() }
        #expect(demand.rate > 9900)
        now += .seconds(60)
        demand.ended(1, at: now)
        #expect(demand.rate < 1)
        work()
        #expect(abs(demand.rate - 5000) < 1)
    }

    @Test func `only a stream is gathered, and the faster it is the longer, up to a bound`() {
        func stream(perSecond rate: Int) -> (pause: Double?, enough: Int) {
            var demand = ClaimDemand()
            var now = ContinuousClock.now
            demand.ended(0, at: now)
            for _ in 0..<100 {
                now += .milliseconds(10)
                demand.ended(rate / 100, at: now)
            }
            return (demand.gathering.map { $0 / .milliseconds(1) }, demand.enough)
        }
        #expect(stream(perSecond: 900) == (nil, 12))
        #expect(abs((stream(perSecond: 1500).pause ?? 0) - 1.2) < 0.01)
        #expect(stream(perSecond: 1500).enough == 12)
        #expect(stream(perSecond: 12_000).pause == 4)
        #expect((39...40).contains(stream(perSecond: 5000).enough), "what comes in twice the pause")
        #expect(stream(perSecond: 12_000).enough == 64)
    }
}
