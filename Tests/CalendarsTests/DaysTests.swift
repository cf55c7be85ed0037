import Testing

@testable import Calendars

private func day(_ year: Int, _ month: Int, _ day: Int) -> CivilDate {
    CivilDate(year: year, month: month, day: day)
}

@Suite struct DaysTests {
    @Test func `a day begins where its midnight is, or would be`() throws {
        let havana = try zones.zone("America/Havana")
        // 2025-11-02 has two midnights: the day begins with the first, an hour before what Postgres says.
        #expect(havana.startOfDay(day(2025, 11, 2)) == wall("2025-11-02T04:00"))
        #expect(havana.length(of: day(2025, 11, 2)) == 25 * 3600)
        let cairo = try zones.zone("Africa/Cairo")
        #expect(shown(cairo.startOfDay(day(2026, 4, 24)), in: cairo) == "2026-04-24T01:00")
        #expect(cairo.length(of: day(2026, 4, 24)) == 23 * 3600)
        let apia = try zones.zone("Pacific/Apia")
        #expect(!apia.has(day(2011, 12, 30)) && apia.has(day(2011, 12, 29)) && apia.has(day(2011, 12, 31)))
        #expect(apia.startOfDay(day(2011, 12, 30)) == apia.startOfDay(day(2011, 12, 31)))
        #expect(apia.length(of: day(2011, 12, 30)) == 0)
    }

    @Test func `a time of day comes once for each date that there is`() throws {
        for name in ["America/Havana", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe", "Europe/Berlin", "UTC"] {
            let zone = try zones.zone(name)
            for time in [0, 1800, 5400, 9000, 70_200, 86_399] {
                for year in [2011, 2025] {
                    var instant = zone.startOfDay(day(year, 1, 1)) - 1
                    var last = day(year - 1, 12, 31)
                    while true {
                        instant = zone.next(time, after: instant)
                        let date = zone.date(at: instant)
                        guard date.year == year else { break }
                        var expected = last.adding(days: 1)
                        if !zone.has(expected) { expected = expected.adding(days: 1) }
                        #expect(date == expected, "\(name) \(time) \(date)")
                        last = date
                    }
                    #expect(last == day(year, 12, 31), "\(name) \(time)")
                }
            }
        }
    }

    @Test func `in a gap it comes right after it, and of two passes the first counts`() throws {
        let berlin = try zones.zone("Europe/Berlin")
        let halfPastTwo = 9000
        #expect(berlin.instant(of: halfPastTwo, on: day(2026, 3, 29)) == wall("2026-03-29T01:00"))
        #expect(berlin.instant(of: halfPastTwo, on: day(2026, 10, 25)) == wall("2026-10-25T00:30"))
        #expect(berlin.next(halfPastTwo, after: wall("2026-10-25T00:30")) == wall("2026-10-26T01:30"))
    }

    @Test func `weeks begin with the day that they are told to`() {
        #expect(day(2026, 11, 22).startOfWeek(beginningWith: 1) == day(2026, 11, 16))  // a Sunday
        #expect(day(2026, 11, 22).startOfWeek(beginningWith: 0) == day(2026, 11, 22))
        #expect(day(2026, 11, 16).startOfWeek(beginningWith: 1) == day(2026, 11, 16))
        #expect(day(2026, 1, 1).startOfWeek(beginningWith: 6) == day(2025, 12, 27))
        for number in -1000..<1000 {
            for weekday in 0..<7 {
                let date = CivilDate(dayNumber: number)
                let start = date.startOfWeek(beginningWith: weekday)
                #expect(start.weekday == weekday && (0..<7).contains(date.dayNumber - start.dayNumber))
            }
        }
    }

    @Test func `a date is written as everybody writes it`() {
        #expect("\(day(2026, 1, 9))" == "2026-01-09")
        #expect("\(day(33, 12, 1))" == "0033-12-01")
        #expect(day(2026, 1, 9) < day(2026, 2, 1) && day(2025, 12, 31) < day(2026, 1, 1))
    }
}
