package import Calendars
package import MillraceJobs
package import MillraceQueues

/// Decides which times of a schedule fire now, which were missed, and which is next. Pure: it is given the time. Whole seconds.
package struct FiringRules: Sendable {
    package var timetable: Timetable
    package var zone: Zone
    package var anchor: Int64
    package var catchUp: Schedule.CatchUp

    package init(timetable: Timetable, zone: Zone, anchor: Int64, catchUp: Schedule.CatchUp) {
        self.timetable = timetable
        self.zone = zone
        self.anchor = anchor
        self.catchUp = catchUp
    }

    /// A worker may be busy, or the database slow: a time that passed not long ago is late and not missed.
    static let grace: ClosedRange<Int64> = 5...60
    /// Missed times are counted so far and no further.
    static let countLimit = 100_000

    /// - Parameters:
    ///   - planned: the time that was planned; nil where none is, and the first one after `from` counts.
    /// nil: there is no time any more.
    package func plan(planned: Int64?, from: Int64, now: Int64) -> FirePlan? {
        guard let first = planned ?? next(after: from) else { return nil }
        guard first <= now else { return FirePlan(fires: [], next: first) }
        guard let next = next(after: now) else { return nil }
        let fires = due(from: first, until: now)
        return FirePlan(fires: fires, missed: missed(from: first, until: (fires.first ?? now + 1) - 1), next: next)
    }

    private func due(from first: Int64, until now: Int64) -> [Int64] {
        switch catchUp {
        case .none: return punctual(from: first, until: now)
        case .latest:
            let punctual = punctual(from: first, until: now)
            return punctual.first == first ? punctual : newest(1, from: first, until: now)
        case .all(let limit): return newest(limit, from: first, until: now)
        }
    }

    /// The newest times that are late at most.
    private func punctual(from first: Int64, until now: Int64) -> [Int64] {
        // More cannot be: the grace spans no more than two times, or five seconds.
        let times = newest(Int(Self.grace.lowerBound) + 2, from: first, until: now)
        let late = times.lastIndex { now - $0 > grace(after: $0) }
        return Array(times[(late.map { $0 + 1 } ?? 0)...])
    }

    private func grace(after time: Int64) -> Int64 {
        let half = (next(after: time).map { $0 - time } ?? .max) / 2
        return min(max(half, Self.grace.lowerBound), Self.grace.upperBound)
    }

    private func missed(from first: Int64, until end: Int64) -> FirePlan.Missed? {
        guard first <= end, let last = newest(1, from: first, until: end).last else { return nil }
        var count = 0
        var time: Int64? = first
        while let passed = time, passed <= last, count < Self.countLimit {
            count += 1
            time = next(after: passed)
        }
        return FirePlan.Missed(first: first, last: last, count: count)
    }

    /// The newest `count` times of a span, oldest first; the span may be years, so it is searched from its end.
    private func newest(_ count: Int, from first: Int64, until end: Int64) -> [Int64] {
        var width: Int64 = 64
        while true {
            let from = max(first - 1, end - width)
            var found: [Int64] = []
            var last = from
            while let time = next(after: last), time <= end {
                found.append(time)
                last = time
            }
            if found.count >= count || from < first { return Array(found.suffix(count)) }
            width *= 4
        }
    }

    private func next(after time: Int64) -> Int64? {
        timetable.next(after: time, in: zone, anchor: anchor)
    }
}
