import Faults
import Mail
import Supervision
import TestSupport
import Testing

/// A request to a provider that may lose, refuse or forget, and what the provider really took.
@Suite struct SendMachineTests {
    struct Provider {
        let holds: Duration?
        var taken = 0
        var isKnown = false

        mutating func answer(_ roll: Int, age: Duration) -> SendOutcome {
            if let holds, isKnown, age < holds, roll < 7 {
                return roll < 5 ? .accepted(id: "x") : .unknown(Fault(.unknown, ""))
            }
            switch roll {
            case 0...2:
                take()
                return .accepted(id: "x")
            case 3:
                take()
                return .unknown(Fault(.unknown, ""))
            case 4: return .unknown(Fault(.timeout, ""))
            case 5: return .refused(Fault(isKnown && holds != nil ? .conflict : .invalid, ""))
            case 6: return .refused(Fault(.notFound, ""))
            case 7: return .refused(Fault(.unavailable, ""))
            case 8: return .throttled(Fault(.throttled, "", wait: .milliseconds(1)))
            default: return .refused(Fault(.authentication, ""))
            }
        }

        mutating func take() {
            taken += 1
            isKnown = true
        }
    }

    /// For each random life of a request: its resolution never claims more than can be known.
    @Test func `nobody else is asked in doubt, and nothing is sent twice that must not be`() {
        var random = SeededRandom(7)
        var counts: [String: Int] = [:]
        for _ in 0..<100_000 {
            let holds: Duration? = random.below(3) == 0 ? nil : .seconds(86_400)
            let mayRepeat = random.below(4) == 0
            var provider = Provider(holds: holds)
            var machine = SendMachine(
                rules: .init(), count: 1, holds: holds, canAsk: false, mayRepeat: mayRepeat, isDoubtful: false)
            var wasUnknown = false
            var age = Duration.zero
            life: for _ in 0..<30 {
                age += .seconds([1, 60, 4000, 40_000][random.below(4)])
                if let step = machine.begin(age: age) {
                    guard case .rest(let resolutions) = step else { Issue.record("asked what cannot be asked"); break }
                    #expect(wasUnknown)
                    #expect(
                        mayRepeat
                            ? resolutions == [.resend]
                            : resolutions.allSatisfy { if case .parked = $0 { true } else { false } }
                    )
                    counts["given up", default: 0] += 1
                    break
                }
                let step: SendMachine.Step
                if random.below(6) == 0 {
                    step = machine.notCalled(
                        CallRefusal(
                            provider: "p", why: [.open, .pace, .ramping][random.below(3)], wait: .seconds(1)))
                } else {
                    let answer = provider.answer(random.below(10), age: age)
                    if case .unknown = answer { wasUnknown = true }
                    step = machine.answered([answer], age: age, left: .seconds(60))
                }
                #expect(machine.isDoubtful == wasUnknown)
                guard case .rest(let resolutions) = step else { continue }
                switch resolutions[0] {
                case .accepted:
                    #expect(provider.taken >= 1)
                    counts["accepted", default: 0] += 1
                    break life
                case .failed:
                    // With a key that holds, a refusal for the letter's sake says that nothing was taken before.
                    #expect(provider.taken == 0 || (holds != nil && age > .seconds(80_000)))
                    counts["failed", default: 0] += 1
                    break life
                case .elsewhere, .later:
                    #expect(!wasUnknown && provider.taken == 0)
                    counts["free", default: 0] += 1
                    break life
                case .alone: Issue.record("a single message cannot be split")
                case .resend:
                    #expect(mayRepeat && wasUnknown)
                    counts["resent", default: 0] += 1
                    break life
                case .parked:
                    #expect(wasUnknown && !mayRepeat)
                    counts["parked", default: 0] += 1
                    break life
                case .doubtful: #expect(wasUnknown)
                }
            }
            // Within the key's time the provider itself takes it once.
            if holds != nil, age < .seconds(80_000) { #expect(provider.taken <= 1) }
        }
        for what in ["accepted", "failed", "free", "parked", "given up", "resent"] {
            #expect(counts[what, default: 0] > 100, "\(what)")
        }
    }

    @Test func `a batch that is refused as a whole is taken apart, one that was refused in part is not`() {
        var machine = SendMachine(
            rules: .init(), count: 2, holds: .seconds(9), canAsk: false, mayRepeat: false, isDoubtful: false)
        let no = SendOutcome.refused(Fault(.invalid, "no"))
        #expect(machine.answered([no, no], age: .zero, left: .seconds(9)) == .rest([.alone, .alone]))
        #expect(
            machine.answered([.accepted(id: "a"), no], age: .zero, left: .seconds(9))
                == .rest([.accepted(id: "a"), .failed(Fault(.invalid, "no"))]))
    }

    @Test func `what throttles waits as it is told, while there is time`() {
        var machine = SendMachine(
            rules: .init(), count: 1, holds: nil, canAsk: false, mayRepeat: false, isDoubtful: false)
        let busy = Fault(.throttled, "busy", wait: .seconds(3))
        #expect(machine.answered([.throttled(busy)], age: .zero, left: .seconds(9)) == .again(after: .seconds(3)))
        #expect(
            machine.answered([.throttled(busy)], age: .zero, left: .seconds(2)) == .rest([.later(busy, uses: false)]))
    }

    @Test func `a provider that can be asked is asked once its key is forgotten`() {
        var machine = SendMachine(
            rules: .init(), count: 1, holds: .seconds(86_400), canAsk: true, mayRepeat: false, isDoubtful: true)
        #expect(machine.begin(age: .seconds(10)) == nil)
        #expect(machine.begin(age: .seconds(86_000)) == .ask)
        #expect(machine.answered([.unknown(Fault(.unknown, ""))], age: .seconds(86_000), left: .seconds(9)) == .ask)
        #expect(machine.asked(found: "x") == .rest([.accepted(id: "x")]))
        guard case .rest(let resolutions) = machine.asked(found: nil), case .parked = resolutions[0] else {
            Issue.record("it is not parked")
            return
        }
    }
}
