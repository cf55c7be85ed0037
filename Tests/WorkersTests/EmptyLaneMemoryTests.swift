import MillraceQueues
import TestSupport
import Testing

@testable import Workers

@Suite struct EmptyLaneMemoryTests {
    static let lanes = [1, 7].map { Lane(queue: 1, priority: Int32($0), line: .normal) }

    /// Writers that draw numbers and commit or give up in any order, claims that are committed or rolled back, and looks.
    struct World {
        struct Writer {
            var xid: UInt64
            var rows: [(lane: Lane, seq: Int64)] = []
        }

        var random: SeededRandom
        var seq: Int64 = 0
        var xid: UInt64 = 100
        var writers: [Writer] = []
        /// Committed and not taken for good: what a look sees, also while a claim holds it.
        var visible: [Lane: Set<Int64>] = [:]
        var empty = EmptyLaneMemory()

        mutating func step() {
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                xid += 1
                writers.append(Writer(xid: xid))
            case 1, 2, 3:
                guard let index = writers.indices.randomElement(using: &random) else { return }
                seq += 1
                writers[index].rows.append((EmptyLaneMemoryTests.lanes[Int(seq) % 2], seq))
            case 4, 5:
                guard let index = writers.indices.randomElement(using: &random) else { return }
                let writer = writers.remove(at: index)
                guard random.chance(0.9) else { return }
                for row in writer.rows { visible[row.lane, default: []].insert(row.seq) }
            default:
                for lane in EmptyLaneMemoryTests.lanes where random.chance(0.7) {
                    for row in (visible[lane] ?? []).sorted().prefix(3) { visible[lane]?.remove(row) }
                }
            }
        }

        /// The sample first, then the look; others go on between the two and while it is under way.
        mutating func look() {
            let drawn = seq
            for _ in 0..<2 where random.chance(0.5) { step() }
            empty.sample(Horizon(seq: drawn, writers: Set(writers.map(\.xid))))
            for _ in 0..<2 where random.chance(0.5) { step() }
            var found: [Lane: Int64] = [:]
            for lane in EmptyLaneMemoryTests.lanes {
                found[lane] = (visible[lane] ?? []).filter { $0 > empty.bottom(of: lane) }.min()
            }
            step()
            empty.looked(at: EmptyLaneMemoryTests.lanes, found: found)
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `nothing ever appears below a bottom`(seed: UInt64) {
        var world = World(random: SeededRandom(seed))
        for _ in 0..<500 {
            if world.random.chance(0.15) { world.look() } else { world.step() }
            for lane in Self.lanes {
                let bottom = world.empty.bottom(of: lane)
                #expect((world.visible[lane] ?? []).allSatisfy { $0 > bottom }, "seed \(seed), bottom \(bottom)")
            }
        }
    }

    @Test func `the empty range follows what was consumed, up to the oldest writer`() {
        var empty = EmptyLaneMemory()
        let lane = Self.lanes[0]
        empty.sample(Horizon(seq: 10, writers: [5]))
        empty.looked(at: Self.lanes, found: [:])
        #expect(empty.bottom(of: lane) == 0)  // it may have drawn anything
        empty.sample(Horizon(seq: 100, writers: [7]))
        empty.looked(at: Self.lanes, found: [:])
        #expect(empty.bottom(of: lane) == 10)  // seen first after 10 had been given out
        empty.sample(Horizon(seq: 200, writers: []))
        empty.looked(at: Self.lanes, found: [lane: 151])
        #expect(empty.bottom(of: lane) == 150)
        #expect(empty.bottom(of: Self.lanes[1]) == 200)
        #expect(empty.bottom(of: Lane(queue: 2, code: 17)) == 0)
    }

    @Test func `a server with a lower sequence resets them`() {
        var empty = EmptyLaneMemory()
        empty.sample(Horizon(seq: 100, writers: []))
        empty.looked(at: Self.lanes, found: [:])
        empty.sample(Horizon(seq: 90, writers: []))
        #expect(empty.bottom(of: Self.lanes[0]) == 0)
    }

    @Test func `every lane of a queue is among those looked at`() {
        let lanes = EmptyLaneMemory.lanes(of: [3])
        #expect(lanes.count == 40)
        for priority in Int32(0)...9 {
            for line in Lane.Line.allCases {
                #expect(lanes.contains(Lane(queue: 3, priority: priority, line: line)))
            }
        }
    }
}
