/// How soon a use of a connection must have it, where a process may open only a few; the most urgent first.
package enum Urgency: Int, Sendable, CaseIterable {
    /// Signs of life, ends of jobs, alarms.
    case urgent
    /// Claims, and what makes jobs due.
    case claims
    /// What handlers and rooms ask.
    case work
    /// Looks, reports, feeds and figures.
    case late
}

/// Who may use one of a few connections next. Pure.
///
/// Each urgency leaves one connection to those above it as long as there are enough, so that nothing that is less urgent, and may take long,
/// has all of them. Among those that wait, the more urgent goes first, and in the order in which they came; but one that was passed over
/// some times goes before all others.
struct BudgetTurns: Sendable {
    private struct Waiter: Sendable {
        let id: UInt64
        var passedOver = 0
    }

    let most: Int
    /// How many of each urgency go on.
    private var held = [Int](repeating: 0, count: Urgency.allCases.count)
    private var lines = [[Waiter]](repeating: [], count: Urgency.allCases.count)

    /// So often one that waits is passed over at most.
    static let patience = 8

    init(most: Int) {
        self.most = most
    }

    var inUse: Int { held.reduce(0, +) }
    var waiting: Int { lines.reduce(0) { $0 + $1.count } }

    /// The most connections that this urgency and all below it have together.
    func cap(_ urgency: Urgency) -> Int { max(1, most - urgency.rawValue) }

    /// True: it goes on at once. False: it waits, until `give` names it.
    mutating func ask(_ id: UInt64, _ urgency: Urgency) -> Bool {
        guard fits(urgency) else {
            lines[urgency.rawValue].append(Waiter(id: id))
            return false
        }
        held[urgency.rawValue] += 1
        return true
    }

    /// One has ended. The answer is who goes on in its place.
    mutating func give(_ urgency: Urgency) -> UInt64? {
        held[urgency.rawValue] -= 1
        guard let next = next() else { return nil }
        for lower in Urgency.allCases where lower.rawValue > next.rawValue && !lines[lower.rawValue].isEmpty {
            lines[lower.rawValue][0].passedOver += 1
        }
        held[next.rawValue] += 1
        return lines[next.rawValue].removeFirst().id
    }

    /// False: it does not wait any more.
    mutating func leave(_ id: UInt64) -> Bool {
        for urgency in lines.indices {
            guard let place = lines[urgency].firstIndex(where: { $0.id == id }) else { continue }
            lines[urgency].remove(at: place)
            return true
        }
        return false
    }

    private func next() -> Urgency? {
        let able = Urgency.allCases.filter { !lines[$0.rawValue].isEmpty && fits($0) }
        return able.last { lines[$0.rawValue][0].passedOver >= Self.patience } ?? able.first
    }

    private func fits(_ urgency: Urgency) -> Bool {
        Urgency.allCases.allSatisfy { one in
            one.rawValue > urgency.rawValue || held[one.rawValue...].reduce(0, +) < cap(one)
        }
    }
}
