import MillraceQueues
import Testing

@testable import Workers

@Suite struct FairSharesTests {
    /// Two tenants' lines of queue 1, and the queue itself.
    static let lines: [Int32: FairShares.Line] = [
        1: .init(main: 1, weight: 1), 2: .init(main: 1, weight: 1), 3: .init(main: 1, weight: 3),
    ]

    /// Claims of `wanted` from lines with the given numbers of jobs, as the database would answer; returns what each line gave.
    static func claims(
        _ count: Int, wanted: Int, holding: [Int32: Int], plan: inout ClaimPlan, lines: [Int32: FairShares.Line] = lines
    ) -> [Int32: Int] {
        var left = holding
        var given: [Int32: Int] = [:]
        for _ in 0..<count {
            var floors = Floors()
            for (queue, jobs) in left where jobs > 0 { floors.hint(Lane(queue: queue, priority: 4, line: .normal)) }
            let ranges = plan.ranges(
                floors: floors, queues: lines.keys.sorted(), lines: lines, room: [:], wanted: wanted,
                allowance: .init(suspects: 16, lone: true), hurried: true)
            var places: [QueuePosition] = []
            for range in ranges where range.lane.priority == 4 && range.lane.line == .normal {
                let most = min(Int(range.limit), left[range.lane.queue] ?? 0, wanted - places.count)
                guard most > 0 else { continue }
                left[range.lane.queue]? -= most
                given[range.lane.queue, default: 0] += most
                places += Array(repeating: QueuePosition(lane: range.lane, seq: 1), count: most)
            }
            plan.given(places, lines: lines)
        }
        return given
    }

    @Test func `a tenant with a million jobs leaves the other its half, in every claim`() {
        var plan = ClaimPlan()
        let given = Self.claims(10, wanted: 100, holding: [1: 1_000_000, 2: 1_000_000], plan: &plan)
        #expect(given == [1: 500, 2: 500])
    }

    @Test func `a line that comes late with one job has it taken by the next claim`() {
        var plan = ClaimPlan()
        _ = Self.claims(50, wanted: 100, holding: [1: 1_000_000], plan: &plan)
        let given = Self.claims(1, wanted: 100, holding: [1: 1_000_000, 2: 1], plan: &plan)
        #expect(given[2] == 1)
    }

    @Test func `with one slot free at a time the lines take turns by their weights`() {
        var plan = ClaimPlan()
        let given = Self.claims(500, wanted: 1, holding: [1: 1000, 2: 1000, 3: 1000], plan: &plan)
        #expect(given == [1: 100, 2: 100, 3: 300])
    }

    /// A queue whose jobs start two at a time, however many of them wait.
    @Test func `a bounded queue's room is there once, and not once for each line`() {
        var plan = ClaimPlan()
        let many = Dictionary(uniqueKeysWithValues: (Int32(1)...40).map { ($0, FairShares.Line(main: 1, weight: 1)) })
        var floors = Floors()
        for line in many.keys { floors.hint(Lane(queue: line, priority: 4, line: .normal)) }
        for room in [2, 1, 3] {
            let ranges = plan.ranges(
                floors: floors, queues: many.keys.sorted(), lines: many, room: [1: room], wanted: 100,
                allowance: .init(suspects: 16, lone: true), hurried: true)
            #expect(ranges.filter { floors.isLive($0.lane) }.reduce(0) { $0 + Int($1.limit) } == room)
        }
        // Nothing came of them: others hold work, so the next claim follows at once.
        let follows = [plan.went(brought: 0, heldBack: []), plan.went(brought: 3, heldBack: [])]
        #expect(follows == [true, false])
    }

    @Test func `lines whose limit is used up leave a bounded queue's room to the others`() {
        var plan = ClaimPlan()
        let lines = Dictionary(uniqueKeysWithValues: (Int32(1)...3).map { ($0, FairShares.Line(main: 1, weight: 1)) })
        var floors = Floors()
        for line in lines.keys { floors.hint(Lane(queue: line, priority: 4, line: .normal)) }
        let shut: Set<Int32> = [1, 2]
        var follows: [Bool] = []
        var visited: [Set<Int32>] = []
        for _ in 0..<4 {
            let ranges = plan.ranges(
                floors: floors, queues: lines.keys.sorted(), lines: lines, room: [1: 1], wanted: 100,
                allowance: .init(suspects: 16, lone: true), hurried: true)
            let live = Set(ranges.filter { floors.isLive($0.lane) }.map(\.lane.queue))
            visited.append(live)
            // The third has its turns used up by another worker, so that nothing comes of any claim.
            follows.append(plan.went(brought: 0, heldBack: live.intersection(shut)))
        }
        #expect(visited.last?.contains(3) == true, "\(visited)")
        #expect(follows.last == false, "nothing is new, so the next claim does not follow at once")
    }

