import Calendars
import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import Composition
@testable import MillraceCommand

/// `status --at` and `versions`: the fleet as it was.
@Suite struct PastTests {
    private static let now = Date(timeIntervalSince1970: 1_893_456_000)  // 2030-01-01T00:00:00Z
    private static let berlin = LocalZone.find(["TZ": "Europe/Berlin"])

    @Test(arguments: [
        ("2h", "2029-12-31T22:00:00Z"), ("-2h", "2029-12-31T22:00:00Z"), ("-1h30m", "2029-12-31T22:30:00Z"),
        // It is one o'clock in Berlin: 00:30 was half an hour ago, 01:30 yesterday.
        ("00:30", "2029-12-31T23:30:00Z"), ("01:30", "2029-12-31T00:30:00Z"), ("3:12:05", "2029-12-31T02:12:05Z"),
        ("2029-07-01 03:12", "2029-07-01T01:12:00Z"), ("2029-07-01T03:12", "2029-07-01T01:12:00Z"),
        ("2029-07-01", "2029-06-30T22:00:00Z"), ("2029-07-01T03:12:00Z", "2029-07-01T03:12:00Z"),
        ("2029-07-01T03:12:00.5+04:00", "2029-06-30T23:12:00.500Z"),
        // The clock goes from 2 to 3: this time does not exist, and the first one after it is meant.
        ("2029-03-25 02:30", "2029-03-25T01:00:00Z"),
    ])
    func `a time is read in the zone of the machine`(text: String, expected: String) throws {
        let date = try PastTimeText.read(text).date(now: Self.now, zone: Self.berlin)
        #expect(InstantText.spell(date) == expected)
    }

    @Test(arguments: [
        "", "soon", "25:00", "12:61", "2029-02-30", "2029-13-01", "3", "2029-07-01T03:12 Berlin", "1:2:3:4",
    ])
    func `a text that is no time is refused`(text: String) {
        #expect(throws: ValueRefusal.self) { try PastTimeText.read(text) }
    }

    /// A night: jobs wait and fail at 03:12, a version was deployed before, and now all is quiet.
    private static let night = """
        update millrace.test_clock set shift = timestamptz '2030-06-02 01:00Z' - clock_timestamp();
        select * from millrace.maintain();
        select millrace.register_kinds('{mail.send}', '{mail}');
        select millrace.session_open(1, 'worker-1', 'host', 1, '1.4', null, array(select id from millrace.kind), 8, false);
        select millrace.test_clock_advance('5 min');
        select millrace.beat(1, 'working', 3, 0, 0, array[millrace.queue_id('mail')], array[millrace.kind_id('mail.send')], array[90], array[2],
            array[0], array[0], array[0], array[9000]::bigint[]);
        select millrace.test_clock_advance('10 s'); select * from millrace.sample_take();
        select millrace.session_open(2, 'worker-2', 'host', 2, '1.5', null, array(select id from millrace.kind), 8, false);
        select millrace.enqueue('mail.send'), millrace.enqueue('mail.send');
        select millrace.provider_force('resend', 'open', 'their maintenance');
        select millrace.test_clock_advance('400 s');
        select millrace.beat(2, 'working', 3, 0, 0, array[millrace.queue_id('mail')], array[millrace.kind_id('mail.send')], array[8], array[12],
            array[0], array[0], array[0], array[40000]::bigint[]);
        select millrace.test_clock_advance('30 s'); select * from millrace.sample_take();
        delete from millrace.ready;
        select millrace.session_close(2), millrace.session_close(1);
        select millrace.test_clock_advance('30 min'); select * from millrace.sample_take()
        """

