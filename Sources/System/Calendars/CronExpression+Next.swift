extension CronExpression {
    /// The first instant after another at which it fires; seconds since 1970.
    ///
    /// - An expression that allows every hour follows real time: it fires whenever the clock shows a matching time, in both passes of an
    ///   overlap, and a time that falls into a gap is skipped.
    /// - Any other fires once for each matching wall time, when the clock shows that time or a later one for the first time: in an overlap
    ///   in the first pass, for a gap at its end; several times in one gap are one fire.
    ///
    /// In both cases never twice at an instant. nil: never again, which does not happen for an expression that was parsed.
    package func next(after instant: Int64, in zone: Zone) -> Int64? {
        guard allowsEveryHour else {
            return nextWall(from: zone.latestWall(upTo: instant) + 1).map(zone.first(showing:))
        }
        var from = instant + 1
        while true {
            let segment = zone.segment(at: from)
            guard let wall = nextWall(from: from + segment.offset) else { return nil }
            if wall - segment.offset < segment.end { return wall - segment.offset }
            from = segment.end
        }
    }

    /// The first wall time that matches, from one on. Goes from field to field and not from minute to minute; looks at 400 years,
    /// after which the calendar repeats.
    func nextWall(from wall: Int64) -> Int64? {
        let startDay = Int(floorDivide(wall, 86_400))
        let startDate = CivilDate(dayNumber: startDay)
        var year = startDate.year
        var month = startDate.month
        for turn in 0...4800 {
            var open = months & 1 << UInt64(month) == 0 ? 0 : days.bits(year: year, month: month)
            if turn == 0 { open &= ~0 << UInt64(startDate.day) }
            while open != 0 {
                let day = CivilDate(year: year, month: month, day: open.trailingZeroBitCount).dayNumber
                let second = day == startDay ? Int(wall - Int64(startDay) * 86_400) : 0
                if let time = nextTime(from: second) { return Int64(day) * 86_400 + Int64(time) }
                open &= open - 1
            }
            month += 1
            if month > 12 { (year, month) = (year + 1, 1) }
        }
        return nil
    }

    /// The first second of a day that matches, from one on.
    private func nextTime(from second: Int) -> Int? {
        var (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60)
        while let nextHour = Self.next(hours, from: hour) {
            if nextHour > hour { (minute, second) = (0, 0) }
            while let nextMinute = Self.next(minutes, from: minute) {
                if nextMinute > minute { second = 0 }
                if let nextSecond = Self.next(seconds, from: second) {
                    return nextHour * 3600 + nextMinute * 60 + nextSecond
                }
                (minute, second) = (nextMinute + 1, 0)
            }
            (hour, minute, second) = (nextHour + 1, 0, 0)
        }
        return nil
    }

    private static func next(_ bits: UInt64, from low: Int) -> Int? {
        let rest = bits & ~0 << UInt64(low)
        return rest == 0 ? nil : rest.trailingZeroBitCount
    }
}
