/// The last entries, for readers that come from a place not far back. No I/O.
struct FeedRing: Sendable {
    private let most: Int
    private let mostBytes: Int
    private var entries: [FeedEntry] = []
    /// Those before `head` have been dropped.
    private var head = 0
    /// How many were dropped and removed from the array, so that places stay what they are.
    private var base = 0
    private var bytes = 0
    private var places: [FeedOwner: [Int]] = [:]
    /// Everything after this is here.
    private(set) var start: Int64

    init(from start: Int64, most: Int, mostBytes: Int) {
        self.start = start
        self.most = most
        self.mostBytes = mostBytes
    }

    var count: Int { entries.count - head }

    mutating func append(_ entry: FeedEntry) {
        entries.append(entry)
        bytes += entry.piece.frame.count
        if let owner = entry.owner { places[owner, default: []].append(base + entries.count - 1) }
        while count > most || bytes > mostBytes && count > 1 { drop() }
        if head > most {
            entries.removeFirst(head)
            base += head
            head = 0
        }
    }

    /// nil: it does not go back so far.
    func entries(of filter: FeedFilter, after position: Int64) -> [FeedEntry]? {
        guard position >= start else { return nil }
        let found = filter.owners.flatMap { owner in
            // Most readers are few entries behind.
            (places[owner] ?? []).reversed().lazy.map { entries[$0 - base] }.prefix { $0.seq > position }
                .filter(filter.takes)
        }
        return found.sorted { $0.seq < $1.seq }
    }

    private mutating func drop() {
        let entry = entries[head]
        bytes -= entry.piece.frame.count
        start = entry.seq
        if let owner = entry.owner {
            places[owner]?.removeFirst()
            if places[owner]?.isEmpty == true { places[owner] = nil }
        }
        head += 1
    }
}