    @Test func `status says what was wrong at a time of last night, and where the fleet was`() async throws {
        try await withDatabase(.movableClock) { database in
            try await database.change(Self.night)
            let environment = ["TZ": "Europe/Berlin", "DATABASE_URL": database.url]
            let then = await millrace("status", "--at", "03:12:30", environment: environment, columns: 200)
            #expect(then.code == .degraded, "\(then.output)\(then.errors)")
            for part in [
                "DEGRADED", "as it was at 2030-06-02T03:12:20+02:00 (Europe/Berlin)",
                "mail: the oldest job waited for 7m",
                "mail.send: 12 of 20 runs failed in the 5 minutes before", "resend was forced open",
                "worker-2", "1.5", "deploy", "1.5 after 1.4", "provider forced", "worker started",
            ] {
                #expect(then.output.contains(part), "\(part) in \(then.output)")
            }
            let before = await millrace("status", "--at", "2030-06-02T01:05:30Z", "--quiet", environment: environment)
            #expect(before.code == .done && before.output.hasPrefix("OK  nothing needed attention"), "\(before.output)")
            let json = await millrace("status", "--at", "-20m", "--json", environment: environment)
            #expect(
                json.code == .notFound && json.errors.contains("nobody sampled around 2030-06-02T03:"), "\(json.errors)"
            )
        }
    }

    @Test func `a time that is not kept is refused with those that are`() async throws {
        try await withDatabase(.movableClock) { database in
            let environment = ["TZ": "UTC", "DATABASE_URL": database.url]
            let none = await millrace("status", "--at", "2h", environment: environment)
            #expect(none.code == .notFound && none.errors.contains("there are no samples yet"), "\(none.errors)")
            try await database.change(Self.night)
            let early = await millrace("status", "--at", "2030-05-01", environment: environment)
            #expect(early.code == .notFound)
            #expect(early.errors.contains("2030-05-01T00:00:00Z (UTC) is outside what is kept"), "\(early.errors)")
            #expect(
                early.errors.contains("samples are kept from 2030-06-02T01:00:00Z to 2030-06-02T01:4"),
                "\(early.errors)")
            let both = await millrace("status", "--at", "2h", "--watch", environment: environment)
            #expect(both.code == .misused && both.errors.contains("--at looks at the past"), "\(both.errors)")
        }
    }

    @Test func `two versions are compared by kind, and the one that fails more is called worse`() async throws {
        try await withDatabase(.movableClock) { database in
            let alone = await millrace("versions", "compare", "--database-url", database.url)
            #expect(alone.code == .notFound && alone.errors.contains("there are not two versions to compare"))
            try await database.change(Self.night)
            let newest = await millrace("versions", "compare", "--json", "--database-url", database.url)
            let json = try JSONValue.read(newest.output)
            #expect(json["before"]?.text == "1.4" && json["after"]?.text == "1.5", "\(newest.output)\(newest.errors)")
            let kind = try #require(json["kinds"]?.items?.first)
            #expect(kind["kind"]?.text == "mail.send" && kind["worse"] == true)
            #expect(kind["before"]?["runs"]?.integer == 92 && kind["before"]?["failed"]?.integer == 2)
            #expect(kind["after"]?["runs"]?.integer == 20 && kind["after"]?["failed_share"] == .number("0.6"))
            #expect(kind["after"]?["run_seconds"] == .number("2.0"))
            let unknown = await millrace("versions", "compare", "1.4", "9.9", "--database-url", database.url)
            #expect(
                unknown.code == .notFound && unknown.errors.contains("no samples of version '9.9' are kept"),
                "\(unknown.errors)")
            let one = await millrace("versions", "compare", "1.4", "--database-url", database.url)
            #expect(one.code == .misused)
        }
    }

    @Test func `a run's bucket holds its duration`() {
        for milliseconds in [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 1000, 4_194_303, 4_194_304, Int32.max] as [Int32] {
            let bucket = RunTimes.bucket(milliseconds: milliseconds)
            let (from, to) = (exp2(Double(bucket - 1) / 2), exp2(Double(bucket) / 2))
            if milliseconds == 0 {
                #expect(bucket == 0)
            } else if bucket < RunTimes.count - 1 {
                #expect(
                    from <= Double(milliseconds) && Double(milliseconds) < to, "\(milliseconds) ms is not in \(bucket)")
            } else {
                #expect(from <= Double(milliseconds))
            }
        }
        var times = RunTimes()
        #expect(times.text == nil)
        for taken in [4, 5, 16] as [Int32] { times.add(milliseconds: taken) }
        #expect(times.text == "5:2,0,0,0,1")
    }
}
