import Testing

@testable import Postgres

/// The turns against a model that only counts.
@Suite struct BudgetTurnsTests {
    /// Expectations cannot change a value themselves.
    private final class Line {
        var turns: BudgetTurns

        init(most: Int) { turns = BudgetTurns(most: most) }

        func ask(_ id: UInt64, _ urgency: Urgency) -> Bool { turns.ask(id, urgency) }
        func give(_ urgency: Urgency) -> UInt64? { turns.give(urgency) }
        func leave(_ id: UInt64) -> Bool { turns.leave(id) }
        func cap(_ urgency: Urgency) -> Int { turns.cap(urgency) }
        var inUse: Int { turns.inUse }
        var waiting: Int { turns.waiting }
    }

    @Test func `what is less urgent leaves one to what is above it`() {
        for (most, expected) in [(2, [2, 1, 1, 1]), (3, [3, 2, 1, 1]), (4, [4, 3, 2, 1]), (8, [8, 7, 6, 5])] {
            let turns = Line(most: most)
            #expect(Urgency.allCases.map { turns.cap($0) } == expected)
        }
        let turns = Line(most: 2)
        #expect(turns.ask(1, .work) && !turns.ask(2, .claims) && !turns.ask(3, .late) && turns.ask(4, .urgent))
        #expect(!turns.ask(5, .urgent))
        #expect(turns.give(.work) == 5, "both are urgent now, and the others wait")
        #expect(turns.give(.urgent) == 2)
        #expect(turns.give(.claims) == 3)
        #expect(turns.give(.late) == nil)
        #expect(turns.give(.urgent) == nil && turns.inUse == 0 && turns.waiting == 0)
    }

    @Test func `among equals the first comes first, and one that leaves is passed over`() {
        let turns = Line(most: 2)
        #expect(turns.ask(1, .work))
        for id in 2...4 as ClosedRange<UInt64> { #expect(!turns.ask(id, .work)) }
        #expect(turns.leave(2) && !turns.leave(2) && !turns.leave(1))
        #expect(turns.give(.work) == 3)
        #expect(turns.give(.work) == 4)
    }

    @Test func `however many claims there are, a look comes in between after some time`() {
        let turns = Line(most: 2)
        #expect(turns.ask(0, .claims) && !turns.ask(1_000, .late))
        var next: UInt64 = 1
        var given: [UInt64] = []
        while given.last != 1_000, given.count < 100 {
            #expect(!turns.ask(next, .claims))
            next += 1
            guard let one = turns.give(.claims) else { break }
            given.append(one)
        }
        #expect(given.count == BudgetTurns.patience + 1)
    }

    @Test(arguments: 2...6)
    func `whatever comes, no more go on than there are, and nobody who may go on waits`(most: Int) {
        var random = SystemRandomNumberGenerator()
        let turns = Line(most: most)
        var going: [Urgency] = []
        var waiting: [UInt64: Urgency] = [:]
        for id in 0..<5_000 as Range<UInt64> {
            if Bool.random(using: &random) || going.isEmpty {
                let urgency = Urgency.allCases.randomElement(using: &random) ?? .work
                if turns.ask(id, urgency) { going.append(urgency) } else { waiting[id] = urgency }
            } else if let left = waiting.keys.randomElement(using: &random), Int.random(in: 0..<10, using: &random) == 0
            {
                #expect(turns.leave(left))
                waiting[left] = nil
            } else {
                let ended = going.remove(at: .random(in: 0..<going.count, using: &random))
                if let next = turns.give(ended) {
                    guard let urgency = waiting.removeValue(forKey: next) else {
                        Issue.record("one goes on that does not wait")
                        return
                    }
                    going.append(urgency)
                }
            }
            #expect(going.count <= most && going.count == turns.inUse && waiting.count == turns.waiting)
            for urgency in Urgency.allCases {
                #expect(going.count { $0.rawValue >= urgency.rawValue } <= turns.cap(urgency))
            }
            #expect(
                going.count == most || !waiting.values.contains(.urgent),
                "one that is urgent waits although a connection is free")
        }
    }
}
