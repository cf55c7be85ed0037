/// The days of a cron expression. If both the day of month and the day of week are restricted, either one suffices: the classic rule.
struct CronDays: Sendable, Equatable {
    /// Bits 1 to 31.
    var ofMonth: UInt64 = 0
    /// Bit n: the last day but n.
    var fromEnd: UInt64 = 0
    /// Bits 0 (Sunday) to 6.
    var ofWeek: UInt64 = 0
    /// By weekday, bits 1 to 5: the first to the fifth of the month.
    var nth: [UInt64] = Array(repeating: 0, count: 7)
    /// Bits 0 to 6: the last one of the month.
    var lastOfWeek: UInt64 = 0
    var anyDayOfMonth = false
    var anyDayOfWeek = false

    /// Bits 1 to 31: the days of a month that match.
    func bits(year: Int, month: Int) -> UInt64 {
        let length = CivilDate.days(in: month, of: year)
        let all: UInt64 = (1 << UInt64(length + 1)) - 2
        if anyDayOfMonth && anyDayOfWeek { return all }
        var found: UInt64 = 0
        if !anyDayOfMonth {
            found |= ofMonth
            for back in 0..<length where fromEnd & 1 << UInt64(back) != 0 { found |= 1 << UInt64(length - back) }
        }
        if !anyDayOfWeek {
            let first = CivilDate(year: year, month: month, day: 1).weekday
            for day in 1...length {
                let weekday = UInt64((first + day - 1) % 7)
                let isNth = nth[Int(weekday)] & 1 << UInt64((day - 1) / 7 + 1) != 0
                let isLast = lastOfWeek & 1 << weekday != 0 && day + 7 > length
                if ofWeek & 1 << weekday != 0 || isNth || isLast { found |= 1 << UInt64(day) }
            }
        }
        return found & all
    }
}

extension CronDays {
    init(month monthText: Substring, week weekText: Substring) throws(ExpressionError) {
        try readMonth(monthText)
        try readWeek(weekText)
    }

    /// Beside what every field has: `L`, the last day, and `L-3`, the third before it.
    private mutating func readMonth(_ text: Substring) throws(ExpressionError) {
        let field = CronField.dayOfMonth
        for item in try field.items(text) {
            let upper = item.uppercased()
            if upper == "L" {
                fromEnd |= 1
            } else if upper.hasPrefix("L-") {
                guard let back = Int(upper.dropFirst(2)), (1...30).contains(back) else {
                    throw field.complaint(
                        "\(ExpressionError.quoted(item)): L- must be followed by a number from 1 to 30")
                }
                fromEnd |= 1 << UInt64(back)
            } else if upper.hasSuffix("W"), upper.count > 1 {
                throw field.complaint(
                    "\(ExpressionError.quoted(item)): the nearest working day (W) is not supported; give days, L or L-3"
                )
            } else {
                ofMonth |= try field.bits(of: item)
            }
        }
        anyDayOfMonth = ofMonth == field.everything
    }

    /// Beside what every field has: `friL` or `5L`, the last Friday, and `mon#2` or `1#2`, the second Monday.
    private mutating func readWeek(_ text: Substring) throws(ExpressionError) {
        let field = CronField.dayOfWeek
        for item in try field.items(text) {
            if let hash = item.firstIndex(of: "#") {
                let weekday = try field.number(item[..<hash], in: item) % 7
                guard let count = Int(item[item.index(after: hash)...]), (1...5).contains(count) else {
                    throw field.complaint("\(ExpressionError.quoted(item)): # must be followed by a number from 1 to 5")
                }
                nth[weekday] |= 1 << UInt64(count)
            } else if item.last == "L" || item.last == "l" {
                guard item.count > 1 else {
                    throw field.complaint("L needs a day in front of it: friL or 5L is the last Friday of the month")
                }
                lastOfWeek |= 1 << UInt64(try field.number(item.dropLast(), in: item) % 7)
            } else {
                let bits = try field.bits(of: item)
                ofWeek |= (bits | bits >> 7) & 0x7F
            }
        }
        anyDayOfWeek = ofWeek == 0x7F
    }
}
