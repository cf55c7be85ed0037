/// The result of an exploration of all orders of events.
struct Finding {
    var states: Int
    var ends: Int
    /// The shortest trace to a fault, or nil.
    var failure: (what: String, trace: [String])?
}

/// Visits every state that can be reached, breadth first, so that the first failure has the shortest trace.
struct Explorer {
    private struct Step {
        var parent: Int32
        var label: Label
    }

    let model: Model

    func explore() -> Finding {
        var index: [World: Int32] = [model.start: 0]
        var queue = [model.start]
        var steps = [Step(parent: -1, label: Label("start"))]
        /// The states that lead here without a fault; walked backwards from the ends.
        var before: [[Int32]] = [[]]
        var ends: [Int32] = []
        var at = 0
        while at < queue.count {
            guard queue.count < 150_000 else {
                return Finding(
                    states: queue.count, ends: ends.count, failure: ("too many states", trace(to: Int32(at), steps)))
            }
            let world = queue[at]
            if let what = model.fault(in: world) {
                return Finding(states: queue.count, ends: ends.count, failure: (what, trace(to: Int32(at), steps)))
            }
            if model.isEnd(world) { ends.append(Int32(at)) }
            for event in model.events(in: world) {
                let next: Int32
                if let known = index[event.world] {
                    next = known
                } else {
                    next = Int32(queue.count)
                    index[event.world] = next
                    queue.append(event.world)
                    steps.append(Step(parent: Int32(at), label: event.label))
                    before.append([])
                }
                if !event.isFault { before[Int(next)].append(Int32(at)) }
            }
            at += 1
        }
        var saved = [Bool](repeating: false, count: queue.count)
        var stack = ends
        for end in ends { saved[Int(end)] = true }
        while let one = stack.popLast() {
            for earlier in before[Int(one)] where !saved[Int(earlier)] {
                saved[Int(earlier)] = true
                stack.append(earlier)
            }
        }
        var finding = Finding(states: queue.count, ends: ends.count)
        if let stuck = saved.firstIndex(of: false) {
            finding.failure = (
                "from here no end can be reached without a further fault: \(model.describe(queue[stuck]))",
                trace(to: Int32(stuck), steps)
            )
        }
        return finding
    }

    private func trace(to last: Int32, _ steps: [Step]) -> [String] {
        var names: [String] = []
        var at = last
        while at > 0 {
            names.append(steps[Int(at)].label.description)
            at = steps[Int(at)].parent
        }
        return names.reversed()
    }
}
