package import MillraceQueues

/// The jobs whose contents a claim did not bring, by the line they stand in. Lines take turns, so that none waits for all that another has; and
/// one that has many gets no more until they have been read. Pure.
package struct UnreadJobs: Sendable {
    /// A line that a claim brought such jobs of stays, also when it has none left, until one brings none.
    private var lines: [Int32: [Claimed]] = [:]
    package private(set) var count = 0

    /// The most that wait in one line: enough for the reads to follow each other, and few enough to leave jobs to other workers.
    package static let most = 256

    package init() {}

    /// How many more of a line may be claimed.
    package var room: [Int32: Int] { lines.mapValues { max(0, Self.most - $0.count) } }

    /// Keeps those of a claim that are unread and returns the others; nil: that is all of them.
    package mutating func sort(out jobs: [Claimed]) -> [Claimed]? {
        guard jobs.contains(where: \.isUnread) else {
            if !lines.isEmpty {
                for line in Set(jobs.map(\.lane.queue)) where lines[line]?.isEmpty == true { lines[line] = nil }
            }
            return nil
        }
        var whole: [Claimed] = []
        for job in jobs {
            if job.isUnread {
                lines[job.lane.queue, default: []].append(job)
                count += 1
            } else {
                whole.append(job)
            }
        }
        return whole
    }

    /// Those to read next, one of each line in turn.
    package func next(_ most: Int) -> [Claimed] {
        let heads = lines.values.filter { !$0.isEmpty }.sorted {
            ($0[0].lane.priority, $0[0].seq) < ($1[0].lane.priority, $1[0].seq)
        }
        var chosen: [Claimed] = []
        var place = 0
        while chosen.count < most {
            let before = chosen.count
            for line in heads where place < line.count && chosen.count < most { chosen.append(line[place]) }
            if chosen.count == before { break }
            place += 1
        }
        return chosen
    }

    /// Takes out those of these jobs that are still here, and says which lanes belong to lines that were full until now.
    package mutating func take(_ jobs: [Claimed]) -> (jobs: [Claimed], opened: Set<Lane>) {
        var taken: [Claimed] = []
        var opened: Set<Lane> = []
        for (line, some) in Dictionary(grouping: jobs, by: \.lane.queue) {
            guard let all = lines[line] else { continue }
            let wanted = Set(some.map { LeaseToken(session: $0.id, number: $0.number) })
            let left = all.filter { !wanted.contains(LeaseToken(session: $0.id, number: $0.number)) }
            let here = Set(all.map { LeaseToken(session: $0.id, number: $0.number) })
            taken += some.filter { here.contains(LeaseToken(session: $0.id, number: $0.number)) }
            if all.count >= Self.most, left.count < Self.most { opened.formUnion(all.map(\.lane)) }
            count -= all.count - left.count
            lines[line] = left
        }
        return (taken, opened)
    }

    /// Those behind the first of each line, when a claim that did not know has brought more than may wait.
    package mutating func removeExcess() -> [Claimed] {
        var excess: [Claimed] = []
        for (line, all) in lines where all.count > Self.most {
            excess += all[Self.most...]
            lines[line] = Array(all.prefix(Self.most))
        }
        count -= excess.count
        return excess
    }

    package mutating func remove(leases numbers: Set<Int64>) -> [Claimed] {
        guard count > 0 else { return [] }
        var removed: [Claimed] = []
        for (line, all) in lines {
            let gone = all.filter { numbers.contains($0.number) }
            guard !gone.isEmpty else { continue }
            removed += gone
            lines[line] = all.filter { !numbers.contains($0.number) }
        }
        count -= removed.count
        return removed
    }

    package mutating func removeAll() -> [Claimed] {
        defer { (lines, count) = ([:], 0) }
        return lines.values.flatMap(\.self)
    }
}
