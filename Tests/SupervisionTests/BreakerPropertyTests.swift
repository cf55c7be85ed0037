import Supervision
import TestSupport
import Testing

@Suite struct BreakerPropertyTests {
    /// The invariants of a breaker after each event, kept apart from its implementation.
    private final class Watch {
        let settings: Breaker.Settings
        var breaker: Breaker
        var now = Moment.start
        var out: [(permit: Permit, until: Moment)] = []
        var probes: Set<Int64> = []
        var passed: [Int64: Int] = [:]
        var rampStep: [Int64: Int] = [:]
        var broken: String?

        init(_ settings: Breaker.Settings) {
            self.settings = settings
            breaker = Breaker(settings)
        }

        func hold(_ condition: Bool, _ what: @autoclosure () -> String) {
            if !condition, broken == nil { broken = what() }
        }

        func admit() {
            let before = breaker.state
            let answer = breaker.admit(at: now)
            if case .open(let until) = before, now < until {
                hold(answer == .refused(until: until), "let through while open")
            }
            guard case .go(let permit) = answer else { return }
            hold(permit.generation == breaker.generation, "a permit of another generation")
            switch permit.right {
            case .plain: if case .closed = breaker.state {} else { hold(false, "a plain permit in \(breaker.state)") }
            case .probe(let number):
                hold(probes.insert(number).inserted, "probe \(number) was given out twice")
                let generation = permit.generation
                let live = out.count { $0.permit.generation == generation && $0.until > now }
                hold(
                    live + 1 + passed[generation, default: 0] <= settings.probes, "more probes than \(settings.probes)")
                out.append((permit, now + settings.probeLease))
                return
            case .ramp:
                guard case .ramping(let ramp, _) = breaker.state, let step = ramp.step(at: now) else {
                    return hold(false, "a ramp permit in \(breaker.state)")
                }
                hold(step >= rampStep[permit.generation, default: 0], "the ramp went down")
                rampStep[permit.generation] = step
                let atOnce = out.count { $0.permit.right == .ramp && $0.permit.generation == permit.generation } + 1
                hold(atOnce <= Ramp.steps[step].atOnce, "\(atOnce) at once in step \(step)")
            case .fleetProbe, .fleetRamp: hold(false, "no fleet here")
            }
            out.append((permit, Moment(nanoseconds: .max)))
        }

        func record(_ index: Int, _ mark: CallOutcome, jitter: Double) {
            let (permit, until) = out.remove(at: index)
            let before = (breaker.state, breaker.generation)
            let isCurrent = permit.generation == breaker.generation
            breaker.record(permit, mark, window: .init(), jitter: jitter, at: now)
            if !isCurrent {
                hold(before.0 == breaker.state && before.1 == breaker.generation, "an old permit changed something")
            }
            if case .probe = permit.right, isCurrent {
                if until <= now {
                    hold(before.1 == breaker.generation, "a lost probe decided")
                } else if mark == .healthy {
                    passed[permit.generation, default: 0] += 1
                }
            }
            hold(breaker.generation >= before.1, "the generation went back")
        }

        /// Whatever is out comes back as nothing: then the next must get through, or none was lost.
        func settle() {
            while !out.isEmpty { record(out.count - 1, .neutral, jitter: 0.5) }
            if case .open(let until) = breaker.state { now = max(now, until) }
            if case .ramping = breaker.state { now = now.after(10_000) }
            if case .go = breaker.admit(at: now) { return }
            hold(false, "nobody gets through any more: \(breaker.state)")
        }
    }

    @Test func `no probe is lost or doubled, none gets through while open, the ramp only rises`() async {
        var settings = Breaker.Settings()
        settings.open = .milliseconds(500)
        settings.longestOpen = .seconds(2)
        settings.probeLease = .milliseconds(300)
        settings.rampStep = .milliseconds(100)
        var opened = 0
        var ramped = 0
        for seed in 0..<sequences {
            if seed.isMultiple(of: 16) { await Task.yield() }  // other tests want the thread, too
            var random = SeededRandom(seed)
            settings.probes = 1 + random.below(3)
            let watch = Watch(settings)
            for _ in 0..<60 {
                switch random.below(10) {
                case 0...3: watch.admit()
                case 4...7:
                    guard !watch.out.isEmpty else { continue }
                    let mark: CallOutcome =
                        switch random.below(12) {
                        case 0...4: .failing
                        case 5: .refusing
                        case 6: .neutral
                        default: .healthy
                        }
                    watch.record(random.below(watch.out.count), mark, jitter: Double(random.below(100)) / 100)
                case 8: watch.now = watch.now.after(random.below(60))
                default: watch.now = watch.now.after(random.below(500))
                }
            }
            if watch.breaker.streak > 0 { opened += 1 }
            if !watch.rampStep.isEmpty { ramped += 1 }
            watch.settle()
            guard watch.broken == nil else {
                Issue.record("sequence \(seed): \(watch.broken ?? "")")
                return
            }
        }
        #expect(opened > sequences / 10 && ramped > sequences / 50, "the sequences do not go where it matters")
    }

    @Test func `the open time grows, is spread, and has an end`() {
        let settings = Breaker.Settings()
        #expect(settings.openTime(streak: 0, jitter: 0.5) == .seconds(300))
        #expect(settings.openTime(streak: 0, jitter: 0) == .seconds(240))
        #expect(settings.openTime(streak: 0, jitter: 1) == .seconds(360))
        #expect(settings.openTime(streak: 1, jitter: 0.5) == .seconds(600))
        #expect(settings.openTime(streak: 60, jitter: 0.5) == .seconds(3600))
    }
}
