package import RoomKit
package import Supervision

/// This process's calls to providers.
package struct ProviderMetrics: Sendable {
    /// Beyond these many providers the rest is `other`: each webhook is a provider of its own.
    package static let most = 100

    private let standings: [ProviderStanding]

    package init(_ standings: [ProviderStanding]) {
        // Those that a setting names come before those that stand for an object.
        let ordered = standings.filter { !$0.provider.contains(":") } + standings.filter { $0.provider.contains(":") }
        var kept = Array(ordered.prefix(Self.most))
        if let others = ProviderStanding(together: "other", Array(ordered.dropFirst(Self.most))) { kept.append(others) }
        self.standings = kept
    }

    package var gauges: [RoomGauge] {
        guard !standings.isEmpty else { return [] }
        return [
            one("provider_calls_running", "Calls under way.", \.taken),
            one("provider_calls_waiting", "Calls that wait in line.", \.waiting),
            each(
                "provider_open", "gauge", "1 while calls are not let through, but for probes.",
                [("", { $0.isOpen ? 1 : 0 })]),
            each(
                "provider_calls_total", "counter", "Calls, by what became of them.",
                [("ok", { $0.totals.ok }), ("failed", { $0.totals.failed }), ("throttled", { $0.totals.throttled })]),
            each(
                "provider_outcomes_unknown_total", "counter", "Calls whose outcome nobody knows.",
                [("", { $0.totals.unknown })]),
            each(
                "provider_calls_refused_total", "counter", "Calls that were not let through.",
                [("", { $0.totals.refused })]),
            each(
                "provider_calls_would_refuse_total", "counter",
                "Calls let through only because an operator observes.", [("", { $0.totals.wouldRefuse })]),
        ]
    }

    private func one(_ name: String, _ help: String, _ value: (ProviderStanding) -> Int) -> RoomGauge {
        RoomGauge(
            name: name, help: help,
            values: standings.map { (RoomGauge.labels([("provider", $0.provider)]), Double(value($0))) })
    }

    private func each(
        _ name: String, _ kind: String, _ help: String,
        _ parts: [(outcome: String, value: (ProviderStanding.Class) -> Int)]
    ) -> RoomGauge {
        RoomGauge(
            name: name, kind: kind, help: help,
            values: standings.flatMap { standing in
                standing.classes.flatMap { one in
                    parts.map { part in
                        let place = [("provider", standing.provider), ("class", one.name)]
                        let labels = place + (part.outcome.isEmpty ? [] : [("outcome", part.outcome)])
                        return (labels: RoomGauge.labels(labels), value: Double(part.value(one)))
                    }
                }
            })
    }
}

extension ProviderStanding {
    /// Several as one; nil where there are none.
    fileprivate init?(together name: String, _ all: [ProviderStanding]) {
        guard !all.isEmpty else { return nil }
        var classes: [String: Class] = [:]
        for one in all.flatMap(\.classes) {
            guard let sum = classes[one.name] else {
                classes[one.name] = one
                continue
            }
            classes[one.name] = Class(name: one.name, isOpen: sum.isOpen || one.isOpen, totals: sum.totals + one.totals)
        }
        self.init(
            provider: name, slots: all.map(\.slots).reduce(0, +), taken: all.map(\.taken).reduce(0, +),
            waiting: all.map(\.waiting).reduce(0, +), classes: classes.values.sorted { $0.name < $1.name })
    }
}
