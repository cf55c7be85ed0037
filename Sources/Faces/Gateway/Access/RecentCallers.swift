import Digests
import FoundationEssentials

/// Callers whose tokens were checked before, by the tokens' digests. Half of them are dropped at once when it is full: those that have
/// not called for longest.
struct RecentCallers: Sendable {
    private let half: Int
    private var young: [[UInt8]: GatewayCaller] = [:]
    private var old: [[UInt8]: GatewayCaller] = [:]
    private var generation = 0

    /// Claims that take more are checked each time, so that the memory is bounded.
    private static let mostBytes = 4096

    init(capacity: Int) { half = max(1, capacity / 2) }

    static func digest(_ token: String) -> [UInt8] { SHA256Digest.of(Array(token.utf8)) }

    var count: Int { young.count + old.count }

    /// - Parameter generation: of the keys. Another one than before means that all that is kept may be wrong now.
    mutating func caller(of digest: [UInt8], at now: Date, leeway: Double = 0, generation: Int = 0) -> GatewayCaller? {
        guard generation == self.generation else { return nil }
        if let found = young[digest] {
            if found.expires.addingTimeInterval(leeway) > now { return found }
            young[digest] = nil
            return nil
        }
        guard let found = old.removeValue(forKey: digest), found.expires.addingTimeInterval(leeway) > now else {
            return nil
        }
        put(found, digest)
        return found
    }

    mutating func keep(_ caller: GatewayCaller, of digest: [UInt8], generation: Int = 0) {
        if generation != self.generation {
            (young, old) = ([:], [:])
            self.generation = generation
        }
        guard caller.claims.count <= Self.mostBytes else { return }
        put(caller, digest)
    }

    private mutating func put(_ caller: GatewayCaller, _ digest: [UInt8]) {
        if young.count >= half { (old, young) = (young, [:]) }
        young[digest] = caller
    }
}
