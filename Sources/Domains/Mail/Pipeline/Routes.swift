package import Supervision

/// Which providers a message may go by, in order. Pure.
package struct Routes: Sendable {
    /// What somebody chose, or what the configuration amounts to.
    package var chosen: String
    /// In order; empty when there is to be no second provider.
    package var fallbacks: [String]
    /// A part of the messages, and those for people of the house, go by the chosen one; all others by the fallbacks alone.
    package var rollout = Flag(name: "mail.rollout", percent: 100)
    /// So many per cent go by the fallback although nothing is wrong, so that it is known to work. Only between equals.
    package var exercise = Flag(name: "mail.exercise", percent: 0)

    package static let equals: Set<String> = ["resend", "smtp"]

    package init(chosen: String, fallbacks: [String] = []) {
        self.chosen = chosen
        self.fallbacks = fallbacks.filter { $0 != chosen }
    }

    /// Who sends what none of ``order(id:address:)`` can carry at all: the chosen one, although the recipient is outside its share.
    package func spare(address: String) -> String? {
        rollout.isOn(address) || fallbacks.isEmpty ? nil : chosen
    }

    /// As the database's flag says; nil: there is none, and the configuration counts. People of the house keep their place.
    package func rolledOut(by flag: Flag?) -> Routes {
        guard let flag else { return self }
        var routes = self
        routes.rollout.percent = flag.percent
        routes.rollout.always.formUnion(flag.always.map { $0.lowercased() })
        return routes
    }

    /// - Parameters:
    ///   - id: what decides about the share that exercises the fallback.
    ///   - address: of whoever gets it: decides about the roll-out, and stays with it.
    package func order(id: String, address: String) -> [String] {
        guard rollout.isOn(address) || fallbacks.isEmpty else { return fallbacks }
        if let first = fallbacks.first, Self.equals.contains(chosen), Self.equals.contains(first),
            exercise.percent > 0, exercise.isOn(id)
        {
            return [first, chosen] + fallbacks.dropFirst()
        }
        return [chosen] + fallbacks
    }
}
