/// A day of the Gregorian calendar, which is taken to reach back and forward for ever.
package struct CivilDate: Sendable, Equatable {
    package var year: Int
    /// 1 to 12
    package var month: Int
    /// 1 to 31
    package var day: Int

    package init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    // Years begin in March here, so that the leap day comes last; 719,468 days lie between March of year 0 and 1970.

    /// - Parameter number: days since 1970-01-01.
    package init(dayNumber number: Int) {
        let shifted = number + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * dayOfYear + 2) / 153
        month = part < 10 ? part + 3 : part - 9
        day = dayOfYear - (153 * part + 2) / 5 + 1
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01.
    package var dayNumber: Int {
        let year = month <= 2 ? year - 1 : year
        let era = floorDivide(year, 400)
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// 0 is Sunday.
    package var weekday: Int {
        let days = dayNumber + 4  // 1970 began on a Thursday
        return days - floorDivide(days, 7) * 7
    }

    package static func isLeap(_ year: Int) -> Bool {
        year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    }

    package static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// Rounds towards the past, also before 1970.
package func floorDivide<Number: SignedInteger>(_ number: Number, _ by: Number) -> Number {
    let quotient = number / by
    return number % by < 0 ? quotient - 1 : quotient
}
