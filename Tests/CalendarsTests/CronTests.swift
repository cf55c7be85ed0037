import Testing

@testable import Calendars

/// The first fires after a UTC time, as the zone's clock shows them.
private func fires(_ expression: String, after: String, zone: Zone = .utc, count: Int = 3) throws -> [String] {
    let expression = try CronExpression(expression)
    var found: [String] = []
    var last = wall(after)
    for _ in 0..<count {
        guard let next = expression.next(after: last, in: zone) else { break }
        found.append(shown(next, in: zone))
        last = next
    }
    return found
}

@Suite struct CronTests {
    @Test(arguments: [
        ("*/20 9-10 * * *", ["2026-11-22T09:00", "2026-11-22T09:20", "2026-11-22T09:40"]),
        ("0 0 * * MON", ["2026-11-23T00:00", "2026-11-30T00:00", "2026-12-07T00:00"]),
        ("0 0 * * 0", ["2026-11-22T00:00", "2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 * * 7", ["2026-11-22T00:00", "2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 * * sat-sun", ["2026-11-22T00:00", "2026-11-28T00:00", "2026-11-29T00:00"]),
        ("0 0 1,15 Jan-Feb ?", ["2027-01-01T00:00", "2027-01-15T00:00", "2027-02-01T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 L * *", ["2026-11-30T00:00", "2026-12-31T00:00", "2027-01-31T00:00"]),
        ("0 0 L-2 2 *", ["2027-02-26T00:00", "2028-02-27T00:00", "2029-02-26T00:00"]),
        ("0 0 * * friL", ["2026-11-27T00:00", "2026-12-25T00:00", "2027-01-29T00:00"]),
        ("0 0 * * 5L", ["2026-11-27T00:00", "2026-12-25T00:00", "2027-01-29T00:00"]),
        ("0 0 * * mon#2", ["2026-12-14T00:00", "2027-01-11T00:00", "2027-02-08T00:00"]),
        ("0 0 * 2 mon#5", ["2044-02-29T00:00", "2072-02-29T00:00", "2112-02-29T00:00"]),
        ("30 15 10 * * *", ["2026-11-22T10:15:30", "2026-11-23T10:15:30", "2026-11-24T10:15:30"]),
        ("*/30 * * * * *", ["2026-11-21T12:00:30", "2026-11-21T12:01", "2026-11-21T12:01:30"]),
        ("5/20 12 * * *", ["2026-11-21T12:05", "2026-11-21T12:25", "2026-11-21T12:45"]),
        ("@hourly", ["2026-11-21T13:00", "2026-11-21T14:00", "2026-11-21T15:00"]),
        ("@Daily", ["2026-11-22T00:00", "2026-11-23T00:00", "2026-11-24T00:00"]),
        ("@weekly", ["2026-11-22T00:00", "2026-11-29T00:00", "2026-12-06T00:00"]),
        ("@monthly", ["2026-12-01T00:00", "2027-01-01T00:00", "2027-02-01T00:00"]),
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
        // Both days restricted: either one suffices.
        ("0 0 13 * fri", ["2026-11-27T00:00", "2026-12-04T00:00", "2026-12-11T00:00"]),
        ("0 0 24 * fri", ["2026-11-24T00:00", "2026-11-27T00:00", "2026-12-04T00:00"]),
    ])
    func `an expression fires when it says`(expression: String, expected: [String]) throws {
        #expect(try fires(expression, after: "2026-11-21T12:00") == expected)
    }

    @Test(arguments: [
        ("61 * * * *", "minute: 61 is out of range; give 0 to 59"),
        ("* 24 * * *", "hour: 24 is out of range"),
        ("* * 0 * *", "day of month: 0 is out of range; give 1 to 31"),
        ("* * * foo *", "month: \"foo\" cannot be understood"),
        ("* * * 13 *", "month: 13 is out of range; give 1 to 12, or jan to dec"),
        ("* * * * 8", "day of week: 8 is out of range"),
        ("* * * * L", "friL or 5L is the last Friday"),
        ("* * * * mon#6", "# must be followed by a number from 1 to 5"),
        ("* * 15W * *", "is not supported"),
        ("* * L-31 * *", "L- must be followed by a number from 1 to 30"),
        ("*/0 * * * *", "minute: the step \"0\" in \"*/0\" must be a number from 1 to 60"),
        ("*/90 * * * *", "must be a number from 1 to 60"),
        ("* 22-2 * * *", "write 22-23,0-2"),
        ("1,,2 * * * *", "minute: \"1,,2\" has an empty place"),
        ("-5 * * * *", "minute: \"-5\" cannot be understood"),
        ("* * * *", "it has 4 fields; give 5"),
        ("* * * * * * 2030", "it has 7 fields"),
        ("", "it has 0 fields"),
        ("0 0 30 2 *", "it never fires"),
        ("0 0 31 4,6,9,11 *", "it never fires"),
        ("@reboot", "\"@reboot\" is unknown; there are @annually, @daily"),
        ("every 0s", "\"every 0s\" is not an interval"),
        ("every 15", "is not an interval"),
        ("every 5m1h", "is not an interval"),
        ("@every 400d", "from 1s to 366d"),
        ("\u{1B}[2J * * * *", "\"?[2J\""),
    ])
    func `what cannot be meant is refused, with the field and what would be right`(text: String, sentence: String) {
        let error = #expect(throws: ExpressionError.self) { try Timetable(text) }
        #expect(error?.description.contains(sentence) == true, "\(error?.description ?? "")")
    }

    @Test func `a fixed time fires once on days when the clock is moved`() throws {
        let berlin = try zones.zone("Europe/Berlin")
        // The gap: at the first instant after it, and once for all times in it.
        #expect(
            try fires("30 2 * * *", after: "2026-03-28T12:00", zone: berlin)
                == ["2026-03-29T03:00", "2026-03-30T02:30", "2026-03-31T02:30"])
        #expect(
            try fires("*/15 2,3 * * *", after: "2026-03-28T12:00", zone: berlin)
                == ["2026-03-29T03:00", "2026-03-29T03:15", "2026-03-29T03:30"])
        // The overlap: in its first pass.
        let overlap = try CronExpression("30 2 * * *")
        let first = try #require(overlap.next(after: wall("2026-10-24T12:00"), in: berlin))
        #expect(first == wall("2026-10-25T00:30"))
        #expect(overlap.next(after: first, in: berlin) == wall("2026-10-26T01:30"))
        // Asked in the middle of the second pass, it is over as well.
        #expect(overlap.next(after: wall("2026-10-25T01:10"), in: berlin) == wall("2026-10-26T01:30"))
    }

    @Test func `an expression for every hour runs with real time`() throws {
        let berlin = try zones.zone("Europe/Berlin")
        let hourly = try CronExpression("0 * * * *")
        for day in ["2026-03-28T22:00", "2026-10-24T22:00"] {
            var last = wall(day)
            for _ in 0..<12 {
                #expect(hourly.next(after: last, in: berlin) == last + 3600)
                last += 3600
            }
        }
        // A time that a gap skips is not caught up: 02:30 does not exist that day.
        #expect(
            try fires("30 * * * *", after: "2026-03-29T00:00", zone: berlin)
                == ["2026-03-29T01:30", "2026-03-29T03:30", "2026-03-29T04:30"])
    }

