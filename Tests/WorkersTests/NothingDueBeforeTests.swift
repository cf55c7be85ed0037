import FoundationEssentials
import MillraceQueues
import TestSupport
import Testing

@testable import Workers

@Suite struct NothingDueBeforeTests {
    /// Writers that set timers and commit or give up in any order, and looks. A step takes a tenth of a second.
    struct World {
        struct Writer {
            var xid: UInt64
            var dues: [Date] = []
        }

        var random: SeededRandom
        var clock = Date(timeIntervalSince1970: 1000)
        var told = Date(timeIntervalSince1970: 1000)
        var xid: UInt64 = 100
        var writers: [Writer] = []
        /// Committed and not moved.
        var visible: [Date] = []
        var nothingDue = NothingDueBefore()

        mutating func step() {
            clock.addTimeInterval(0.1)
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1:
                // It has read the clock up to a second before it takes its number.
                let read = clock.addingTimeInterval(-Double(Int.random(in: 0...9, using: &random)) / 10)
                xid += 1
                writers.append(Writer(xid: xid, dues: [read.addingTimeInterval(0.001)]))
            case 2, 3:
                guard let index = writers.indices.randomElement(using: &random) else { return }
                let ahead = Double(Int.random(in: 1...30, using: &random)) / 10
                writers[index].dues.append(clock.addingTimeInterval(ahead))
            default:
                guard let index = writers.indices.randomElement(using: &random) else { return }
                let writer = writers.remove(at: index)
                if random.chance(0.9) { visible += writer.dues }
            }
        }

        mutating func look() {
            let time = told
            for _ in 0..<2 where random.chance(0.5) { step() }
            nothingDue.sample(Horizon(seq: 0, writers: Set(writers.map(\.xid))), at: time)
            for _ in 0..<2 where random.chance(0.5) { step() }
            told = clock
            visible.removeAll { $0 <= told && $0 > nothingDue.bottom ?? .distantPast }
            step()
            nothingDue.looked()
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `nothing that is due ever appears before that time`(seed: UInt64) {
        var world = World(random: SeededRandom(seed))
        for _ in 0..<500 {
            if world.random.chance(0.15) { world.look() } else { world.step() }
            let nothingDue = world.nothingDue.bottom ?? .distantPast
            #expect(world.visible.allSatisfy { $0 > nothingDue }, "seed \(seed), nothingDue \(nothingDue)")
        }
    }

    @Test func `the time follows the looks, up to the oldest writer`() {
        func at(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }
        var nothingDue = NothingDueBefore()
        #expect(nothingDue.bottom == nil)
        nothingDue.sample(Horizon(seq: 0, writers: [5]), at: at(10))
        nothingDue.looked()
        #expect(nothingDue.bottom == nil)  // it may have set anything
        nothingDue.sample(Horizon(seq: 0, writers: [7]), at: at(20))
        nothingDue.looked()
        #expect(nothingDue.bottom == at(9))  // seen first after 10
        nothingDue.sample(Horizon(seq: 0, writers: []), at: at(30))
        #expect(nothingDue.bottom == at(9))
        nothingDue.looked()
        #expect(nothingDue.bottom == at(29))
    }

    @Test func `a clock that goes back resets it`() {
        var nothingDue = NothingDueBefore()
        nothingDue.sample(Horizon(seq: 0, writers: []), at: Date(timeIntervalSince1970: 100))
        nothingDue.looked()
        nothingDue.sample(Horizon(seq: 0, writers: []), at: Date(timeIntervalSince1970: 90))
        #expect(nothingDue.bottom == nil)
    }
}
