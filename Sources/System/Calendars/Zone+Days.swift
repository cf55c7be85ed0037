extension Zone {
    /// The date that the clock's day has.
    package func date(at instant: Int64) -> CivilDate {
        CivilDate(dayNumber: Int(floorDivide(wall(at: instant), 86_400)))
    }

    /// The first instant whose local date is that day or later: if midnight is skipped, the end of the gap; if it comes twice, the first of
    /// both; for a date that was skipped, the start of the next day.
    package func startOfDay(_ date: CivilDate) -> Int64 {
        first(showing: Int64(date.dayNumber) * 86_400)
    }

    /// False for a day that the calendar of this place has left out.
    package func has(_ date: CivilDate) -> Bool {
        self.date(at: startOfDay(date)) == date
    }

    /// The length of a day, in seconds; 0 for a skipped date.
    package func length(of date: CivilDate) -> Int64 {
        startOfDay(CivilDate(dayNumber: date.dayNumber + 1)) - startOfDay(date)
    }

    /// When a clock shows this time of day for the first time on that date; where it was skipped, the first instant after the gap.
    ///
    /// - Parameter time: seconds since midnight, as the clock shows them.
    package func instant(of time: Int, on date: CivilDate) -> Int64 {
        first(showing: Int64(date.dayNumber) * 86_400 + Int64(time))
    }

    /// The next time that the clock shows this time of day: once for each date that there is.
    package func next(_ time: Int, after instant: Int64) -> Int64 {
        var day = date(at: instant).dayNumber - 1
        while true {
            let date = CivilDate(dayNumber: day)
            let candidate = self.instant(of: time, on: date)
            // A skipped date leads to the next one, which the loop finds anyway.
            if candidate > instant, has(date) { return candidate }
            day += 1
        }
    }
}

extension CivilDate {
    /// The first day of its week.
    ///
    /// - Parameter weekday: the day that weeks begin with, 0 for Sunday to 6.
    package func startOfWeek(beginningWith weekday: Int) -> CivilDate {
        CivilDate(dayNumber: dayNumber - (self.weekday - weekday + 7) % 7)
    }

    package func adding(days: Int) -> CivilDate { CivilDate(dayNumber: dayNumber + days) }
}

extension CivilDate: Comparable {
    package static func < (one: CivilDate, other: CivilDate) -> Bool {
        (one.year, one.month, one.day) < (other.year, other.month, other.day)
    }
}

extension CivilDate: CustomStringConvertible {
    /// `2026-11-01`
    package var description: String {
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number.magnitude)
            return (number < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }
}
