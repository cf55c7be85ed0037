/// Who is told next while nobody answers. Each round goes through all steps in order. After the last round everybody is told, once an
/// hour. The database has the same rule, and its answer counts.
package struct EscalationMachine: Sendable, Equatable {
    package enum Call: Sendable, Equatable {
        case step(Int, round: Int)
        case everybody
        /// Of a drill: it went through all steps, and nobody answered.
        case over
    }

    package static let rounds = 3

    private let steps: [Int]
    private let isDrill: Bool
    private var step = 0
    private var round = 1
    private var isUnreachable = false

    package init(steps: some Collection<Int>, isDrill: Bool = false) {
        self.steps = Set(steps).sorted()
        self.isDrill = isDrill
    }

    package mutating func next() -> Call {
        if !isUnreachable, let next = steps.first(where: { $0 > step }) {
            step = next
            return .step(next, round: round)
        }
        if !isUnreachable, let first = steps.first, round < (isDrill ? 1 : Self.rounds) {
            round += 1
            step = first
            return .step(first, round: round)
        }
        if isDrill { return .over }
        isUnreachable = true
        return .everybody
    }
}
