/// Leads a run along the record of its job: a step is answered in the order of the record, and held while it is asked for before its turn. Steps that
/// a handler asks for at the same time are so answered in the one order that is known to have happened. Pure; `RehearsedRun` puts a lock around it.
package struct RehearsalScript: Sendable {
    /// What becomes of a call that asks for a step.
    package enum Turn: Sendable, Equatable {
        /// It gets the value on record.
        case answer
        /// It waits for its turn.
        case hold
        /// It has none on record: it is told to end.
        case stop
    }

    /// The recorded steps, in their order.
    private let recorded: [String]
    private let places: [String: Int]
    /// The step at which the job waits now.
    private let awaited: String?
    /// How many of the record were asked for.
    package private(set) var answered = 0
    /// Asked for before their turn, in the order in which they were asked for.
    package private(set) var held: [String] = []
    /// What was last asked for where another was on record, when nothing moved any more.
    package private(set) var instead: [String] = []
    /// Asked for when all of the record was answered, in order.
    package private(set) var then: [String] = []
    /// The run does not follow the record: everything is told to end.
    private var isOver = false

    package init(recorded: [String], awaited: String?) {
        self.recorded = recorded
        self.awaited = awaited
        places = Dictionary(recorded.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    }

    package mutating func ask(_ name: String) -> Turn {
        let turn = judge(name)
        if turn == .hold { held.append(name) }
        return turn
    }

    /// Those held whose turn has come, each with what becomes of it.
    package mutating func released() -> [(name: String, turn: Turn)] {
        var released: [(name: String, turn: Turn)] = []
        var moves = true
        while moves {
            moves = false
            for (index, name) in held.enumerated() {
                let turn = judge(name)
                guard turn != .hold else { continue }
                held.remove(at: index)
                released.append((name, turn))
                moves = true
                break
            }
        }
        return released
    }

    /// Nothing has moved for a while. Steps that are not on record fail, as they may have failed before: a handler that can bear that goes on to what
    /// is on record. If only recorded ones are held, the run asks for them in another order.
    package mutating func settle() -> [(name: String, turn: Turn)] {
        guard !held.isEmpty else { return [] }
        let strange = held.filter { places[$0] == nil }
        if answered == recorded.count {
            then += strange
            isOver = true
        } else {
            instead = strange.isEmpty ? held : strange
            isOver = strange.isEmpty
        }
        let stopped = isOver ? held : strange
        held.removeAll { stopped.contains($0) }
        return stopped.map { ($0, .stop) }
    }

    private mutating func judge(_ name: String) -> Turn {
        if let place = places[name] {
            if place < answered { return .answer }
            if isOver { return .stop }
            guard place == answered else { return .hold }
            answered += 1
            return .answer
        }
        if isOver { return .stop }
        guard answered == recorded.count else { return .hold }
        guard awaited == nil || awaited == name else { return .hold }
        then.append(name)
        isOver = true
        return .stop
    }
}
