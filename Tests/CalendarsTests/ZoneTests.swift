import Glibc
import Postgres
import TestSupport
import Testing

@testable import Calendars

/// `2030-01-31T12:00` as if it were UTC.
func wall(_ text: String) -> Int64 {
    let parts = text.split { "-T:".contains($0) }.compactMap { Int($0) }
    let day = CivilDate(year: parts[0], month: parts[1], day: parts[2]).dayNumber
    return Int64(day * 86_400 + parts[3] * 3600 + parts[4] * 60 + (parts.count > 5 ? parts[5] : 0))
}

/// What the zone's clock shows.
func shown(_ instant: Int64, in zone: Zone) -> String {
    let wall = zone.wall(at: instant)
    let date = CivilDate(dayNumber: Int(floorDivide(wall, 86_400)))
    let second = Int(wall - Int64(date.dayNumber) * 86_400)
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(date.year)-\(two(date.month))-\(two(date.day))T\(two(second / 3600)):\(two(second / 60 % 60))"
        + (second % 60 == 0 ? "" : ":\(two(second % 60))")
}

let zones = ZoneFiles(directory: "/usr/share/zoneinfo")

@Suite struct ZoneTests {
    @Test func `a zone knows its offsets, gaps and overlaps`() throws {
        let berlin = try zones.zone("Europe/Berlin")
        #expect(berlin.offset(at: wall("2026-01-15T12:00")) == 3600)
        #expect(berlin.offset(at: wall("2026-07-15T12:00")) == 7200)
        #expect(berlin.instants(showing: wall("2026-03-29T02:30")) == [])
        #expect(berlin.instants(showing: wall("2026-03-29T03:00")) == [wall("2026-03-29T01:00")])
        #expect(
            berlin.instants(showing: wall("2026-10-25T02:30"))
                == [wall("2026-10-25T00:30"), wall("2026-10-25T01:30")])
        #expect(berlin.first(showing: wall("2026-03-29T02:30")) == wall("2026-03-29T01:00"))
        #expect(berlin.first(showing: wall("2026-10-25T02:30")) == wall("2026-10-25T00:30"))
    }

    @Test func `what lies behind the last change of the file follows its rule, however far ahead`() throws {
        let berlin = try zones.zone("Europe/Berlin")
        for year in [2038, 2100, 2437, 2439, 2840, 9999] {
            #expect(berlin.offset(at: wall("\(year)-01-15T12:00")) == 3600, "\(year)")
            #expect(berlin.offset(at: wall("\(year)-07-15T12:00")) == 7200, "\(year)")
            let sunday = CivilDate(year: year, month: 10, day: 31)
            let day = 31 - sunday.weekday
            #expect(berlin.instants(showing: wall("\(year)-10-\(day)T02:30")).count == 2, "\(year)")
            #expect(berlin.instants(showing: wall("\(year)-10-\(day)T03:00")).count == 1, "\(year)")
        }
    }

    @Test func `a skipped day, half an hour, and midnights that come twice or not at all`() throws {
        let apia = try zones.zone("Pacific/Apia")
        #expect(apia.instants(showing: wall("2011-12-30T12:00")) == [])
        #expect(shown(apia.first(showing: wall("2011-12-30T12:00")), in: apia) == "2011-12-31T00:00")
        let howe = try zones.zone("Australia/Lord_Howe")
        #expect(howe.instants(showing: wall("2026-10-04T02:15")) == [])
        #expect(shown(howe.first(showing: wall("2026-10-04T02:15")), in: howe) == "2026-10-04T02:30")
        #expect(howe.instants(showing: wall("2026-04-05T01:45")).count == 2)
        let paulo = try zones.zone("America/Sao_Paulo")
        #expect(shown(paulo.first(showing: wall("2017-10-15T00:00")), in: paulo) == "2017-10-15T01:00")
        #expect(try zones.zone("America/Havana").instants(showing: wall("2025-11-02T00:30")).count == 2)
    }

    /// All zones, at times far beyond the lists in the files, and at listed ones: Postgres has its own code for both.
    @Test func `Postgres shows the same times in every zone`() async throws {
        try await withConnection { connection in
            let instants = stride(
                from: wall("1975-01-01T06:00"), to: wall("2090-01-01T00:00"), by: 40 * 86_400 + 25_200
            )
            .map { $0 }
            // An abbreviation hides a zone of the same name there: CET is always an hour.
            let known = Set(
                try await connection.column(
                    "select name from pg_timezone_names where name not in (select abbrev from pg_timezone_abbrevs)"))
            let shared = zones.names.filter { known.contains($0) }
            #expect(shared.count > 400)
            var differences: [String] = []
            for name in shared {
                let zone = try zones.zone(name)
                let theirs = try await connection.query(
                    "select array(select extract(epoch from to_timestamp(i) at time zone $1)::bigint from unnest($2::bigint[]) with ordinality u(i, o) order by o)",
                    [.text(name), .int8s(instants)]
                ) { row throws(PostgresError) in try row.ints(0) }
                if theirs.first != instants.map(zone.wall(at:)) { differences.append(name) }
            }
            #expect(differences == [])
            print("compared \(shared.count) zones with Postgres at \(instants.count) instants from 1975 to 2090")
        }
    }

    @Test func `names lead to zone files and nowhere else`() throws {
        let hostile = [
            "../../../etc/passwd", "/etc/passwd", "Europe/../Europe/Berlin", "", "Europe", "Europe/", "tzdata.zi",
            "a b",
            "right/UTC", "posix/Europe/Berlin", "Europe//Berlin", "\u{1B}[31m", String(repeating: "a", count: 300),
        ]
        for name in hostile {
            let error = #expect(throws: ZoneError.self) { try zones.zone(name) }
            #expect(error?.description.contains("\u{1B}") == false)
        }
        #expect(zones.names.contains("Asia/Kathmandu"))
        #expect(!zones.names.contains { $0.hasPrefix("right/") || $0.hasPrefix("posix") })
        #expect(Set(zones.names).count == zones.names.count)
    }

    @Test(arguments: [
        ("europe/berlin", "Europe/Berlin"), ("Berlin", "Europe/Berlin"), ("america/new york", "America/New_York"),
        ("Europe/Kathmandu", "Asia/Kathmandu"),
    ])
    func `a name that is nearly right gets the right one`(typed: String, meant: String) {
        let error = #expect(throws: ZoneError.self) { try zones.zone(typed) }
        #expect(error == .unknown(typed, near: meant) || error?.description.contains("did you mean \(meant)?") == true)
    }

    @Test func `without zone files there is UTC, and a sentence for the rest`() throws {
        let none = ZoneFiles(directory: "/nonexistent")
        #expect(try none.zone("UTC") == .utc)
        let error = #expect(throws: ZoneError.self) { try none.zone("Europe/Berlin") }
        #expect(error?.description.contains("tzdata") == true)
    }

    @Test func `a damaged file is refused, wherever it is cut or changed`() throws {
        let bytes = try fileBytes("/usr/share/zoneinfo/Africa/Casablanca")
        for length in stride(from: 0, to: bytes.count - 1, by: 37) {
            // Cut within the footer it is still a zone, only without its rule; before that it is none.
            _ = try? ZoneFile.read(Array(bytes.prefix(length)), name: "x")
        }
        #expect(throws: ZoneFile.Malformed.self) { try ZoneFile.read(Array(bytes.prefix(200)), name: "x") }
        #expect(throws: ZoneFile.Malformed.self) { try ZoneFile.read([], name: "x") }
        #expect(throws: ZoneFile.Malformed.self) { try ZoneFile.read(Array("TZif3".utf8), name: "x") }
        for place in stride(from: 0, to: bytes.count, by: 11) {
            var changed = bytes
            changed[place] ^= 0xFF
            if let zone = try? ZoneFile.read(changed, name: "x") { _ = zone.offset(at: 1_800_000_000) }
        }
    }

    @Test func `rules are read in all their forms`() throws {
        let rule = try #require(ZoneRule("<-03>3<-02>,J60/-1:30,300/26"))
        #expect(rule.offset == -10_800)
        #expect(rule.summer?.offset == -7200)
        #expect(rule.summer?.begins == ZoneRule.Change(day: .withoutLeap(60), time: -5400))
        #expect(rule.summer?.ends == ZoneRule.Change(day: .counted(300), time: 93_600))
        // J60 is always the first of March.
        #expect(rule.summer?.begins.wall(in: 2028) == wall("2028-02-29T22:30"))
        #expect(rule.summer?.begins.wall(in: 2027) == wall("2027-02-28T22:30"))
        #expect(try #require(ZoneRule("IST-5:30")) == ZoneRule(offset: 19_800, summer: nil))
        for malformed in ["", "CE-1", "CET", "CET-1CEST", "CET-1CEST,M13.1.0,M1.1.0", "CET-1CEST,M3.5.0", "CET-25"] {
            #expect(ZoneRule(malformed) == nil, "\(malformed)")
        }
    }

    @Test func `a summer that lasts all year is a summer`() {
        // RFC 8536, 3.3.1: the way to write an offset that never changes as a summer.
        var line = ZoneLine(first: -18_000)
        let rule = ZoneRule("EST5EDT,0/0,J365/25")
        for year in 2020...2024 {
            for change in rule?.changes(in: year) ?? [] { line.append(change.offset, from: change.time) }
        }
        #expect(line.offsets == [-18_000, -14_400] || line.offsets == [-18_000, -14_400, -18_000])
        #expect(line.segment(at: wall("2022-01-01T04:30")).offset == -14_400)
    }
}

func fileBytes(_ path: String) throws -> [UInt8] {
    let file = try #require(fopen(path, "r"))
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
}
