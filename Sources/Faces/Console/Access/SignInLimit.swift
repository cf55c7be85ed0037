import Threads

/// Slows down those who guess: ten wrong tries a minute from an address, and ten of a name from wherever they come. A name's tries hold nobody
/// back at an address where that user has signed in before, so nobody locks a user out of the own place. And it bounds what hashing takes:
/// two passwords at once, each of which needs 32 MiB.
actor SignInLimit {
    private var tries: [Try: [ContinuousClock.Instant]] = [:]
    private var places: Set<Place> = []
    private let turns = Turns(atOnce: 2, waiting: 100, patience: .seconds(30))
    private static let most = 10
    private static let mostPlaces = 10_000

    private enum Try: Hashable {
        case address(String)
        case name(String)
    }

    private struct Place: Hashable {
        let name: String
        let address: String
    }

    /// Counts a try before it is known to be wrong, so that many at once count, too. False: there were too many lately.
    /// - Parameter name: of the user; nil for the token, which all share.
    func begins(_ name: String?, from address: String, at now: ContinuousClock.Instant = .now) -> Bool {
        forget(before: now - .seconds(60))
        guard count(.address(address)) < Self.most else { return false }
        if let name, !places.contains(Place(name: name, address: address)), count(.name(name)) >= Self.most {
            return false
        }
        for key in keys(name, address) { tries[key, default: []].append(now) }
        return true
    }

    /// It was right: it does not count.
    func succeeded(_ name: String?, from address: String) {
        for key in keys(name, address) { _ = tries[key]?.popLast() }
        guard let name else { return }
        if places.count >= Self.mostPlaces { places = [] }
        places.insert(Place(name: name, address: address))
    }

    /// Waits for its turn to hash. Throws `Turns.Refusal` when there are too many.
    nonisolated func turn<Value: Sendable>(_ body: @Sendable () async -> Value) async throws -> Value {
        try await turns.withTurn(of: "", body)
    }

    private func count(_ key: Try) -> Int { tries[key]?.count ?? 0 }

    private func keys(_ name: String?, _ address: String) -> [Try] {
        [.address(address)] + (name.map { [.name($0)] } ?? [])
    }

    private func forget(before limit: ContinuousClock.Instant) {
        tries = tries.compactMapValues { times in
            let kept = times.filter { $0 >= limit }
            return kept.isEmpty ? nil : kept
        }
    }
}
