import MillraceQueues
import TestSupport
import Testing

@testable import Workers

@Suite struct FloorsTests {
    static let lane = Lane(queue: 1, priority: 4, line: .normal)
    static let other = Lane(queue: 1, priority: 7, line: .normal)

    /// Writers that draw numbers and commit in any order, and a worker that claims what it may see.
    struct World {
        struct Writer {
            var xid: UInt64
            var rows: [(lane: Lane, seq: Int64)] = []
        }

        var random: SeededRandom
        var seq: Int64 = 0
        var xid: UInt64 = 100
        var writers: [Writer] = []
        var visible: [Lane: Set<Int64>] = [:]
        var committed: Set<Int64> = []
        var taken: Set<Int64> = []
        var floors = Floors()
        /// How often each number was walked over below a floor.
        var walks: [Lane: [Int64: Int]] = [:]
        var mostWalks: Int { walks.values.compactMap { $0.values.max() }.max() ?? 0 }

        init(seed: UInt64) {
            random = SeededRandom(seed)
        }

        mutating func begin() {
            xid += 1
            writers.append(Writer(xid: xid))
        }

        mutating func draw() {
            guard let index = writers.indices.randomElement(using: &random) else { return }
            seq += 1
            writers[index].rows.append((random.chance(0.8) ? FloorsTests.lane : FloorsTests.other, seq))
        }

        mutating func commit() {
            guard let index = writers.indices.randomElement(using: &random) else { return }
            let writer = writers.remove(at: index)
            for row in writer.rows {
                visible[row.lane, default: []].insert(row.seq)
                committed.insert(row.seq)
            }
        }

        /// The sequence first, then the snapshot: others go on between the two.
        mutating func sample(meanwhile: (inout World) -> Void = { _ in }) {
            let drawn = seq
            meanwhile(&self)
            floors.sample(Horizon(seq: drawn, writers: Set(writers.map(\.xid))))
        }

        mutating func write() {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: begin()
            case 1, 2: draw()
            default: commit()
            }
        }

        /// A claim sees one moment; what happens until its answer is taken in is not in it.
        mutating func claim(wanted: Int, limit: Int32 = 1000, meanwhile: (inout World) -> Void = { _ in }) {
            var ranges: [ClaimRange] = []
            floors.planned()
            for lane in [FloorsTests.lane, FloorsTests.other] {
                if let sweep = floors.pendingSweep(of: lane) {
                    ranges.append(ClaimRange(lane: lane, floor: sweep.lower, ceiling: sweep.upper, limit: limit))
                    if sweep.upper > sweep.lower {
                        for number in (sweep.lower + 1)...sweep.upper {
                            walks[lane, default: [:]][number, default: 0] += 1
                        }
                    }
                }
                ranges.append(ClaimRange(lane: lane, floor: floors.floor(of: lane), limit: limit))
            }
            var jobs: [Claimed] = []
            for range in ranges {
                let rows = (visible[range.lane] ?? []).filter { $0 > range.floor && $0 <= range.ceiling }
                for row in rows.sorted().prefix(min(Int(range.limit), wanted - jobs.count)) {
                    visible[range.lane]?.remove(row)
                    taken.insert(row)
                    jobs.append(claimed(row, lane: range.lane))
                }
            }
            meanwhile(&self)
            floors.claimed(jobs.places, from: ranges, wanted: wanted)
        }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `every committed row is claimed after finitely many samples`(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<400 {
            switch Int.random(in: 0..<10, using: &world.random) {
            case 0..<7: world.write()
            case 7: world.sample { world in world.write() }
            default:
                let wanted = Int.random(in: 1...6, using: &world.random)
                world.claim(wanted: wanted, limit: Int32.random(in: 1...6, using: &world.random)) { world in
                    if world.random.chance(0.5) { world.write() }
                    if world.random.chance(0.3) { world.sample() }  // the housekeeper's, beside a claim in flight
                }
            }
        }
        while !world.writers.isEmpty { world.commit() }
        world.sample()
        var rounds = 0
        while world.taken != world.committed, rounds < 2000 {
            world.claim(wanted: 5)
            rounds += 1
        }
        #expect(world.committed.subtracting(world.taken).isEmpty, "seed \(seed): never claimed")
    }

    @Test func `a sample that another has overtaken takes nobody for ended`() {
        var floors = Floors()
        floors.hint(Self.lane)
        let late = Horizon(seq: 5, writers: [])
        floors.sample(Horizon(seq: 8, writers: [7]))  // 7 has drawn 6 since
        floors.planned()
        floors.claimed(
            [claimed(7), claimed(8)].places, from: [ClaimRange(lane: Self.lane, floor: 0, limit: 100)], wanted: 100)
        floors.sample(late)
        floors.sample(Horizon(seq: 8, writers: []))
        let sweep = floors.pendingSweep(of: Self.lane)
        #expect(sweep.map { $0.lower < 6 && $0.upper >= 6 } == true, "\(String(describing: sweep))")
    }

