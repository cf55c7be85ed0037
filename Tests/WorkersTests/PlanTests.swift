import MillraceQueues
import Testing

@testable import Workers

@Suite struct PlanTests {
    static let free = ClaimPlan.Allowance(suspects: 16, lone: true)

    static func lane(_ priority: Int32, _ line: Lane.Line = .normal, queue: Int32 = 1) -> Lane {
        Lane(queue: queue, priority: priority, line: line)
    }

    static func floors(_ lanes: [Lane]) -> Floors {
        var floors = Floors()
        for lane in lanes { floors.hint(lane) }
        return floors
    }

    static func look(
        _ plan: inout ClaimPlan, _ lanes: [Lane], queues: [Int32] = [1], room: [Int32: Int] = [:], wanted: Int = 100,
        allowance: ClaimPlan.Allowance = free, hurried: Bool = false
    ) -> [ClaimRange] {
        plan.ranges(
            floors: floors(lanes), queues: queues, room: room, wanted: wanted, allowance: allowance, hurried: hurried)
    }

    @Test func `priority 0 is visited first, and what was put back before the rest of its priority`() {
        var plan = ClaimPlan()
        let ranges = Self.look(&plan, [Self.lane(9), Self.lane(0), Self.lane(4)])
        #expect(ranges.first?.lane == Self.lane(0, .putBack))
        let places = ranges.map { ($0.lane.priority, $0.lane.line.rawValue) }
        #expect(zip(places, places.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test func `every sixteenth claim begins with the last priority, so that nothing starves`() {
        var plan = ClaimPlan()
        let firsts = (1...160).map { _ in Self.look(&plan, []).first?.lane.priority }
        #expect(firsts.count { $0 == 9 } == 10)
        #expect(firsts.count { $0 == 0 } == 150)
        #expect(firsts[15] == 9)
    }