    @Test func `newcomers with one job come next in a bounded queue, whatever others have waiting`() {
        var plan = ClaimPlan()
        let lines = Dictionary(uniqueKeysWithValues: (Int32(1)...34).map { ($0, FairShares.Line(main: 1, weight: 1)) })
        var holding = Dictionary(uniqueKeysWithValues: (Int32(1)...22).map { ($0, 24) })
        var order: [Int32] = []
        func claim() {
            var floors = Floors()
            for (line, jobs) in holding where jobs > 0 { floors.hint(Lane(queue: line, priority: 4, line: .normal)) }
            let ranges = plan.ranges(
                floors: floors, queues: lines.keys.sorted(), lines: lines, room: [1: 2], wanted: 100,
                allowance: .init(suspects: 16, lone: true), hurried: true)
            var places: [QueuePosition] = []
            for range in ranges where range.lane.code == Lane(queue: 1, priority: 4, line: .normal).code {
                let most = min(Int(range.limit), holding[range.lane.queue] ?? 0)
                holding[range.lane.queue]? -= most
                places += Array(repeating: QueuePosition(lane: range.lane, seq: 1), count: most)
            }
            order += places.map(\.lane.queue)
            plan.given(places, lines: lines)
        }
        for _ in 0..<60 { claim() }
        #expect(order.count == 120, "two jobs a claim, and no more")
        let before = order.count
        for line in Int32(23)...34 { holding[line] = 1 }
        for _ in 0..<20 { claim() }
        #expect(Set(order[before...].prefix(24)).isSuperset(of: 23...34), "\(order[before...].prefix(24))")
    }

    @Test func `what was handed back without a start counts for nobody's share`() {
        var plan = ClaimPlan()
        let first = Lane(queue: 1, priority: 4, line: .normal)
        plan.given(Array(repeating: QueuePosition(lane: first, seq: 1), count: 100), lines: Self.lines)
        plan.returned([1: 100], lines: Self.lines)
        let given = Self.claims(10, wanted: 1, holding: [1: 1000, 2: 1000], plan: &plan)
        #expect(given == [1: 5, 2: 5])
    }

    @Test func `a line that was empty does not save up for later`() {
        var plan = ClaimPlan()
        _ = Self.claims(100, wanted: 10, holding: [1: 1_000_000], plan: &plan)
        // It may be ahead by one of the other's claims, and by no more.
        let given = Self.claims(100, wanted: 1, holding: [1: 1000, 2: 1000], plan: &plan)
        #expect((40...50).contains(given[1] ?? 0))
    }

    @Test func `a line alone gets everything`() {
        var plan = ClaimPlan()
        #expect(Self.claims(1, wanted: 100, holding: [3: 500], plan: &plan) == [3: 100])
    }

    @Test func `lines by the thousand have their turn, a bounded number in each claim`() {
        var plan = ClaimPlan()
        let many = Dictionary(uniqueKeysWithValues: (Int32(1)...2000).map { ($0, FairShares.Line(main: 1, weight: 1)) })
        let given = Self.claims(
            20, wanted: 256, holding: many.mapValues { _ in 1000 }, plan: &plan, lines: many)
        #expect(given.count == 2000)
    }

    @Test func `jobs that were turned away count, so that a shut gate's jobs do not hold up the rest`() {
        var plan = ClaimPlan()
        plan.given(
            Array(repeating: QueuePosition(lane: Lane(queue: 2, priority: 4, line: .normal), seq: 1), count: 100),
            lines: Self.lines)
        var floors = Floors()
        for queue in Int32(1)...2 { floors.hint(Lane(queue: queue, priority: 4, line: .normal)) }
        let ranges = plan.ranges(
            floors: floors, queues: [1, 2], lines: Self.lines, room: [:], wanted: 10,
            allowance: .init(suspects: 16, lone: true), hurried: true)
        let order = ranges.map(\.lane).filter { $0.priority == 4 && $0.line == .normal }.map(\.queue)
        #expect(order == [1, 2])
    }
}
