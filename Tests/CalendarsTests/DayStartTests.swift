import Postgres
import TestSupport
import Testing

@testable import Calendars

/// The database decides when a day begins, too.
@Suite struct DayStartTests {
    @Test func `SQL and Swift begin every day at the same instant, near every change of every zone`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let known = Set(
                try await connection.column(
                    "select name from pg_timezone_names where name not in (select abbrev from pg_timezone_abbrevs)"))
            var seen: [ZoneLine] = []
            var compared = 0
            var differences: [String] = []
            for name in zones.names where known.contains(name) {
                let zone = try zones.zone(name)
                guard !seen.contains(zone.line) else { continue }
                seen.append(zone.line)
                let days = Self.days(of: zone)
                let theirs = try await connection.query(
                    """
                    select extract(epoch from millrace.day_start(date '1970-01-01' + n::int, $1))::bigint
                      from unnest($2::bigint[]) with ordinality u(n, place) order by place
                    """, [.text(name), .int8s(days.map { Int64($0) })]
                ) { row throws(PostgresError) in try row.int(0) }
                for (number, their) in zip(days, theirs) {
                    compared += 1
                    let date = CivilDate(dayNumber: number)
                    if zone.startOfDay(date) != their { differences.append("\(name) \(date): \(their)") }
                }
            }
            #expect(differences.isEmpty, "\(differences.prefix(20))")
            #expect(compared > 20_000)
            print("compared the beginnings of \(compared) days with millrace.day_start")
            await connection.close()
        }
    }

    /// Two days around each change from 1990 to 2040, and the first of each year.
    private static func days(of zone: Zone) -> [Int] {
        let (from, until) = (wall("1990-01-01T00:00"), wall("2041-01-01T00:00"))
        var found: Set<Int> = Set((1990...2040).map { CivilDate(year: $0, month: 1, day: 1).dayNumber })
        var segment = zone.segment(at: from)
        while segment.end < until {
            let number = zone.date(at: segment.end).dayNumber
            found.formUnion(number - 2...number + 2)
            segment = zone.segment(at: segment.end)
        }
        return found.sorted()
    }
}
