import Testing

@testable import Calendars

@Suite struct CivilDateTests {
    @Test func `days have their dates, and dates their days, across leap years and before 1970`() {
        #expect(CivilDate(dayNumber: 0) == CivilDate(year: 1970, month: 1, day: 1))
        #expect(CivilDate(year: 2000, month: 2, day: 29).dayNumber == 11_016)
        #expect(CivilDate(year: 1969, month: 12, day: 31).dayNumber == -1)
        #expect(CivilDate(year: 2026, month: 11, day: 21).weekday == 6)
        var before = CivilDate(dayNumber: -140_001)
        for number in -140_000...140_000 {
            let date = CivilDate(dayNumber: number)
            #expect(date.dayNumber == number)
            let isNext =
                date.day == before.day + 1 && date.month == before.month
                || date.day == 1 && before.day == CivilDate.days(in: before.month, of: before.year)
            if !isNext { Issue.record("\(date) does not follow \(before)") }
            before = date
        }
    }
}
