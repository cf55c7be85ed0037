package import Supervision

/// Which providers a message may go by, in order. Pure.
package struct Routes: Sendable {
    /// The provider that an operator chose, or else the one that follows from the configuration.
    package var chosen: String
    /// In order; empty when there is no second provider.
    package var fallbacks: [String]
    /// The chosen provider sends this share of the messages, and all messages to listed addresses; the fallbacks send the others.
    package var rollout = Flag(name: "mail.rollout", percent: 100)
    /// The percentage that goes through the fallback although nothing is wrong, so that the fallback is known to work. Only between equals.
    package var exercise = Flag(name: "mail.exercise", percent: 0)

    package static let equals: Set<String> = ["resend", "smtp"]

    package init(chosen: String, fallbacks: [String] = []) {
        self.chosen = chosen
        self.fallbacks = fallbacks.filter { $0 != chosen }
    }

    /// The provider for messages that none of ``order(id:address:)`` can send: the chosen one, although the recipient is outside its share.
    package func spare(address: String) -> String? {
        rollout.isOn(address) || fallbacks.isEmpty ? nil : chosen
    }

    /// The routes with the database flag's roll-out; with nil the configuration counts. Addresses listed in the configuration stay listed.
    package func rolledOut(by flag: Flag?) -> Routes {
        guard let flag else { return self }
        var routes = self
        routes.rollout.percent = flag.percent
        routes.rollout.always.formUnion(flag.always.map { $0.lowercased() })
        return routes
    }

    /// - Parameters:
    ///   - id: decides whether the message is in the share that exercises the fallback.
    ///   - address: the recipient's. It decides about the roll-out, and always in the same way.
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
