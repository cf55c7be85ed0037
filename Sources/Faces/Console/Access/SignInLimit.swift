/// Slows down those who guess: ten wrong tries a minute from an address, a hundred from all.
actor SignInLimit {
    private var tries: [String: [ContinuousClock.Instant]] = [:]
    private static let most = 10
    private static let mostOfAll = 100

    /// False: too many wrong ones lately.
    func allows(_ peer: String, at now: ContinuousClock.Instant = .now) -> Bool {
        forget(before: now - .seconds(60))
        return (tries[peer]?.count ?? 0) < Self.most && tries.values.reduce(0) { $0 + $1.count } < Self.mostOfAll
    }

    func wasWrong(_ peer: String, at now: ContinuousClock.Instant = .now) {
        tries[peer, default: []].append(now)
    }

    private func forget(before limit: ContinuousClock.Instant) {
        tries = tries.compactMapValues { times in
            let kept = times.filter { $0 >= limit }
            return kept.isEmpty ? nil : kept
        }
    }
}
