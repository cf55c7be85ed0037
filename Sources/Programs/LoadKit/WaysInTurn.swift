package import CommandKit

/// Ways to do the same that take turns, so that everything else on the machine affects all of them alike.
package struct WaysInTurn<Outcome> {
    package let invocation: Invocation
    package let rounds: Int
    /// One line of an outcome for a person.
    package let spell: (Outcome) -> String

    /// What each way came to, by round. Each goes first as often as the others: what one leaves to be done slows the next.
    package func take(
        _ ways: [(name: String, turn: (_ label: String) async throws -> Outcome)]
    ) async throws -> [[Outcome]] {
        var outcomes = ways.map { _ in [Outcome]() }
        for round in 1...rounds {
            for way in ways.indices.map({ ($0 + round) % ways.count }) {
                let label = "round \(round) of \(rounds), \(ways[way].name):"
                let outcome = try await ways[way].turn(label)
                outcomes[way].append(outcome)
                invocation.console.note("\(label) \(spell(outcome))")
            }
        }
        return outcomes
    }
}

extension WaysInTurn where Outcome == Double {
    /// Of rates a second.
    package init(_ invocation: Invocation) {
        self.init(invocation: invocation, rounds: invocation.count("rounds")) { "\(Humane.count(Int($0)))/s" }
    }
}

extension WaysInTurn where Outcome == Costs {
    package init(_ invocation: Invocation) {
        self.init(invocation: invocation, rounds: invocation.count("rounds")) { $0.summary }
    }
}
