package import MillraceQueues

/// Which lanes a claim visits, and in which order. A pure value that counts its claims.
package struct ClaimPlan: Sendable {
    /// How many suspects may run beside ordinary jobs.
    package struct Allowance: Sendable {
        /// How many more suspects this process may take.
        package var suspects: Int
        /// True while no suspect runs: then one job of a lone line may.
        package var lone: Bool

        package init(suspects: Int, lone: Bool) {
            self.suspects = suspects
            self.lone = lone
        }
    }

    private var turn = 0
    private var probe = 0
    private var shares = FairShares()
    /// The current claim leaves some lanes out.
    private var isPart = false
    /// The next claim visits all lanes: the last one was held back by limits, or was the second partial claim in a row without a
    /// job.
    private var goesWhole = false
    /// Lanes that hold work were left out, because others had used up the room of their queue.
    private var isTight = false
    /// The lines that the current claim visits, and those that gave nothing when they were last visited because a limit of theirs is used up.
    private var visitedLines: Set<Int32> = []
    private var heldLines: Set<Int32> = []
    /// The last partial claim: whether it was for jobs with limits, and whether it brought no job.
    private var last: (isLimited: Bool, wasVain: Bool)?

    /// Every sixteenth claim goes from the last priority to the first, so that nothing starves.
    static let fairTurn = 16
    /// With at most this many queues, a claim that is not hurried visits all ordinary lanes.
    static let fewQueues = 4
    /// How many lanes without known work a hurried claim visits.
    static let probes = 6
    /// To visit more lanes costs more than it brings. Later claims visit the others.
    static let mostLanes = 256

    package init() {}

    /// `room`: how many jobs of a queue may be taken, for queues with a limit of their own. `narrow`: how many jobs of a line may
    /// be taken at most, because its jobs wait to be read. A hurried claim follows one that came back full: it visits the lanes
    /// known to hold work and a few others in turn. The lines of one queue share `wanted` by their weights.
    package mutating func ranges(
        floors: Floors, queues: [Int32], lines: [Int32: FairShares.Line] = [:], room: [Int32: Int],
        narrow: [Int32: Int] = [:], wanted: Int, allowance: Allowance, hurried: Bool
    ) -> [ClaimRange] {
        turn += 1
        let (ordered, hasLone) = visited(
            floors.liveLanes + probed(queues, hurried: hurried).filter { !floors.isLive($0) }, queues: queues,
            lines: lines)
        let portion = portions(ordered.filter(floors.isLive), lines: lines)
        let lone = ordered.first { $0.line == .lone }
        let suspect = hasLone ? nil : ordered.first { $0.line == .suspect }
        var ranges: [ClaimRange] = []
        // A queue with a bound has that room once, and not once for each of its lines: what is claimed beyond it could not start.
        var left = room
        isTight = false
        visitedLines = []
        for lane in ordered.prefix(Self.mostLanes) {
            let main = lines[lane.queue]?.main ?? lane.queue
            let isLive = floors.isLive(lane)
            var limit = min(wanted, left[main] ?? wanted)
            if limit == 0, isLive, room[main] ?? 0 > 0 { isTight = true }
            // What is only probed is empty as a rule, and what a limit held back is so still. They may give a job, and take no room from others.
            let takesRoom = isLive && !heldLines.contains(lane.queue)
            if !takesRoom, left[main] != nil { limit = min(limit, 1) }
            if let weight = lines[lane.queue]?.weight, let all = portion[Group(lane, main: main)], limit > 0 {
                let sum = isLive ? all : all + weight
                limit = max(1, Int((Double(limit) * weight / sum).rounded(.up)))
            }
            if let few = narrow[lane.queue] { limit = min(limit, few) }
            switch lane.line {
            case .putBack, .normal: break
            case .suspect: limit = lane == suspect ? min(limit, allowance.suspects) : 0
            case .lone: limit = lane == lone && allowance.lone ? min(limit, 1) : 0
            }
            guard limit > 0 else { continue }
            visitedLines.insert(lane.queue)
            if takesRoom, let more = left[main] { left[main] = more - limit }
            if let sweep = floors.pendingSweep(of: lane) {
                ranges.append(ClaimRange(lane: lane, floor: sweep.lower, ceiling: sweep.upper, limit: Int32(limit)))
                if lane.line == .lone || lane.line == .suspect { continue }  // one range, or the limit counts twice
            }
            ranges.append(ClaimRange(lane: lane, floor: floors.floor(of: lane), limit: Int32(limit)))
        }
        return ranges
    }

    /// The range at which a claim waits for its turn when another worker claims too: the first whose lane is known to hold work.
    /// A lane that is only probed is a different one in each claim.
    package static func turn(among ranges: [ClaimRange], floors: Floors) -> Int {
        ranges.firstIndex { floors.isLive($0.lane) } ?? 0
    }

    /// The range of the job that we were woken for, if it can be only one: all other lanes were empty before we slept. `room` and
    /// `narrow` as in `ranges`. Nil: make an ordinary claim.
    package func pickUp(
        _ hinted: Set<Lane>, floors: Floors, queues: [Int32], lines: [Int32: FairShares.Line], limited: Set<Int32>,
        room: [Int32: Int], narrow: [Int32: Int] = [:]
    ) -> ClaimRange? {
        guard hinted.count == 1, let lane = hinted.first, lane.line == .normal || lane.line == .putBack,
            queues.contains(lane.queue), !limited.contains(lane.queue), floors.pendingSweep(of: lane) == nil,
            room[lines[lane.queue]?.main ?? lane.queue] ?? 1 > 0, narrow[lane.queue] ?? 1 > 0
        else { return nil }
        return ClaimRange(lane: lane, floor: floors.floor(of: lane), limit: 1)
    }

    /// Jobs with limits and jobs without are claimed by different statements, so a claim is for one of the two. The first lane
    /// known to hold work decides which; lanes of one priority alternate. Lanes with limits that are only probed are left out,
    /// because they would make every claim use the slower statement. After a partial claim without a job comes the other part;
    /// after two of them, or after a claim that was held back, a claim of all lanes. So a full queue in front never delays the
    /// others.
    package mutating func apart(_ ranges: [ClaimRange], floors: Floors, limited: Set<Int32>) -> [ClaimRange] {
        isPart = false
        guard !limited.isEmpty, !goesWhole else { return ranges }
        let live = Set(floors.liveLanes)
        guard let first = ranges.first(where: { live.contains($0.lane) }) else { return ranges }
        var isLimited = limited.contains(first.lane.queue)
        let other = ranges.first { live.contains($0.lane) && limited.contains($0.lane.queue) != isLimited }
        if let last, last.isLimited == isLimited, let other,
            last.wasVain || other.lane.priority == first.lane.priority
        {
            isLimited.toggle()
        }
        let part = ranges.filter {
            limited.contains($0.lane.queue) == isLimited && (!isLimited || live.contains($0.lane))
        }
        isPart = part.count < ranges.count
        last = (isLimited, other == nil || last?.wasVain ?? false)
        return part
    }

    /// Takes note of how the claim went. True: another claim should follow at once, because this one left lanes out and brought
    /// no job.
    package mutating func went(brought: Int, heldBack: Set<Int32>) -> Bool {
        defer { isPart = false }
        let isNews = heldBack.isEmpty || !heldBack.isSubset(of: heldLines)
        heldLines = heldLines.subtracting(visitedLines).union(heldBack)
        let isVain = isPart && brought == 0
        goesWhole = !heldBack.isEmpty || (isVain && last?.wasVain ?? false)
        last?.wasVain = isVain
        // A claim that was tight and in vain has shown that lanes are empty or held back, so there are not many of them.
        return isVain || isTight && brought == 0 && isNews
    }

    /// Takes note of the positions that a claim has emptied, for the shares of the next claim. Jobs that were turned away count
    /// too; otherwise a line full of them would delay the other lines.
    package mutating func given(_ places: [QueuePosition], lines: [Int32: FairShares.Line]) {
        guard lines.count > 1 else { return }
        var counts: [Int32: Int] = [:]
        for place in places { counts[place.lane.queue, default: 0] += 1 }
        shares.given(counts, lines: lines)
    }

    /// These jobs were claimed and handed back without a start: they count for nobody's share.
    package mutating func returned(_ counts: [Int32: Int], lines: [Int32: FairShares.Line]) {
        if !counts.isEmpty { shares.returned(counts, lines: lines) }
    }

    /// The lanes in order, at least as many as one claim visits, and whether anything waits in a lone line. They are ordered by
    /// priority, then jobs that were put back first, then the queues in turn, then within a queue the line that is furthest
    /// behind its share. All lanes of a priority and line are included or none, so the lanes behind, maybe many thousands, are
    /// not sorted.
    private func visited(
        _ lanes: [Lane], queues: [Int32], lines: [Int32: FairShares.Line]
    ) -> (ordered: [Lane], hasLone: Bool) {
        let start = queues.isEmpty ? 0 : turn % queues.count
        let ranks = Dictionary(
            queues.enumerated().map { ($1, ($0 + queues.count - start) % queues.count) },
            uniquingKeysWith: { first, _ in first })
        var byCode: [Int32: [Lane]] = [:]
        for lane in lanes { byCode[lane.code, default: []].append(lane) }
        let isFair = turn % Self.fairTurn == 0
        let codes = byCode.keys.sorted { a, b in
            a >> 2 == b >> 2 ? a < b : (a < b) != isFair
        }
        var ordered: [Lane] = []
        for code in codes where ordered.count < Self.mostLanes {
            let keyed = byCode[code, default: []].compactMap { lane in
                ranks[lane.queue].map { rank in
                    let line = lines[lane.queue]
                    return (
                        lane: lane, main: line.flatMap { ranks[$0.main] } ?? rank,
                        clock: line.map { shares.clock(lane.queue, of: $0) } ?? 0, rank: rank
                    )
                }
            }
            ordered += keyed.sorted { ($0.main, $0.clock, $0.rank) < ($1.main, $1.clock, $1.rank) }.map(\.lane)
        }
        let hasLone = byCode.contains { code, lanes in
            code & 3 == Lane.Line.lone.rawValue && lanes.contains { ranks[$0.queue] != nil }
        }
        return (ordered, hasLone)
    }

    /// Lanes of one queue, priority and line: only shares decide between them.
    private struct Group: Hashable {
        let main: Int32
        let code: Int32

        init(_ lane: Lane, main: Int32) {
            self.main = main
            code = lane.code
        }
    }

    /// For each group, the sum of the weights of its lines that are known to hold work.
    private func portions(_ live: [Lane], lines: [Int32: FairShares.Line]) -> [Group: Double] {
        guard lines.count > 1 else { return [:] }
        var sums: [Group: Double] = [:]
        for lane in live {
            guard let line = lines[lane.queue] else { continue }
            sums[Group(lane, main: line.main), default: 0] += line.weight
        }
        return sums
    }

    private mutating func probed(_ queues: [Int32], hurried: Bool) -> [Lane] {
        let perQueue = 20  // ten priorities, put back and normal
        let total = queues.count * perQueue
        guard total > 0 else { return [] }
        func lane(_ index: Int) -> Lane {
            let code = index % perQueue
            return Lane(
                queue: queues[index / perQueue % queues.count], priority: Int32(code / 2),
                line: code % 2 == 0 ? .putBack : .normal)
        }
        if !hurried, queues.count <= Self.fewQueues { return (0..<total).map(lane) }
        let count = min(total, hurried ? Self.probes : Self.fewQueues * perQueue)
        defer { probe = (probe + count) % total }
        return (0..<count).map { lane((probe + $0) % total) }
    }
}
