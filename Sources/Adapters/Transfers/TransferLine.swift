/// Transfers that wait for their turn. They wait here and not in libcurl, so that their deadline is ours to keep.
struct TransferLine {
    typealias Entry = (transfer: Transfer, delivery: TransferReceiver)

    private var entries: [Entry?] = []
    private var head = 0

    mutating func add(_ transfer: Transfer, _ delivery: TransferReceiver) {
        entries.append((transfer, delivery))
    }

    mutating func next() -> Entry? {
        while head < entries.count {
            defer {
                entries[head] = nil
                head += 1
            }
            if let entry = entries[head] { return entry }
        }
        entries.removeAll(keepingCapacity: true)
        head = 0
        return nil
    }

    mutating func remove(_ transfer: Transfer) -> TransferReceiver? {
        guard let index = entries[head...].firstIndex(where: { $0?.transfer === transfer }) else { return nil }
        defer { entries[index] = nil }
        return entries[index]?.delivery
    }

    mutating func removeAll() -> [Entry] {
        defer {
            entries = []
            head = 0
        }
        return entries[head...].compactMap { $0 }
    }

    mutating func expired(at now: ContinuousClock.Instant) -> [Entry] {
        guard let nextDeadline, nextDeadline <= now else { return [] }
        var found: [Entry] = []
        for index in head..<entries.count {
            if let entry = entries[index], entry.transfer.deadline <= now {
                found.append(entry)
                entries[index] = nil
            }
        }
        return found
    }

    var nextDeadline: ContinuousClock.Instant? { entries[head...].lazy.compactMap { $0?.transfer.deadline }.min() }
}