    @Test func `of many lanes the first are visited, in their order`() {
        var plan = ClaimPlan()
        let queues = Array(Int32(1)...600)
        let lanes = queues.flatMap { queue in (Int32(2)...8).map { Self.lane($0, queue: queue) } }
        for turn in 1...ClaimPlan.fairTurn {
            let isFair = turn == ClaimPlan.fairTurn
            let visited = Self.look(&plan, lanes, queues: queues, hurried: true).map(\.lane)
            #expect(visited.count == ClaimPlan.mostLanes && Set(visited).count == visited.count)
            #expect(visited.allSatisfy { isFair ? $0.priority >= 8 : $0.priority <= 2 })
            #expect(
                zip(visited, visited.dropFirst()).allSatisfy {
                    isFair ? $0.priority >= $1.priority : $0.priority <= $1.priority
                })
            // Queue by queue, another one first in each turn.
            let ranks = visited.filter { $0.priority == (isFair ? 8 : 2) && $0.line == .normal }
                .map { (Int($0.queue) - 1 + 600 - turn) % 600 }
            #expect(ranks == ranks.sorted() && ranks.first == 0)
        }
    }

    @Test func `a lone suspect behind many lanes keeps other suspects waiting`() {
        var plan = ClaimPlan()
        let queues = Array(Int32(1)...300)
        // The suspect comes first, and the lone one behind more lanes than are visited.
        let lanes = [Self.lane(0, .suspect)] + queues.map { Self.lane(5, queue: $0) }
        func lines(_ lanes: [Lane]) -> Set<Lane.Line> {
            Set(Self.look(&plan, lanes, queues: queues, hurried: true).map(\.lane.line))
        }
        #expect(lines(lanes).contains(.suspect))
        let kept = lines(lanes + [Self.lane(9, .lone, queue: 2)])
        #expect(!kept.contains(.suspect) && !kept.contains(.lone))
    }

    @Test func `an unhurried claim of few queues looks at every ordinary lane`() {
        var plan = ClaimPlan()
        let lanes = Set(Self.look(&plan, [], queues: [1, 2, 3, 4]).map(\.lane))
        for queue in Int32(1)...4 {
            for priority in Int32(0)...9 {
                #expect(lanes.contains(Self.lane(priority, .putBack, queue: queue)))
                #expect(lanes.contains(Self.lane(priority, .normal, queue: queue)))
            }
        }
    }

    @Test(arguments: [(1, true), (7, true), (50, true), (7, false), (50, false)])
    func `probes come to every ordinary lane in turn`(queues: Int, hurried: Bool) {
        var plan = ClaimPlan()
        let ids = (1...Int32(queues)).map { $0 }
        var seen: Set<Lane> = []
        let per = hurried ? ClaimPlan.probes : ClaimPlan.fewQueues * 20
        for _ in 0..<((queues * 20 + per - 1) / per) {
            seen.formUnion(Self.look(&plan, [], queues: ids, hurried: hurried).map(\.lane))
        }
        #expect(seen.count == queues * 20)
    }

    @Test func `a hurried claim looks at the lanes known to hold work and few others`() {
        var plan = ClaimPlan()
        let lanes = Self.look(&plan, [Self.lane(4), Self.lane(5)], queues: Array(1...50), hurried: true).map(\.lane)
        #expect(lanes.contains(Self.lane(4)) && lanes.contains(Self.lane(5)))
        #expect(lanes.count <= 2 + ClaimPlan.probes)
    }

    @Test func `two who claim from one lane wait for their turn at that one, whatever else they look at`() {
        var plan = ClaimPlan()
        let firsts = (0..<40).map { _ in
            let ranges = Self.look(&plan, [Self.lane(5), Self.lane(7)], hurried: true)
            let turn = ClaimPlan.turn(among: ranges, floors: Self.floors([Self.lane(5), Self.lane(7)]))
            return (turn: ranges[turn].lane, looked: ranges[0].lane)
        }
        // Every sixteenth claim begins with the last priority.
        #expect(firsts.count { $0.turn == Self.lane(5) } == 38 && firsts.count { $0.turn == Self.lane(7) } == 2)
        #expect(Set(firsts.map(\.looked)).count > 3)
        #expect(ClaimPlan.turn(among: Self.look(&plan, []), floors: Floors()) == 0)
    }

    @Test func `queues take turns in front within a priority`() {
        var plan = ClaimPlan()
        var fronts: [Int32: Int] = [:]
        for _ in 0..<12 {
            let front = Self.look(&plan, [], queues: [1, 2, 3]).first {
                $0.lane == Self.lane(0, .putBack, queue: $0.lane.queue)
            }
            fronts[front?.lane.queue ?? 0, default: 0] += 1
        }
        #expect(fronts == [1: 4, 2: 4, 3: 4])
    }

    @Test func `lanes of queues that are not served are left alone`() {
        var plan = ClaimPlan()
        #expect(holds(Self.look(&plan, [Self.lane(4, queue: 9)], queues: [1]).allSatisfy { $0.lane.queue == 1 }))
        #expect(holds(Self.look(&plan, [Self.lane(4)], queues: []).isEmpty))
    }

    @Test func `a queue with a bound gives no more than it has room for`() {
        var plan = ClaimPlan()
        let ranges = Self.look(&plan, [Self.lane(4), Self.lane(4, queue: 2)], queues: [1, 2], room: [1: 3, 2: 0])
        #expect(ranges.filter { $0.lane == Self.lane(4) }.map(\.limit) == [3])
        #expect(ranges.allSatisfy { $0.lane == Self.lane(4) || $0.limit == 1 }, "what is probed is empty as a rule")
        #expect(ranges.allSatisfy { $0.lane.queue != 2 })
    }

    @Test func `one lane of suspects at a time, and no more than the process may take`() {
        var plan = ClaimPlan()
        let lanes = [Self.lane(4, .suspect), Self.lane(5, .suspect), Self.lane(4)]
        let ranges = Self.look(&plan, lanes, allowance: ClaimPlan.Allowance(suspects: 3, lone: true))
        let suspects = ranges.filter { $0.lane.line == .suspect }
        #expect(suspects.map(\.lane) == [Self.lane(4, .suspect)])
        #expect(suspects.map(\.limit) == [3])
        #expect(
            holds(
                Self.look(&plan, lanes, allowance: ClaimPlan.Allowance(suspects: 0, lone: false)).allSatisfy {
                    $0.lane.line != .suspect
                }))
    }

    @Test func `a lone suspect is claimed by itself, and no other suspect with it`() {
        var plan = ClaimPlan()
        let lanes = [Self.lane(4, .suspect), Self.lane(5, .lone), Self.lane(6, .lone)]
        let ranges = Self.look(&plan, lanes)
        let suspects = ranges.filter { $0.lane.line == .lone || $0.lane.line == .suspect }
        #expect(suspects.map(\.lane) == [Self.lane(5, .lone)])
        #expect(suspects.map(\.limit) == [1])
        let none = Self.look(&plan, lanes, allowance: ClaimPlan.Allowance(suspects: 16, lone: false))
        #expect(none.allSatisfy { $0.lane.line != .lone })
    }

    @Test func `a pending sweep is claimed from before what lies above the floor`() {
        var plan = ClaimPlan()
        var floors = Self.floors([Self.lane(4)])
        floors.claimed([claimed(50)].places, from: [ClaimRange(lane: Self.lane(4), floor: 0, limit: 9)], wanted: 9)
        floors.found(Self.lane(4), first: 20, last: 30)
        let ranges = plan.ranges(
            floors: floors, queues: [1], room: [:], wanted: 10, allowance: Self.free, hurried: true
        ).filter { $0.lane == Self.lane(4) }
        #expect(
            ranges == [
                ClaimRange(lane: Self.lane(4), floor: 19, ceiling: 30, limit: 10),
                ClaimRange(lane: Self.lane(4), floor: 50, limit: 10),
            ])
    }

    @Test func `a hurried claim takes jobs with limits and jobs without apart, by who comes first`() {
        let free = Self.lane(4, queue: 1)
        let bounded = Self.lane(4, queue: 2)
        let probed = Self.lane(5, queue: 2)
        let ranges = [free, bounded, probed].map { ClaimRange(lane: $0, floor: 0, limit: 9) }
        func apart(_ ranges: [ClaimRange], live: [Lane], limited: Set<Int32> = [2]) -> [Lane] {
            var plan = ClaimPlan()
            return plan.apart(ranges, floors: Self.floors(live), limited: limited).map(\.lane)
        }
        #expect(apart(ranges, live: [free, bounded]) == [free])
        #expect(apart(ranges.reversed(), live: [free, bounded]) == [bounded])
        #expect(apart(ranges, live: [bounded]) == [bounded])
        #expect(apart(ranges, live: []) == [free, bounded, probed])
        #expect(apart(ranges, live: [free], limited: []) == [free, bounded, probed])
    }

    @Test func `a full queue in front does not keep jobs without limits waiting`() {
        var plan = ClaimPlan()
        let full = ClaimRange(lane: Self.lane(0, queue: 2), floor: 0, limit: 9)
        let free = ClaimRange(lane: Self.lane(4, queue: 1), floor: 0, limit: 9)
        let floors = Self.floors([full.lane, free.lane])
        func look() -> [ClaimRange] { plan.apart([full, free], floors: floors, limited: [2]) }
        func went(_ brought: Int, heldBack: Bool) -> Bool { plan.went(brought: brought, heldBack: heldBack ? [1] : []) }
        #expect(look() == [full])
        #expect(went(0, heldBack: true))
        for _ in 0..<3 {  // as long as it is held back
            #expect(look() == [full, free])
            #expect(!went(9, heldBack: true))
        }
        #expect(look() == [full, free])
        #expect(!went(9, heldBack: false))
        // A lane that was only thought to hold something.
        #expect(look() == [full])
        #expect(went(0, heldBack: false))
        #expect(look() == [free])
        #expect(went(0, heldBack: false))
        #expect(look() == [full, free])
        #expect(!went(0, heldBack: false))
    }

    @Test func `of one priority, jobs with limits and jobs without take turns`() {
        var plan = ClaimPlan()
        let bounded = ClaimRange(lane: Self.lane(4, queue: 2), floor: 0, limit: 9)
        let free = ClaimRange(lane: Self.lane(4, queue: 1), floor: 0, limit: 9)
        let urgent = ClaimRange(lane: Self.lane(1, queue: 2), floor: 0, limit: 9)
        func look(_ ranges: [ClaimRange]) -> [ClaimRange] {
            defer { _ = plan.went(brought: 1, heldBack: []) }
            return plan.apart(ranges, floors: Self.floors(ranges.map(\.lane)), limited: [2])
        }
        #expect(look([bounded, free]) == [bounded])
        #expect(look([bounded, free]) == [free])
        #expect(look([bounded, free]) == [bounded])
        #expect(look([urgent, free]) == [urgent], "a better priority waits for no turn")
        #expect(look([urgent, free]) == [urgent])
    }

    @Test func `one job that somebody has woken us for is picked up where it is`() {
        let plan = ClaimPlan()
        func pickUp(
            _ hinted: Set<Lane>, floors: Floors = Floors(), limited: Set<Int32> = [], room: [Int32: Int] = [:]
        ) -> ClaimRange? {
            plan.pickUp(hinted, floors: floors, queues: [1, 2], lines: [:], limited: limited, room: room)
        }
        var floors = Self.floors([Self.lane(4)])
        floors.planned()
        floors.claimed(
            [QueuePosition(lane: Self.lane(4), seq: 40)], from: [ClaimRange(lane: Self.lane(4), floor: 0, limit: 9)],
            wanted: 9)
        #expect(pickUp([Self.lane(4)], floors: floors) == ClaimRange(lane: Self.lane(4), floor: 40, limit: 1))
        #expect(pickUp([Self.lane(4, .putBack)]) == ClaimRange(lane: Self.lane(4, .putBack), floor: 0, limit: 1))
        #expect(pickUp([]) == nil)
        #expect(pickUp([Self.lane(4), Self.lane(4, queue: 2)]) == nil)
        #expect(pickUp([Self.lane(4, .suspect)]) == nil && pickUp([Self.lane(4, .lone)]) == nil)
        #expect(pickUp([Self.lane(4, queue: 3)]) == nil)
        #expect(pickUp([Self.lane(4)], limited: [1]) == nil && pickUp([Self.lane(4)], limited: [2]) != nil)
        #expect(pickUp([Self.lane(4)], room: [1: 0]) == nil && pickUp([Self.lane(4)], room: [1: 1]) != nil)
        // Something may stand below the floor: then that comes first.
        floors.found(Self.lane(4), first: 7, last: 9)
        #expect(pickUp([Self.lane(4)], floors: floors) == nil)
    }
}
