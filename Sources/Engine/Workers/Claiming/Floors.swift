package import MillraceQueues

/// Where each lane is claimed from, so that no claim walks over what was consumed before. Pure.
///
/// A claim raises its lane's floor to the last place it took. Rows below it can still appear: their writer drew a number early
/// and committed late. So every sample of the horizon (what the sequence has given out, who may still commit) orders each lane
/// swept once more over the range that writers which have ended since the last sample could have filled.
package struct Floors: Sendable, Hashable {
    struct Entry: Sendable, Hashable {
        var floor: Int64 = 0
        /// Above `lower`, up to `upper`: to be looked at once more.
        var sweep: (lower: Int64, upper: Int64)?
        /// A recent look found something here, or somebody said there is.
        var live = false
        var misses = 0

        static func == (a: Entry, b: Entry) -> Bool {
            a.floor == b.floor && a.live == b.live && a.sweep?.lower == b.sweep?.lower
                && a.sweep?.upper == b.sweep?.upper
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(floor)
            hasher.combine(live)
            hasher.combine(sweep?.lower)
            hasher.combine(sweep?.upper)
        }
    }

    private(set) var entries: [Lane: Entry] = [:]
    /// Writers in flight, each with the last number given out before it was first seen.
    private var writers: [UInt64: Int64] = [:]
    private var sampled: Int64 = 0
    /// A claim is under way: since it was planned these lanes got a sweep that it does not know of, and samples reached down to
    /// `missed` without seeing the floors it will raise.
    private var underWay = false
    private var renewed: Set<Lane> = []
    private var missed: Int64?

    /// After this number of looks without a job, not every claim looks at the lane any more.
    static let patience = 8

    package init() {}

    package var liveLanes: [Lane] {
        entries.compactMap { lane, entry in entry.live || entry.sweep != nil ? lane : nil }
    }

    func isLive(_ lane: Lane) -> Bool {
        entries[lane].map { $0.live || $0.sweep != nil } ?? false
    }

    package func floor(of lane: Lane) -> Int64 {
        entries[lane]?.floor ?? 0
    }

    package func pendingSweep(of lane: Lane) -> (lower: Int64, upper: Int64)? {
        entries[lane]?.sweep
    }

    /// Somebody says that there is work in this lane.
    package mutating func hint(_ lane: Lane) {
        entries[lane, default: Entry()].live = true
        entries[lane]?.misses = 0
    }

    /// After a reconnect nothing is certain: look at everything again.
    package mutating func reset() {
        entries = entries.mapValues { entry in Entry(floor: 0, sweep: nil, live: true) }
        writers = [:]
        sampled = 0
    }

    /// A claim begins; `claimed` ends it, and what happens in between is not lost on it.
    package mutating func planned() {
        underWay = true
        renewed = []
        missed = nil
    }

    /// Two ask for samples, each on a connection of its own. One that was overtaken would take a writer for ended that began after it.
    package mutating func sample(_ horizon: Horizon) {
        guard horizon.seq >= sampled else { return }
        var lower = sampled
        for (writer, low) in writers where !horizon.writers.contains(writer) {
            lower = min(lower, low)
            writers[writer] = nil
        }
        for writer in horizon.writers where writers[writer] == nil {
            writers[writer] = sampled
        }
        if underWay { missed = min(missed ?? lower, lower) }
        for (lane, entry) in entries where entry.floor > lower {
            add(sweep: (lower, min(entry.floor, horizon.seq)), to: lane)
        }
        sampled = max(sampled, horizon.seq)
    }

    /// The backstop's finding: this lane holds work between these places. What lies below the floor is to be swept.
    package mutating func found(_ lane: Lane, first: Int64, last: Int64) {
        hint(lane)
        let floor = floor(of: lane)
        if first <= floor {
            add(sweep: (first - 1, min(last, floor)), to: lane)
        }
    }

    private mutating func add(sweep: (lower: Int64, upper: Int64), to lane: Lane) {
        guard sweep.upper > sweep.lower else { return }
        renewed.insert(lane)
        let old = entries[lane]?.sweep
        entries[lane]?.sweep = old.map { (min($0.lower, sweep.lower), max($0.upper, sweep.upper)) } ?? sweep
    }

    /// A claim of `wanted` jobs over these ranges, in this order, has emptied these places. Of queues that a limit held back it
    /// may have left some that it saw.
    package mutating func claimed(
        _ emptied: [QueuePosition], from ranges: [ClaimRange], wanted: Int, heldBack: Set<Int32> = []
    ) {
        var highest = [Int64?](repeating: nil, count: ranges.count)
        var counts = [Int](repeating: 0, count: ranges.count)
        var places: [Lane: [Int]] = [:]
        for (index, range) in ranges.enumerated() {
            places[range.lane, default: []].append(index)
        }
        for place in emptied {
            for index in places[place.lane] ?? []
            where place.seq > ranges[index].floor && place.seq <= ranges[index].ceiling {
                highest[index] = max(highest[index] ?? place.seq, place.seq)
                counts[index] += 1
            }
        }
        // A claim that came back full visited nothing behind the last range that gave something, and that one only in part.
        let full = emptied.count >= wanted
        let lastGiver = highest.lastIndex { $0 != nil } ?? 0
        for (index, range) in ranges.enumerated() where !full || index <= lastGiver {
            let held = heldBack.contains(range.lane.queue)
            let cut = counts[index] >= range.limit || (full && index == lastGiver) || held
            settle(range, highest: highest[index], cut: cut, held: held)
            if let missed, range.ceiling == .max {
                // Its writers ended after the claim had looked and before the sample: no later sample would go back to them.
                add(sweep: (max(missed, range.floor), min(floor(of: range.lane), sampled)), to: range.lane)
            }
        }
        underWay = false
        missed = nil
    }

    private mutating func settle(_ range: ClaimRange, highest: Int64?, cut: Bool, held: Bool) {
        var entry = entries[range.lane] ?? Entry()
        if range.ceiling == .max {
            if let highest { entry.floor = max(entry.floor, highest) }
            entry.misses = highest == nil && !held ? entry.misses + 1 : 0
            entry.live = highest != nil || (entry.live && entry.misses < Self.patience)
        } else if renewed.contains(range.lane) {
            // A sample or a call has asked for more since: look again.
        } else if held, highest == nil {
            // Nobody was let through: what was to be swept still is.
        } else if cut, let highest, let sweep = entry.sweep {
            entry.sweep = highest < sweep.upper ? (highest, sweep.upper) : nil
        } else {
            entry.sweep = nil
        }
        entries[range.lane] = entry
    }
}