    @Test func `zones with odd habits`() throws {
        let apia = try zones.zone("Pacific/Apia")
        #expect(
            try fires("0 12 * * *", after: "2011-12-29T23:00", zone: apia, count: 3)
                == ["2011-12-31T00:00", "2011-12-31T12:00", "2012-01-01T12:00"])
        let howe = try zones.zone("Australia/Lord_Howe")
        #expect(
            try fires("15 2 * * *", after: "2026-10-03T12:00", zone: howe, count: 2)
                == ["2026-10-04T02:30", "2026-10-05T02:15"])
        let paulo = try zones.zone("America/Sao_Paulo")
        #expect(
            try fires("@daily", after: "2017-10-14T12:00", zone: paulo, count: 2)
                == ["2017-10-15T01:00", "2017-10-16T00:00"])
        for (name, after, days) in [
            ("America/Havana", "2025-11-01T12:00", ["2025-11-02T00:00", "2025-11-03T00:00"]),
            ("Asia/Amman", "2021-10-28T12:00", ["2021-10-29T00:00", "2021-10-30T00:00"]),
            ("Asia/Beirut", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:00"]),
            ("Africa/Cairo", "2026-04-23T12:00", ["2026-04-24T01:00", "2026-04-25T00:00"]),
        ] {
            #expect(try fires("@midnight", after: after, zone: try zones.zone(name), count: 2) == days, "\(name)")
        }
    }

    @Test func `an interval counts from its anchor, in any zone, whenever it is asked`() throws {
        let anchor = wall("2026-11-21T12:00:10")
        let every = try Timetable("@every 1h30m")
        #expect(try Timetable("every 90m") == every)
        let berlin = try zones.zone("Europe/Berlin")
        #expect(every.next(after: anchor, in: berlin, anchor: anchor) == anchor + 5400)
        #expect(every.next(after: anchor + 5400, in: berlin, anchor: anchor) == anchor + 10_800)
        #expect(every.next(after: anchor + 12_345, in: .utc, anchor: anchor) == anchor + 16_200)
        // Neither before the anchor nor at it.
        #expect(every.next(after: anchor - 1_000_000, in: .utc, anchor: anchor) == anchor + 5400)
    }

    @Test func `every fire is later than the one asked for, and matches`() throws {
        let zone = try zones.zone("Africa/Casablanca")
        for text in ["*/7 * * * *", "13 3 * * *", "0 2,3 * * *", "59 59 23 L * *", "0 0 1 1 *"] {
            let expression = try CronExpression(text)
            var last = wall("2026-01-01T00:00")
            for _ in 0..<2000 {
                let next = try #require(expression.next(after: last, in: zone))
                #expect(next > last)
                last = next
            }
        }
    }
}
