import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct BreakerTests {
    private let start = ContinuousClock.now

    private func machine(_ failures: Int = 3) -> BreakerMachine {
        var rules = BreakerRules()
        (rules.failures, rules.firstPause, rules.longestPause) = (failures, .seconds(5), .seconds(12))
        return BreakerMachine(rules)
    }

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    @Test func `it opens after failures in a row, tries with one call, and pauses longer each time`() {
        var machine = machine()
        for _ in 0..<2 { machine.ended(.plain, .silent, at: start) }
        machine.ended(.plain, .answered, at: start)
        for _ in 0..<2 { machine.ended(.plain, .silent, at: start) }
        #expect(machine.begins(isUrgent: false, at: start) == .go(.plain))
        machine.ended(.plain, .silent, at: start)
        #expect(machine.begins(isUrgent: false, at: at(2)) == .wait(.seconds(3)))
        #expect(machine.begins(isUrgent: false, at: at(5)) == .go(.probe(1)))
        #expect(machine.begins(isUrgent: false, at: at(5)) == .wait(.seconds(5)))
        machine.ended(.plain, .silent, at: at(5))  // one that began before says nothing new
        machine.ended(.probe(1), .silent, at: at(6))
        #expect(machine.begins(isUrgent: false, at: at(15)) == .wait(.seconds(1)))
        #expect(machine.begins(isUrgent: false, at: at(16)) == .go(.probe(2)))
        machine.ended(.probe(2), .silent, at: at(16))
        #expect(machine.begins(isUrgent: false, at: at(27)) == .wait(.seconds(1)))
        #expect(machine.begins(isUrgent: false, at: at(28)) == .go(.probe(3)))
        machine.ended(.probe(3), .nothing, at: at(28))  // the app stopped waiting
        #expect(machine.begins(isUrgent: false, at: at(28)) == .go(.probe(4)))
        machine.ended(.probe(3), .silent, at: at(28))  // one of before
        machine.ended(.probe(4), .answered, at: at(29))
        #expect(machine.begins(isUrgent: false, at: at(29)) == .go(.plain))
    }

    @Test func `a check-in goes in every state, and its answer closes it`() {
        var machine = machine(1)
        machine.ended(.plain, .silent, at: start)
        #expect(machine.begins(isUrgent: true, at: start) == .go(.urgent))
        machine.ended(.urgent, .silent, at: start)
        #expect(machine.state == .open(until: at(5), pause: .seconds(5)))
        machine.ended(.urgent, .answered, at: start)
        #expect(machine.state == .closed(failures: 0))
    }

    /// Whatever calls do, in whatever order: at most one tries, an urgent one is never barred, and there is always a time at which the next may go.
    @Test func `any history leaves it able to recover`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var machine = machine(Int.random(in: 1...4, using: &random))
            var (now, open) = (start, [BreakerMachine.Pass]())
            for _ in 0..<80 {
                now = now.advanced(by: .seconds(Int.random(in: 0...4, using: &random)))
                if Bool.random(using: &random) {
                    let isUrgent = Int.random(in: 0..<5, using: &random) == 0
                    switch machine.begins(isUrgent: isUrgent, at: now) {
                    case .go(let pass): open.append(pass)
                    case .wait(let pause): #expect(!isUrgent && pause > .zero && pause <= .seconds(12))
                    }
                } else if !open.isEmpty {
                    let pass = open.remove(at: Int.random(in: 0..<open.count, using: &random))
                    let word = [BreakerMachine.Word.answered, .silent, .nothing].randomElement(using: &random)
                    machine.ended(pass, word ?? .nothing, at: now)
                }
                // Where one tries, it is one of those that have not ended.
                if case .probing(_, let number) = machine.state { #expect(open.count { $0 == .probe(number) } == 1) }
            }
            for pass in open { machine.ended(pass, .nothing, at: now) }
            #expect(machine.begins(isUrgent: false, at: now.advanced(by: .seconds(12))) != .wait(.seconds(12)))
            machine.ended(.urgent, .answered, at: now)
            #expect(machine.begins(isUrgent: false, at: now) == .go(.plain))
        }
    }

    @Test func `rules that are off never bar a call`() {
        var machine = BreakerMachine(.off)
        for _ in 0..<100 { machine.ended(.plain, .silent, at: start) }
        #expect(machine.begins(isUrgent: false, at: start) == .go(.plain))
    }

    // MARK: in the client

    /// A client of a port at which nobody listens, and what its observer was told.
    private func client(_ queue: OfflineQueue? = nil) throws -> (AppCalls, Locked<[AppCallReport]>) {
        let reports = Locked<[AppCallReport]>([])
        var configuration = AppConfiguration(url: try #require(URL(string: "http://127.0.0.1:\(try freePort())"))) {
            _ in
            "token"
        }
        configuration.retry = .none
        configuration.breaker.failures = 2
        configuration.breaker.firstPause = .seconds(1000)
        configuration.breaker.longestPause = .seconds(1000)
        configuration.observer = { report in reports.withLock { $0.append(report) } }
        return (AppCalls(configuration), reports)
    }

    @Test func `a gateway that is away is left alone, but for check-ins and calls for help`() async throws {
        let (calls, reports) = try client()
        let anna = AppClient.live(calls, "anna", nil)
        for turn in 0..<4 {
            let error = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
            #expect(error?.kind == .unavailable && error?.isBarred == (turn >= 2) && error?.status == nil)
        }
        for _ in 0..<2 {
            let checkIn = try await failure(as: AppError.self) { _ = try await anna.checkIns.checkIn() }
            #expect(checkIn?.isBarred == false)
            let help = try await failure(as: AppError.self) { _ = try await anna.emergency.help() }
            #expect(help?.isBarred == false)
        }
        let told = reports.value
        #expect(told.prefix(4).map(\.attempts) == [1, 1, 0, 0] && told.dropFirst(4).allSatisfy { $0.attempts == 1 })
        #expect(told.prefix(4).allSatisfy { $0.name == "points" } && told[4].name == "check_in")
        for report in told {
            guard case .failed(let error) = report.outcome else {
                Issue.record("\(report)")
                continue
            }
            #expect(error.kind == .unavailable && report.duration >= .zero)
        }
    }

    @Test func `what is done while it is open is kept by the queue, and told when the gateway is back`() async throws {
        try await AppWorld.with { world in
            let clock = Locked(ContinuousClock.now)
            var calls = world.calls("anna", attempts: 1)
            var configuration = calls.configuration
            configuration.breaker.failures = 1
            configuration.breaker.firstPause = .seconds(1000)
            configuration.breaker.longestPause = .seconds(1000)
            calls = AppCalls(configuration, pauses: Pauses(instant: { clock.value }))
            try await world.withQueue("anna", calls) { anna, queue, _ in
                for _ in 0..<3 { #expect(try await anna.moods.log(.calm).isQueued) }
                let barred = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
                #expect(barred?.isBarred == true)
                try await world.serving {
                    // The gateway is back, and nobody has noticed: a mood waits, a check-in goes, and its answer closes the breaker.
                    #expect(try await anna.moods.log(.happy).isQueued)
                    _ = try await anna.emergency.setContact(EmergencyContact("mum", mail: "mum@example.org"))
                    #expect(try await anna.checkIns.checkIn().value != nil)
                    #expect(await queue.pending == [])
                    #expect(try await anna.quests.points() >= 0)
                }
            }
        }
    }

    @Test func `an open breaker tries again by itself after its pause`() async throws {
        try await AppWorld.with { world in
            let clock = Locked(ContinuousClock.now)
            var configuration = world.calls("anna", attempts: 1).configuration
            configuration.breaker.failures = 1
            let calls = AppCalls(configuration, pauses: Pauses(instant: { clock.value }))
            let anna = AppClient.live(calls, "anna", nil)
            #expect(try await failure(as: AppError.self) { _ = try await anna.quests.points() }?.isBarred == false)
            try await world.serving {
                let barred = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
                #expect(barred?.isBarred == true && barred?.retryAfter != nil)
                clock.withLock { $0 = $0.advanced(by: .seconds(5)) }
                #expect(try await anna.quests.points() == 0)
            }
        }
    }

    @Test func `the observer is told how long a call took, how often it was made, and how it ended`() async throws {
        try await AppWorld.with { world in
            let reports = Locked<[AppCallReport]>([])
            let calls = world.calls("anna", observer: { report in reports.withLock { $0.append(report) } })
            let anna = AppClient.live(calls, "anna", nil)
            _ = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
            try await world.serving {
                _ = try await anna.quests.points()
                _ = try await failure(as: AppError.self) { _ = try await anna.quests.points(of: "ben") }
            }
            let told = reports.value
            #expect(told.map(\.name) == ["points", "points", "points"] && told.map(\.attempts) == [3, 1, 1])
            #expect(told[1].outcome == .succeeded && told[1].duration > .zero)
            guard case .failed(let refused) = told[2].outcome else {
                Issue.record("\(told[2])")
                return
            }
            #expect(refused.kind == .permissionDenied)
        }
    }
}
