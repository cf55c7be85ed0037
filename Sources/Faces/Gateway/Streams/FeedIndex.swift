/// Which readers get an entry. No I/O. Finding them costs as much as there are of them, and not as there are readers.
struct FeedIndex: Sendable {
    private enum Part: Sendable, Hashable {
        case all
        case ref(String)
        case lesson(String)
    }

    private struct Key: Sendable, Hashable {
        var owner: FeedOwner
        var part: Part
    }

    private var readers: [Key: [Int]] = [:]

    mutating func add(_ reader: Int, _ filter: FeedFilter) {
        for key in keys(of: filter) { readers[key, default: []].append(reader) }
    }

    mutating func remove(_ reader: Int, _ filter: FeedFilter) {
        for key in keys(of: filter) {
            readers[key]?.removeAll { $0 == reader }
            if readers[key]?.isEmpty == true { readers[key] = nil }
        }
    }

    /// Each once. The filters' topics are not looked at.
    func readers(of entry: FeedEntry) -> [Int] {
        var found: [Int] = []
        for owner in entry.owners {
            found += readers[Key(owner: owner, part: .all)] ?? []
            found += readers[Key(owner: owner, part: .ref(entry.ref))] ?? []
            if let lesson = entry.lesson { found += readers[Key(owner: owner, part: .lesson(lesson))] ?? [] }
        }
        return found
    }

    private func keys(of filter: FeedFilter) -> [Key] {
        let part: Part = filter.ref.map { .ref($0) } ?? filter.lesson.map { .lesson($0) } ?? .all
        return filter.owners.map { Key(owner: $0, part: part) }
    }
}
