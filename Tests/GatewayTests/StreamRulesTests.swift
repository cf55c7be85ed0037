import TestSupport
import Testing

@testable import Gateway

@Suite struct StreamRulesTests {
    @Test(arguments: 0..<20) func `the last entries are what a list of all of them would give`(_ seed: Int) {
        var random = SeededRandom(seed)
        var all: [FeedEntry] = []
        let most = 1 + random.below(40)
        var ring = FeedRing(from: 0, most: most, mostBytes: 1 << 20)
        let start = ContinuousClock.now
        for number in 1...400 {
            let entry = Self.entry(seq: number * 2, &random)
            all.append(entry)
            let now = start + .seconds(number)
            ring.append(entry, at: now)
            ring.forget(at: now)
            #expect(ring.count <= min(most, 61))
            let filter = Self.filter(&random)
            let position = Int64(random.below(number * 2 + 3))
            let found = ring.entries(of: filter, after: position)
            if position < ring.start {
                #expect(found == nil)
            } else {
                let wanted = all.filter { entry in
                    entry.seq > position && filter.owners.contains { entry.owners.contains($0) } && filter.takes(entry)
                }
                #expect(found?.map(\.seq) == wanted.map(\.seq))
            }
        }
        #expect(ring.start > 0)
    }

    @Test(arguments: 0..<10) func `the index finds exactly the readers that a look at all of them finds`(_ seed: Int) {
        var random = SeededRandom(seed)
        var index = FeedIndex()
        var readers: [Int: FeedFilter] = [:]
        for number in 1...500 {
            if random.chance(0.6) {
                readers[number] = Self.filter(&random)
                index.add(number, readers[number] ?? Self.filter(&random))
            } else if let gone = readers.keys.sorted().randomElement(using: &random),
                let filter = readers.removeValue(forKey: gone)
            {
                index.remove(gone, filter)
            }
            let entry = Self.entry(seq: number, &random)
            let wanted = readers.filter { _, filter in
                filter.owners.contains { entry.owners.contains($0) } && filter.takes(entry)
            }
            let found = index.readers(of: entry)
            #expect(Set(found).count == found.count)
            #expect(found.filter { readers[$0]?.takes(entry) == true }.sorted() == wanted.keys.sorted())
        }
    }

    private static func entry(seq: Int, _ random: inout SeededRandom) -> FeedEntry {
        let names = ["a", "b", "c"].shuffled(using: &random)
        let owners =
            random.chance(0.7)
            ? names.prefix(1 + random.below(3)).map { FeedOwner(kind: .person, name: $0) }
            : [FeedOwner(kind: .tenant, name: names[0])]
        return FeedEntry(
            seq: Int64(seq), at: "now", topic: ["documents", "moods"][random.below(2)],
            owners: random.chance(0.9) ? owners : [],
            tenant: random.chance(0.2) ? "a" : nil, lesson: random.chance(0.5) ? ["l1", "l2"][random.below(2)] : nil,
            ref: ["r1", "r2"][random.below(2)], change: "changed", data: "{}", isRecent: random.chance(0.98))
    }

    private static func filter(_ random: inout SeededRandom) -> FeedFilter {
        FeedFilter(
            person: ["a", "b", "c"][random.below(3)], tenant: random.chance(0.7) ? ["a", "b"][random.below(2)] : nil,
            topics: random.chance(0.5) ? nil : [["documents", "moods"][random.below(2)]],
            ref: random.chance(0.2) ? "r1" : nil, lesson: random.chance(0.2) ? "l1" : nil)
    }
}
