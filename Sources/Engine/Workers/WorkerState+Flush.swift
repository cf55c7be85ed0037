package import MillraceQueues

/// How ends reach the database: what goes into a flush, and what its answer means.
extension WorkerState {
    /// What waits to be recorded, at most `most`; nil when there is nothing, or a flush is under way. Where `plenty` of others go, the
    /// first ends of a lease wait for the rest of it, once: a lease that ends in one piece need not be locked before, nor its history
    /// be counted.
    package mutating func takeFlush(most: Int = Self.mostOfFlush, plenty: Int = 256) -> Flush? {
        guard inFlight == 0, !pending.isEmpty else { return nil }
        var ended = Array(pending.prefix(most))
        let early = begun(in: ended, plenty: plenty)
        if early.isEmpty {
            pending.removeFirst(ended.count)
        } else {
            pending.replaceSubrange(..<ended.count, with: ended.filter { early.contains($0.job.number) })
            ended.removeAll { early.contains($0.job.number) }
        }
        inFlight = ended.count
        return flush(of: ended)
    }

    /// The leases whose first ends these are and not the last, unless they have waited or few others go.
    private mutating func begun(in ended: [Ended], plenty: Int) -> Set<Int64> {
        guard ended.count > plenty else { return [] }
        var left = ended.count
        var early: Set<Int64> = []
        for (number, count) in counted(ended) {
            guard let lease = leases[number], lease.recorded == 0, !lease.hasWaited, count.all < lease.total else {
                continue
            }
            left -= Int(count.all)
            early.insert(number)
        }
        guard left >= plenty else { return [] }
        for number in early { leases[number]?.hasWaited = true }
        return early
    }

    /// By lease. Most ends of a lease come one behind the other: they are added up before they are looked up.
    private func counted(_ ended: [Ended]) -> [Int64: (all: Int32, toRecord: Int32)] {
        var counts: [Int64: (all: Int32, toRecord: Int32)] = [:]
        var run: (number: Int64, all: Int32, toRecord: Int32) = (0, 0, 0)
        func add() {
            guard run.all > 0 else { return }
            counts[run.number, default: (0, 0)].all += run.all
            counts[run.number, default: (0, 0)].toRecord += run.toRecord
        }
        for end in ended {
            if end.job.number != run.number {
                add()
                run = (end.job.number, 0, 0)
            }
            run.all += 1
            if !end.isRecorded { run.toRecord += 1 }
        }
        add()
        return counts
    }

    func flush(of ended: [Ended]) -> Flush {
        let counts = counted(ended)
        var slots: [SlotKey: Int32] = [:]
        var (slot, same) = (SlotKey(number: 0, gate: 0), Int32(0))
        for end in ended where !end.isRecorded {
            for gate in end.job.gates { slots[SlotKey(number: end.job.number, gate: gate), default: 0] += 1 }
            guard let gate = end.job.gate else { continue }
            if gate != slot.gate || end.job.number != slot.number {
                if same > 0 { slots[slot, default: 0] += same }
                (slot, same) = (SlotKey(number: end.job.number, gate: gate), 0)
            }
            same += 1
        }
        if same > 0 { slots[slot, default: 0] += same }
        for (number, count) in counts where count.toRecord > 0 {
            for gate in leases[number]?.gates ?? [] { slots[SlotKey(number: number, gate: gate)] = count.toRecord }
        }
        var flush = Flush(
            ended: ended, partial: [], complete: [],
            slots: slots.map { (number: $0.key.number, gate: $0.key.gate, count: $0.value) })
        for (number, count) in counts {
            if let lease = leases[number], lease.recorded + count.all == lease.total {
                flush.complete.append((number, count.toRecord))
            } else {
                flush.partial.append(number)
            }
        }
        return flush
    }

    /// A flush was answered: the leases in `live` took their jobs, all others are lost.
    package mutating func flushed(_ flush: Flush, live: Set<Int64>) -> LostLeases {
        inFlight -= flush.ended.count
        var refused: [Ended] = []
        var (key, sum) = (TallyKey?.none, RunTally())
        var (number, recorded, isLive) = (Int64.min, Int32(0), false)
        // Those of a lease come one behind the other, and mostly of a kind: looked up once for all of them.
        for end in flush.ended {
            if end.job.number != number {
                leases[number]?.recorded += recorded
                (number, recorded, isLive) = (end.job.number, 0, live.contains(end.job.number))
            }
            guard isLive || end.isRecorded else {
                refused.append(end)
                continue
            }
            recorded += 1
            let own = TallyKey(queue: end.job.lane.queue, kind: end.job.kind)
            if own != key {
                if let key { tallies[key, default: RunTally()].add(sum) }
                (key, sum) = (own, RunTally())
            }
            sum.add(end)
            failures.add(end)
            meter.add(end.outcome, milliseconds: end.milliseconds, waited: end.waited, to: own)
            if end.outcome == .released { totals.handedBack += 1 } else { totals.finished += 1 }
        }
        leases[number]?.recorded += recorded
        if let key { tallies[key, default: RunTally()].add(sum) }
        for (number, _) in flush.complete where live.contains(number) { forget(number) }
        totals.refused += refused.count
        var loss = lose(Set(refused.map(\.job.number)))
        loss.refused = refused + loss.refused
        return loss
    }
}
