/// A provider's state in this process, for metrics.
package struct ProviderStanding: Sendable {
    package struct Class: Sendable {
        package var name: String
        /// Only probes are let through.
        package var isOpen: Bool
        package var totals: Circuit.Totals

        package init(name: String, isOpen: Bool, totals: Circuit.Totals) {
            self.name = name
            self.isOpen = isOpen
            self.totals = totals
        }
    }

    package var provider: String
    package var slots: Int
    package var taken: Int
    package var waiting: Int
    package var classes: [Class]

    package init(provider: String, slots: Int, taken: Int, waiting: Int, classes: [Class]) {
        self.provider = provider
        self.slots = slots
        self.taken = taken
        self.waiting = waiting
        self.classes = classes
    }
}

extension Supervisor {
    /// Only probes of the provider are let through, in any class of calls.
    package nonisolated func isOpen(_ provider: String) -> Bool {
        gate(of: provider).withState { state in state.circuits.values.contains(where: \.isOpen) }
    }

    /// Every provider that was called since the process began.
    package nonisolated var standings: [ProviderStanding] {
        allDesks.map { gate in
            let (slots, taken, waiting, circuits) = gate.withState { state in
                (state.bulkhead.slots, state.bulkhead.taken, state.bulkhead.waiting, state.circuits)
            }
            return ProviderStanding(
                provider: gate.name, slots: slots, taken: taken, waiting: waiting,
                classes: circuits.filter { $0.key != "*" }.sorted { $0.key < $1.key }.map { name, circuit in
                    ProviderStanding.Class(name: name, isOpen: circuit.isOpen, totals: circuit.totals)
                })
        }.sorted { $0.provider < $1.provider }
    }
}

extension Circuit {
    /// Calls are not let through, by the fleet's decision or by our own.
    var isOpen: Bool {
        switch mirror.state {
        case .open, .probing, .forcedOpen: return true
        case .ramping, .forcedClosed, .observing: return false
        case .closed:
            switch own.state {
            case .open, .probing: return true
            case .closed, .ramping: return false
            }
        }
    }
}
