package import Queues

/// Which lanes a claim visits, in which order. Pure, but for counting turns.
package struct Plan: Sendable {
    /// What may run besides the ordinary.
    package struct Allowance: Sendable {
        /// How many more suspects this process may take.
        package var suspects: Int
        /// True when none of them runs, so that a lone one may.
        package var lone: Bool

        package init(suspects: Int, lone: Bool) {
            self.suspects = suspects
            self.lone = lone
        }
    }

    private var turn = 0
    private var probe = 0

    /// Every sixteenth claim goes from the last priority to the first, so that nothing starves.
    static let fairTurn = 16
    /// Up to here all ordinary lanes of all queues are looked at by an unhurried claim.
    static let fewQueues = 4
    static let probes = 6

    package init() {}

    /// `room` is how many jobs of a queue may be taken, for the queues that have a bound of their own. A hurried claim follows
    /// one that came back full: it looks at the lanes known to hold work, and at a few others in turn.
    package mutating func stretches(
        floors: Floors, queues: [Int32], room: [Int32: Int], wanted: Int, allowance: Allowance, hurried: Bool
    ) -> [Stretch] {
        turn += 1
        let known = Set(queues)
        var lanes = Set(floors.liveLanes.filter { known.contains($0.queue) })
        lanes.formUnion(probed(queues, hurried: hurried))
        let start = queues.isEmpty ? 0 : turn % queues.count
        let rank = Dictionary(
            queues.enumerated().map { ($1, ($0 + queues.count - start) % queues.count) },
            uniquingKeysWith: { first, _ in first })
        let fair = turn % Self.fairTurn == 0
        let ordered = lanes.sorted { a, b in
            if a.priority != b.priority { return fair ? a.priority > b.priority : a.priority < b.priority }
            if a.line != b.line { return a.line.rawValue < b.line.rawValue }
            return (rank[a.queue] ?? 0) < (rank[b.queue] ?? 0)
        }
        let lone = ordered.first { $0.line == .lone }
        let suspect = lone == nil ? ordered.first { $0.line == .suspect } : nil
        var stretches: [Stretch] = []
        for lane in ordered {
            var limit = min(wanted, room[lane.queue] ?? wanted)
            switch lane.line {
            case .putBack, .normal: break
            case .suspect: limit = lane == suspect ? min(limit, allowance.suspects) : 0
            case .lone: limit = lane == lone && allowance.lone ? min(limit, 1) : 0
            }
            guard limit > 0 else { continue }
            if let sweep = floors.pendingSweep(of: lane) {
                stretches.append(Stretch(lane: lane, floor: sweep.lower, ceiling: sweep.upper, limit: Int32(limit)))
                if lane.line == .lone || lane.line == .suspect { continue }  // one stretch, or the limit counts twice
            }
            stretches.append(Stretch(lane: lane, floor: floors.floor(of: lane), limit: Int32(limit)))
        }
        return stretches
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
