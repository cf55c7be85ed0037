/// Which callers wait for which work: at most one flight per key can be joined.
package struct Flights<Key: Hashable & Sendable>: Sendable {
    package enum Joined: Sendable, Equatable {
        /// There was no flight for the key: start the work.
        case started(Int64)
        case joined(Int64)

        package var flight: Int64 {
            switch self {
            case .started(let flight), .joined(let flight): flight
            }
        }
    }

    private struct Flight: Sendable {
        var key: Key
        var waiting: Set<Int64>
    }

    /// Those that can be joined.
    private var open: [Key: Int64] = [:]
    private var flights: [Int64: Flight] = [:]
    private var last: Int64 = 0

    package init() {}

    package var count: Int { flights.count }

    package func isUp(_ flight: Int64) -> Bool { flights[flight] != nil }

    package mutating func join(_ key: Key, _ caller: Int64) -> Joined {
        if let flight = open[key] {
            flights[flight]?.waiting.insert(caller)
            return .joined(flight)
        }
        last += 1
        open[key] = last
        flights[last] = Flight(key: key, waiting: [caller])
        return .started(last)
    }

    /// nil: the caller was not waiting there any more. True: it was the last one, so cancel the flight.
    package mutating func leave(_ flight: Int64, _ caller: Int64) -> Bool? {
        guard flights[flight]?.waiting.remove(caller) != nil else { return nil }
        guard let left = flights[flight], left.waiting.isEmpty else { return false }
        // This flight is ending, so a new caller starts another one.
        if open[left.key] == flight { open[left.key] = nil }
        flights[flight] = nil
        return true
    }

    /// The callers to resume.
    package mutating func land(_ flight: Int64) -> Set<Int64> {
        guard let landed = flights.removeValue(forKey: flight) else { return [] }
        if open[landed.key] == flight { open[landed.key] = nil }
        return landed.waiting
    }
}
