import FoundationEssentials

/// Ids of keys that tokens have named and no key has. Pure. Half of them are dropped at once when it is full, since anybody can make up ids.
struct StrangeKeys: Sendable {
    private struct Stranger: Sendable {
        let firstSeen: Date
        /// Digests, as many as matter.
        var tokens: Set<[UInt8]> = []
        /// A reading that began after it was seen did not have it, or it was withdrawn.
        var isAbsent = false
    }

    /// From this number of tokens on, an id is no accident.
    static let many = 5
    private static let half = 256
    private static let longest = 256
    private var young: [String: Stranger] = [:]
    private var old: [String: Stranger] = [:]

    private subscript(id: String) -> Stranger? { young[id] ?? old[id] }

    mutating func note(_ id: String, in token: [UInt8], at now: Date) {
        guard id.utf8.count <= Self.longest else { return }
        var stranger = self[id] ?? Stranger(firstSeen: now)
        if stranger.tokens.count < Self.many { stranger.tokens.insert(token) }
        put(stranger, id)
    }

    func isNamedByMany(_ id: String) -> Bool {
        (self[id]?.tokens.count ?? 0) >= Self.many && self[id]?.isAbsent == false
    }

    /// Whether a reading may still find it.
    func mayExist(_ id: String) -> Bool { self[id].map { !$0.isAbsent } ?? false }

    /// The keys were read, from this moment on.
    mutating func settle(readingFrom began: Date, withdrawn: Set<String>) {
        for (id, stranger) in young where stranger.firstSeen <= began { young[id]?.isAbsent = true }
        for (id, stranger) in old where stranger.firstSeen <= began { old[id]?.isAbsent = true }
        for id in withdrawn {
            var stranger = Stranger(firstSeen: began)
            stranger.isAbsent = true
            put(stranger, id)
        }
    }

    private mutating func put(_ stranger: Stranger, _ id: String) {
        old[id] = nil
        if young[id] == nil, young.count >= Self.half { (old, young) = (young, [:]) }
        young[id] = stranger
    }
}
