/// Slows down those who guess: ten tries a minute from an address and a hundred from all, but those that succeed. And it bounds what
/// hashing takes: two passwords at once, each of which needs 32 MiB.
actor SignInLimit {
    private var tries: [String: [ContinuousClock.Instant]] = [:]
    private var hashing = 0
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private static let most = 10
    private static let mostOfAll = 100
    private static let mostAtOnce = 2

    /// Counts a try before it is known to be wrong, so that many at once count, too. False: there were too many lately.
    func begins(_ peer: String, at now: ContinuousClock.Instant = .now) -> Bool {
        forget(before: now - .seconds(60))
        guard (tries[peer]?.count ?? 0) < Self.most, tries.values.reduce(0, { $0 + $1.count }) < Self.mostOfAll else {
            return false
        }
        tries[peer, default: []].append(now)
        return true
    }

    /// It was right: it does not count.
    func succeeded(_ peer: String) {
        tries[peer]?.removeLast()
    }

    /// Waits for its turn; at most a hundred tries can wait.
    func turn<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        if hashing < Self.mostAtOnce {
            hashing += 1
        } else {
            // The one that ends gives its place to the next.
            await withCheckedContinuation { waiting.append($0) }
        }
        let value = await body()
        if waiting.isEmpty { hashing -= 1 } else { waiting.removeFirst().resume() }
        return value
    }

    private func forget(before limit: ContinuousClock.Instant) {
        tries = tries.compactMapValues { times in
            let kept = times.filter { $0 >= limit }
            return kept.isEmpty ? nil : kept
        }
    }
}
