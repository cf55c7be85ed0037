import TestSupport
import Testing

@testable import Threads

@Suite struct TurnsTests {
    /// Random callers against a list of them all.
    @Test(arguments: 0..<20) func `each name has its bound, its line, and its order`(_ seed: UInt64) {
        var random = SeededRandom(seed)
        var lines = TurnLines(atOnce: 2, mostWaiting: 3)
        var running: [String: [UInt64]] = [:]
        var waiting: [String: [UInt64]] = [:]
        for caller in UInt64(1)...400 {
            let name = ["ada", "bob", "cyd"][random.below(3)]
            switch random.below(3) {
            case 0:
                let answer = lines.ask(name, caller)
                if running[name, default: []].count < 2 {
                    #expect(answer == .granted)
                    running[name, default: []].append(caller)
                } else if waiting[name, default: []].count < 3 {
                    #expect(answer == .waits)
                    waiting[name, default: []].append(caller)
                } else {
                    #expect(answer == .full)
                }
            case 1:
                guard !running[name, default: []].isEmpty else { continue }
                running[name]?.removeFirst()
                let next = waiting[name, default: []].first
                #expect(lines.end(name) == next)
                if let next {
                    waiting[name]?.removeFirst()
                    running[name]?.append(next)
                }
            default:
                let one = waiting[name, default: []].randomElement(using: &random) ?? caller
                #expect(lines.giveUp(name, one) == waiting[name, default: []].contains(one))
                waiting[name]?.removeAll { $0 == one }
            }
            #expect(lines.count == running.values.count { !$0.isEmpty })
        }
    }

    @Test func `callers of one name wait for each other, and nobody else waits for them`() async throws {
        let turns = Turns(atOnce: 2, waiting: 100, patience: .seconds(600))
        let (gate, most, now) = (Gate(), Locked(0), Locked(0))
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask {
                    try await turns.withTurn(of: "greedy") {
                        let count = now.withLock { now in
                            now += 1
                            return now
                        }
                        most.withLock { $0 = max($0, count) }
                        try await gate.pass()
                        now.withLock { $0 -= 1 }
                    }
                }
            }
            try await eventually("two go on") { gate.arrivals == 2 }
            // While the others stand in their line.
            let answer = try await turns.withTurn(of: "other") { 7 }
            #expect(answer == 7)
            gate.open()
            try await group.waitForAll()
        }
        #expect(most.value == 2 && turns.names == 0)
    }

    @Test func `a full line refuses at once, a wait ends at its limit, and a cancelled one gives its place up`()
        async throws
    {
        let turns = Turns(atOnce: 1, waiting: 1, patience: .seconds(600))
        let gate = Gate()
        let first = Task { try await turns.withTurn(of: "ada") { try await gate.pass() } }
        try await eventually("the first one goes on") { gate.arrivals == 1 }
        let second = Task { try await turns.withTurn(of: "ada") {} }
        try await eventually("the second one waits") { turns.waiting(of: "ada") == 1 }
        await #expect(throws: Turns.Refusal.full) { try await turns.withTurn(of: "ada") {} }
        second.cancel()
        await #expect(throws: Turns.Refusal.cancelled) { try await second.value }
        gate.open()
        try await first.value
        try await turns.withTurn(of: "ada") {}

        let hurried = Turns(atOnce: 1, waiting: 1, patience: .milliseconds(1))
        _ = try await hurried.withTurn(of: "ada") {
            await #expect(throws: Turns.Refusal.late) { try await hurried.withTurn(of: "ada") {} }
        }
        #expect(hurried.names == 0 && turns.names == 0)
    }
}
