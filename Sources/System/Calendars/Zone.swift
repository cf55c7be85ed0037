/// A time zone: its offsets in the past, now and in the future. Instants are seconds since 1970; a wall time is what a clock on the wall
/// shows, counted in seconds as if it were UTC.
package struct Zone: Sendable, Equatable {
    package let name: String
    let line: ZoneLine
    /// From here on everything is as it was 400 years before: the Gregorian calendar repeats, and so do the rules. nil: the last
    /// offset holds for ever.
    let horizon: Int64?

    package static let utc = Zone(name: "UTC", line: ZoneLine(first: 0), horizon: nil)

    static let cycle: Int64 = 146_097 * 86_400

    /// A period with one offset.
    package struct Segment: Sendable, Equatable {
        package var start: Int64
        /// The first instant of the next one.
        package var end: Int64
        /// Seconds east of Greenwich.
        package var offset: Int64
    }

    package func offset(at instant: Int64) -> Int64 {
        segment(at: instant).offset
    }

    package func wall(at instant: Int64) -> Int64 {
        instant + offset(at: instant)
    }

    package func segment(at instant: Int64) -> Segment {
        var shift: Int64 = 0
        if let horizon, instant >= horizon { shift = ((instant - horizon) / Self.cycle + 1) * Self.cycle }
        var segment = line.segment(at: instant - shift)
        segment.start += shift
        segment.end += shift
        return segment
    }

    /// The instants at which a wall time is shown: none in a gap, two in an overlap.
    package func instants(showing wall: Int64) -> [Int64] {
        segments(around: wall).compactMap { segment in
            let instant = wall - segment.offset
            return segment.start <= instant && instant < segment.end ? instant : nil
        }
    }

    /// The first instant at which the clock shows a wall time or, where it was skipped, a later one: the end of a gap, the first
    /// pass of an overlap.
    func first(showing wall: Int64) -> Int64 {
        for segment in segments(around: wall) {
            let instant = max(segment.start, wall - segment.offset)
            if instant < segment.end { return instant }
        }
        return wall - offset(at: wall)  // not reached: the last of those segments lies behind the wall time
    }

    /// The latest wall time that was shown up to an instant; in the second pass of an overlap that is the end of the first.
    func latestWall(upTo instant: Int64) -> Int64 {
        var segment = segment(at: instant - Self.reach)
        var latest = Int64.min
        while segment.end <= instant {
            latest = max(latest, segment.end - 1 + segment.offset)
            segment = self.segment(at: segment.end)
        }
        return max(latest, instant + segment.offset)
    }

    /// No offset is as large, and no clock was ever moved by as much.
    private static let reach: Int64 = 2 * 86_400

    private func segments(around wall: Int64) -> [Segment] {
        var found = [segment(at: wall - Self.reach)]
        while let last = found.last, last.end <= wall + Self.reach { found.append(segment(at: last.end)) }
        return found
    }
}

/// The offsets of a zone in order of time.
struct ZoneLine: Sendable, Equatable {
    private(set) var times: [Int64] = []
    /// One more than times: `offsets[i]` holds until `times[i]`.
    private(set) var offsets: [Int64]

    init(first offset: Int64) {
        offsets = [offset]
    }

    /// Far outside of every calendar, and far from overflowing.
    private static let distance: Int64 = 1 << 55

    mutating func append(_ offset: Int64, from time: Int64) {
        if times.last == time {
            times.removeLast()
            offsets.removeLast()
        }
        guard offset != offsets.last else { return }
        times.append(time)
        offsets.append(offset)
    }

    func segment(at instant: Int64) -> Zone.Segment {
        var low = 0
        var high = times.count
        while low < high {
            let middle = (low + high) / 2
            if times[middle] <= instant { low = middle + 1 } else { high = middle }
        }
        return Zone.Segment(
            start: low == 0 ? -Self.distance : times[low - 1],
            end: low == times.count ? Self.distance : times[low], offset: offsets[low])
    }
}
