/// How fast somebody may call: tokens that come back at a pace, up to a number that may be used at once.
package struct GatewayRate: Sendable, Equatable {
    package var perSecond: Double
    package var burst: Double

    package init(perSecond: Double, burst: Double) {
        self.perSecond = perSecond
        self.burst = burst
    }

    static let unlimited = GatewayRate(perSecond: 1_000_000, burst: 1_000_000)

    /// Seconds in which an empty bucket becomes full.
    var window: Int { max(1, Int((burst / perSecond).rounded(.up))) }
}

/// The tokens that this process has taken from the fleet's buckets and not used yet. Buckets are in the database; a process takes some
/// tokens at a time, so that most requests ask nobody, and never more are used than a bucket gave.
struct RateLeases: Sendable {
    struct Want: Sendable, Equatable {
        var key: String
        /// The name in the headers: subject, address or function.
        var policy: String
        var rate: GatewayRate
        var tokens: Int
    }

    struct Refill: Sendable, Equatable {
        var key: String
        var rate: GatewayRate
        var tokens: Int
    }

    enum Decision: Sendable, Equatable {
        /// With the tokens that are left of each.
        case granted([Int])
        case refused(Want, wait: Duration)
        /// These have to be asked for first.
        case asks([Refill])
    }

    private struct Lease: Sendable {
        /// Below zero: they are owed.
        var tokens = 0
        /// Tokens are given up after this.
        var until = Duration.zero
        /// The bucket is empty until then.
        var emptyUntil = Duration.zero
    }

    private var leases: [String: Lease] = [:]
    private var most = 1024

    /// Tokens that were taken and not used are given up after this: then the fleet's sum holds.
    static let lifetime = Duration.seconds(10)
    private static let longestWait = Duration.seconds(86_400)

    /// Uses the tokens of all, or of none.
    mutating func use(_ wants: [Want], at now: Duration) -> Decision {
        var asks: [Refill] = []
        for want in wants {
            let lease = leases[want.key] ?? Lease()
            let there = lease.until > now ? lease.tokens : min(lease.tokens, 0)
            if there >= want.tokens { continue }
            let missing = want.tokens - there
            if lease.emptyUntil > now {
                let rest = Duration.seconds(Double(missing - 1) / want.rate.perSecond)
                return .refused(want, wait: min(lease.emptyUntil - now + rest, Self.longestWait))
            }
            // A quarter of the bucket at once: then a few processes can share it.
            let chunk = Int(min(max(20, want.rate.perSecond / 10), want.rate.burst / 4))
            asks.append(Refill(key: want.key, rate: want.rate, tokens: max(missing, chunk, 1)))
        }
        guard asks.isEmpty else { return .asks(asks) }
        var left: [Int] = []
        for want in wants {
            leases[want.key]?.tokens -= want.tokens
            left.append(leases[want.key]?.tokens ?? 0)
        }
        return .granted(left)
    }

    /// Notes what a bucket gave.
    /// - Parameter wait: how long until it has a token again, if it gave fewer than it was asked for.
    mutating func add(_ key: String, tokens: Int, wait: Duration, at now: Duration) {
        var lease = leases[key] ?? Lease()
        if lease.until <= now { lease.tokens = min(lease.tokens, 0) }
        lease.tokens += tokens
        lease.until = now + Self.lifetime
        lease.emptyUntil = now + wait
        leases[key] = lease
        if leases.count > most {
            leases = leases.filter { $0.value.until > now || $0.value.emptyUntil > now }
            most = max(1024, leases.count * 2)
        }
    }

    /// Notes that more was used than was asked for; at most a full bucket is owed.
    mutating func owe(_ want: Want, at now: Duration) {
        var lease = leases[want.key] ?? Lease()
        if lease.until <= now { lease.tokens = min(lease.tokens, 0) }
        lease.tokens = max(lease.tokens - want.tokens, -Int(want.rate.burst))
        lease.until = max(lease.until, now + Self.lifetime)
        leases[want.key] = lease
    }

    /// Whether a bucket is known to be empty.
    func wait(for key: String, at now: Duration) -> Duration? {
        guard let lease = leases[key], lease.emptyUntil > now, lease.until <= now || lease.tokens <= 0 else {
            return nil
        }
        return lease.emptyUntil - now
    }

    var count: Int { leases.count }
}
