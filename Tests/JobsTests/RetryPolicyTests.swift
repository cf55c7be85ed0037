import MillraceJobs
import Testing

@Suite struct RetryPolicyTests {
    @Test func `a pause doubles with each attempt`() {
        let policy = RetryPolicy(attempts: 20, base: .seconds(1), cap: .hours(1))
        for (attempt, seconds) in [(1, 1), (2, 2), (3, 4), (4, 8), (11, 1024), (12, 2048)] {
            #expect(policy.pause(afterAttempt: attempt, fraction: 1) == .seconds(seconds))
        }
    }

    @Test(arguments: [13, 41, 42, 64, 65, 400, Int.max])
    func `a pause never exceeds the cap, however many attempts failed`(attempt: Int) {
        #expect(RetryPolicy.standard.pause(afterAttempt: attempt, fraction: 1) == .hours(1))
    }

    @Test(arguments: [Duration.days(365), .days(36_500), .seconds(Int64.max / 4), .seconds(Int64.max)])
    func `a huge base does not overflow`(base: Duration) {
        let policy = RetryPolicy(base: base, cap: .hours(1))
        for attempt in [1, 2, 41, 400] {
            #expect(policy.pause(afterAttempt: attempt, fraction: 1) == .hours(1))
        }
        let uncapped = RetryPolicy(base: base, cap: .seconds(Int64.max))
        #expect(uncapped.pause(afterAttempt: 400, fraction: 1) > .hours(1))
    }

    @Test(arguments: [Int.min, -1, 0, 1])
    func `an attempt below the first counts as the first`(attempt: Int) {
        #expect(RetryPolicy.standard.pause(afterAttempt: attempt, fraction: 1) == .seconds(1))
    }

    @Test func `jitter stays between nothing and the full pause`() {
        var random = SystemRandomNumberGenerator()
        for attempt in 1...400 {
            let most = RetryPolicy.standard.pause(afterAttempt: attempt, fraction: 1)
            let fraction = Double.random(in: 0...1, using: &random)
            let pause = RetryPolicy.standard.pause(afterAttempt: attempt, fraction: fraction)
            #expect(pause >= .zero && pause <= most)
        }
        #expect(RetryPolicy.standard.pause(afterAttempt: 3, fraction: 0) == .zero)
        #expect(RetryPolicy.standard.pause(afterAttempt: 3, fraction: 0.5) == .seconds(2))
    }

    @Test(arguments: [-1.0, -Double.infinity])
    func `a jitter below its range gives no pause`(fraction: Double) {
        #expect(RetryPolicy.standard.pause(afterAttempt: 3, fraction: fraction) == .zero)
    }

    @Test(arguments: [1.5, Double.infinity])
    func `a jitter above its range gives the full pause`(fraction: Double) {
        #expect(RetryPolicy.standard.pause(afterAttempt: 3, fraction: fraction) == .seconds(4))
    }

    @Test func `a policy without sense is given some`() {
        let policy = RetryPolicy(attempts: 0, base: .zero, cap: .seconds(-1))
        #expect(policy.attempts == 1)
        #expect(policy.base == .milliseconds(1))
        #expect(policy.cap == .milliseconds(1))
        #expect(RetryPolicy.never.attempts == 1)
    }
}
