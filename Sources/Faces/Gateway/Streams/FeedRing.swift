/// The entries of the last minute, for readers that come from a place not far back. No I/O.
///
/// The database may take entries back, for example when a person leaves a family or is erased. Then the hub begins another ring.
struct FeedRing: Sendable {
    private struct Place: Sendable {
        var entry: FeedEntry
        var came: ContinuousClock.Instant
    }

    static let span = Duration.seconds(60)
    private let most: Int
    private let mostBytes: Int
    private var held: [Place] = []
    /// Those before `head` have been dropped.
    private var head = 0
    /// How many were dropped and removed from the array, so that places stay what they are.
    private var base = 0
    private var bytes = 0
    private var places: [FeedOwner: [Int]] = [:]
    /// The entries of a large thread have the same owners: each such list is held once.
    private var lists: Set<[FeedOwner]> = []
    private static let mostLists = 1000
    /// Everything after this is here.
    private(set) var start: Int64

    init(from start: Int64, most: Int, mostBytes: Int) {
        self.start = start
        self.most = most
        self.mostBytes = mostBytes
    }

    var count: Int { held.count - head }

    mutating func append(_ entry: FeedEntry, at now: ContinuousClock.Instant) {
        guard entry.isRecent else {
            while count > 0 { drop() }
            start = entry.seq
            return
        }
        var entry = entry
        if entry.owners.count > 1 {
            if lists.count >= Self.mostLists { lists = [] }
            entry.owners = lists.insert(entry.owners).memberAfterInsert
        }
        held.append(Place(entry: entry, came: now))
        bytes += entry.piece.frame.count
        for owner in entry.owners { places[owner, default: []].append(base + held.count - 1) }
        while count > most || bytes > mostBytes && count > 1 { drop() }
    }

    /// Drops what has become too old.
    mutating func forget(at now: ContinuousClock.Instant, span: Duration = span) {
        while head < held.count, held[head].came + span <= now { drop() }
    }

    /// nil: it does not go back so far.
    func entries(of filter: FeedFilter, after position: Int64) -> [FeedEntry]? {
        guard position >= start else { return nil }
        let found = filter.owners.flatMap { owner in
            // Most readers are few entries behind.
            (places[owner] ?? []).reversed().lazy.map { held[$0 - base].entry }.prefix { $0.seq > position }
                .filter(filter.takes)
        }
        return found.sorted { $0.seq < $1.seq }
    }

    private mutating func drop() {
        let entry = held[head].entry
        bytes -= entry.piece.frame.count
        start = entry.seq
        for owner in entry.owners {
            places[owner]?.removeFirst()
            if places[owner]?.isEmpty == true { places[owner] = nil }
        }
        head += 1
        guard head > most || head == held.count else { return }
        held.removeFirst(head)
        base += head
        head = 0
    }
}