    @Test func `a row that commits late, below the floor, is found by the next sample`() {
        var world = World(seed: 1)
        world.sample()
        world.begin()
        world.draw()  // 1, uncommitted
        let late = world.writers.removeLast()
        world.begin()
        for _ in 0..<3 { world.draw() }
        world.writers.append(late)
        world.writers.swapAt(0, 1)
        let early = world.writers.removeLast()
        for row in early.rows {
            world.visible[row.lane, default: []].insert(row.seq)
            world.committed.insert(row.seq)
        }
        world.claim(wanted: 10)
        #expect(world.taken == [2, 3, 4])
        world.sample()
        world.claim(wanted: 10)
        #expect(world.taken == [2, 3, 4])
        world.commit()
        world.sample()
        world.claim(wanted: 10)
        #expect(world.taken == [1, 2, 3, 4])
    }

    @Test func `a sample between a claim and its answer hides nothing`() {
        var world = World(seed: 1)
        world.sample()
        world.seq = 3
        world.visible[Self.lane] = [3]
        world.committed = [3]
        // 1 and 2 are drawn by a writer that is younger than the last sample, and commits while the claim is under way.
        world.claim(wanted: 10) { world in
            world.visible[Self.lane]?.insert(2)
            world.committed.insert(2)
            world.sample()
        }
        #expect(world.floors.floor(of: Self.lane) == 3)
        world.sample()
        world.claim(wanted: 10)
        #expect(world.taken == [2, 3])
    }

    @Test func `no number is walked over again without cause`() {
        var world = World(seed: 2)
        for _ in 0..<50 {
            world.begin()
            for _ in 0..<20 { world.draw() }
            world.commit()
            world.claim(wanted: 1000)
            world.sample()
            world.claim(wanted: 1000)
            world.claim(wanted: 1000)
        }
        #expect(world.taken == world.committed)
        #expect(world.mostWalks <= 1)
    }

    @Test func `a writer that stays open does not make every sample walk back to it`() {
        var world = World(seed: 3)
        world.sample()
        world.begin()
        let open = world.writers
        for _ in 0..<50 {
            world.writers = []
            world.begin()
            for _ in 0..<20 { world.draw() }
            world.commit()
            world.writers = open
            world.claim(wanted: 1000)
            world.sample()
            world.claim(wanted: 1000)
        }
        #expect(world.mostWalks <= 1)
        // Only when it ends is its range walked again, once.
        world.writers = []
        for _ in 0..<5 {
            world.sample()
            world.claim(wanted: 1000)
        }
        #expect(world.mostWalks <= 2)
    }

    @Test func `after a reset everything is looked at from the bottom`() {
        var floors = Floors()
        let range = ClaimRange(lane: Self.lane, floor: 0, limit: 10)
        floors.claimed([claimed(7)].places, from: [range], wanted: 10)
        #expect(floors.floor(of: Self.lane) == 7)
        floors.reset()
        #expect(floors.floor(of: Self.lane) == 0)
        #expect(floors.liveLanes == [Self.lane])
    }

    @Test func `a lane that gives nothing for long is no longer looked at, until somebody calls`() {
        var floors = Floors()
        floors.hint(Self.lane)
        let range = ClaimRange(lane: Self.lane, floor: 0, limit: 10)
        for _ in 1..<Floors.patience { floors.claimed([], from: [range], wanted: 10) }
        #expect(floors.liveLanes == [Self.lane])
        floors.claimed([], from: [range], wanted: 10)
        #expect(floors.liveLanes.isEmpty)
        floors.hint(Self.lane)
        #expect(floors.liveLanes == [Self.lane])
    }

    @Test func `a sweep that was cut short goes on where it stopped`() throws {
        var floors = Floors()
        floors.claimed([claimed(100)].places, from: [ClaimRange(lane: Self.lane, floor: 0, limit: 10)], wanted: 10)
        floors.found(Self.lane, first: 10, last: 90)
        let sweep = try #require(floors.pendingSweep(of: Self.lane))
        #expect(sweep == (9, 90))
        floors.planned()
        let ranges = [ClaimRange(lane: Self.lane, floor: 9, ceiling: 90, limit: 2)]
        floors.claimed([claimed(10), claimed(20)].places, from: ranges, wanted: 2)
        let rest = try #require(floors.pendingSweep(of: Self.lane))
        #expect(rest == (20, 90))
        #expect(floors.floor(of: Self.lane) == 100)
    }

    @Test func `a full claim says nothing of the ranges it did not reach`() throws {
        var floors = Floors()
        floors.claimed(
            [claimed(100), claimed(100, lane: Self.other)].places,
            from: [ClaimRange(lane: Self.lane, floor: 0, limit: 9), ClaimRange(lane: Self.other, floor: 0, limit: 9)],
            wanted: 9)
        floors.found(Self.other, first: 5, last: 50)
        floors.planned()
        let ranges = [
            ClaimRange(lane: Self.lane, floor: 100, limit: 2),
            ClaimRange(lane: Self.other, floor: 4, ceiling: 50, limit: 2),
        ]
        floors.claimed([claimed(101), claimed(102)].places, from: ranges, wanted: 2)
        let sweep = try #require(floors.pendingSweep(of: Self.other))
        #expect(sweep == (4, 50))
    }
}
