/// The rule at the end of a zone file, in the form of POSIX's TZ: `CET-1CEST,M3.5.0,M10.5.0/3`. It holds after the last change listed.
struct ZoneRule: Sendable, Equatable {
    /// When in a year a clock is moved.
    struct Change: Sendable, Equatable {
        enum Day: Sendable, Equatable {
            /// 1 to 365; February 29 is never counted.
            case withoutLeap(Int)
            /// 0 to 365
            case counted(Int)
            /// The nth weekday of a month; 5 is the last one.
            case weekday(Int, week: Int, month: Int)
        }

        var day: Day
        /// Seconds after midnight by the clock before the change; up to a week, before or after.
        var time: Int64

        func wall(in year: Int) -> Int64 {
            Int64(dayNumber(in: year)) * 86_400 + time
        }

        private func dayNumber(in year: Int) -> Int {
            let newYear = CivilDate(year: year, month: 1, day: 1).dayNumber
            switch day {
            case .withoutLeap(let day): return newYear + day - 1 + (day >= 60 && CivilDate.isLeap(year) ? 1 : 0)
            case .counted(let day): return newYear + day
            case .weekday(let weekday, let week, let month):
                let first = CivilDate(year: year, month: month, day: 1)
                var day = 1 + (weekday - first.weekday + 7) % 7 + (week - 1) * 7
                if day > CivilDate.days(in: month, of: year) { day -= 7 }
                return first.dayNumber + day - 1
            }
        }
    }

    struct Summer: Sendable, Equatable {
        var offset: Int64
        var begins: Change
        var ends: Change
    }

    var offset: Int64
    var summer: Summer?

    /// A year's changes in order of time; where one season ends as the other begins, the beginning stands last and counts.
    func changes(in year: Int) -> [(time: Int64, offset: Int64)] {
        guard let summer else { return [] }
        let begin = (time: summer.begins.wall(in: year) - offset, offset: summer.offset)
        let end = (time: summer.ends.wall(in: year) - summer.offset, offset: offset)
        return begin.time < end.time ? [begin, end] : [end, begin]
    }
}

extension ZoneRule {
    /// nil: malformed.
    init?(_ text: some StringProtocol) {
        var scan = RuleScan(rest: Array(text.utf8)[...])
        guard scan.skipName(), let west = scan.clock(hours: 24) else { return nil }
        offset = -west
        if scan.rest.isEmpty { return }
        guard scan.skipName() else { return nil }
        var summerOffset = offset + 3600
        if scan.rest.first != UInt8(ascii: ",") {
            guard let west = scan.clock(hours: 24) else { return nil }
            summerOffset = -west
        }
        guard let begins = scan.change(), let ends = scan.change(), scan.rest.isEmpty else { return nil }
        summer = Summer(offset: summerOffset, begins: begins, ends: ends)
    }
}

private struct RuleScan {
    var rest: ArraySlice<UInt8>

    mutating func skip(_ character: Character) -> Bool {
        guard let first = rest.first, first == character.asciiValue else { return false }
        rest.removeFirst()
        return true
    }

    /// `CET`, or anything between < and >.
    mutating func skipName() -> Bool {
        if skip("<") {
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
            rest = rest[(end + 1)...]
            return true
        }
        let letters = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") }
        rest = rest.dropFirst(letters.count)
        return letters.count >= 3
    }

    mutating func number(upTo most: Int64) -> Int64? {
        let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        rest = rest.dropFirst(digits.count)
        guard digits.count <= 3, let number = Int64(String(decoding: digits, as: UTF8.self)), number <= most else {
            return nil
        }
        return number
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    mutating func clock(hours: Int64) -> Int64? {
        let sign: Int64 = skip("-") ? -1 : 1
        if sign == 1 { _ = skip("+") }
        guard let hours = number(upTo: hours) else { return nil }
        var seconds = hours * 3600
        for unit in [Int64(60), 1] where skip(":") {
            guard let part = number(upTo: 59) else { return nil }
            seconds += part * unit
        }
        return sign * seconds
    }

    /// `,M3.5.0/2`, `,J60`, `,59/-1:30`
    mutating func change() -> ZoneRule.Change? {
        guard skip(",") else { return nil }
        let day: ZoneRule.Change.Day
        if skip("M") {
            guard let month = number(upTo: 12), month > 0, skip("."), let week = number(upTo: 5), week > 0, skip("."),
                let weekday = number(upTo: 6)
            else { return nil }
            day = .weekday(Int(weekday), week: Int(week), month: Int(month))
        } else if skip("J") {
            guard let number = number(upTo: 365), number > 0 else { return nil }
            day = .withoutLeap(Int(number))
        } else {
            guard let number = number(upTo: 365) else { return nil }
            day = .counted(Int(number))
        }
        guard skip("/") else { return ZoneRule.Change(day: day, time: 7200) }
        return clock(hours: 167).map { ZoneRule.Change(day: day, time: $0) }
    }
}
