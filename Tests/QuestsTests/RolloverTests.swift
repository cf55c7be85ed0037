import Calendars
import FoundationEssentials
import Postgres
import TestSupport
import Testing

@testable import Quests

@Suite struct RolloverTests {
    static let places = [
        "UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Kathmandu", "Asia/Tokyo", "Africa/Cairo",
        "Pacific/Kiritimati", "Pacific/Pago_Pago", "Australia/Lord_Howe", "Atlantic/Azores", "America/St_Johns",
    ]

    /// The machine knows nothing of SQL: what both make of a month of days, moves and completions must be the same.
    @Test(arguments: 0..<6) func `families live as the machine says, through moves and pauses`(_ turn: Int) async throws
    {
        try await withConnection(.movableClock) { connection in
            var random = SystemRandomNumberGenerator()
            let zones = ZoneFiles.system
            // Into a time of year in which clocks change.
            try await connection.advance(by: "\(turn * 25) days")
            var clocks: [String: FamilyClock] = [:]
            for n in 0..<8 {
                let place = try #require(Self.places.randomElement(using: &random))
                let before = try await connection.now()
                try await connection.makeFamily("f\(n)", zone: place, teens: [])
                clocks["f\(n)"] = FamilyClock(zone: try zones.zone(place), at: before)
            }
            for _ in 0..<60 {
                try await connection.advance(by: "\(Int.random(in: 1...2400, using: &random)) minutes")
                if Bool.random(using: &random) { try await connection.rollOver(Int.random(in: 1...9, using: &random)) }
                let family = "f\(Int.random(in: 0..<8, using: &random))"
                var clock = try #require(clocks[family])
                let now = try await connection.now()
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let place = try #require(Self.places.randomElement(using: &random))
                    try await connection.run("select millrace.family_zone('\(family)', '\(place)')")
                    if place != clock.zone.name { clock.move(to: try zones.zone(place), at: now) }
                case 1:
                    var seen = clock
                    seen.pass(to: now)
                    let day = seen.today.adding(days: -Int.random(in: 0...2, using: &random))
                    let refusal = try await connection.refusal(
                        of:
                            "select millrace.quest_complete('\(family)', '\(family)-mum', '\(day)', actor => '\(family)-mum')"
                    )
                    let isTaken = clock.states[day.dayNumber] != nil || day >= clock.today
                    let agreed = isTaken && clock.complete(day, at: now, grace: 6 * 3600)
                    #expect((refusal == nil) == agreed, "\(family) \(day): \(refusal?.message ?? "taken")")
                default:
                    var seen = clock
                    seen.pass(to: now)
                    try await connection.run(
                        "select millrace.quest_complete('\(family)', '\(family)-mum', actor => '\(family)-mum')")
                    let isTaken = clock.complete(seen.today, at: now, grace: 6 * 3600)
                    #expect(isTaken)
                }
                clocks[family] = clock
            }
            try await connection.rollOver()
            let now = try await connection.now()
            for (family, clock) in clocks.sorted(by: { $0.key < $1.key }) {
                var clock = clock
                clock.pass(to: now)
                let days = try await connection.column(
                    "select day || ' ' || state from millrace.quest where family = '\(family)' order by day")
                #expect(
                    days
                        == clock.states.sorted { $0.key < $1.key }.map {
                            "\(CivilDate(dayNumber: $0.key)) \($0.value.rawValue)"
                        }, "\(family)")
                let row = try await connection.column(
                    "select array[streak, best, freezes]::text || today || extract(epoch from next_rollover_at)::bigint from millrace.quest_family where family = '\(family)'"
                )
                let streak = clock.streak
                #expect(
                    row == ["{\(streak.length),\(streak.best),\(streak.freezes)}\(clock.today)\(clock.ends)"],
                    "\(family)")
            }
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test(arguments: [1, 3, 40]) func `days without a worker leave the state of days with one`(_ days: Int) async throws
    {
        func live(isWatched: Bool) async throws -> [String] {
            try await withConnection(.movableClock) { connection in
                // The same hours in both: noon in UTC, a fixed day.
                try await connection.run(
                    "update millrace.test_clock set shift = timestamptz '2027-03-20 12:00Z' - clock_timestamp()")
                for (n, place) in Self.places.enumerated() {
                    try await connection.makeFamily("f\(n)", zone: place, teens: [])
                }
                for day in 0..<days {
                    for n in Self.places.indices where (day + n) % 3 != 0 {
                        try await connection.run(
                            "select millrace.quest_complete('f\(n)', 'f\(n)-mum', actor => 'f\(n)-mum')")
                    }
                    try await connection.advance(by: "1 day")
                    if isWatched { try await connection.rollOver() }
                }
                try await connection.rollOver()
                #expect(try await connection.findings().isEmpty)
                let summaries = try await connection.int(
                    "select count(*) from millrace.notices where kind = 'quest_summary'")
                #expect(isWatched || days == 1 ? summaries == 0 : (6...Self.places.count).contains(summaries))
                // However long no worker looked, nobody gets the same notice twice.
                let perPerson = try await connection.int(
                    "select coalesce(max(n), 0) from (select count(*) as n from millrace.notices where due_at > millrace.now() - interval '1 hour' and kind like 'quest_%' group by person) q"
                )
                #expect(perPerson <= 2)
                return try await connection.questState()
            }
        }
        let (watched, late) = (try await live(isWatched: true), try await live(isWatched: false))
        #expect(watched == late)
    }

    @Test func `a broken family fails alone, says why, and comes back when it is mended`() async throws {
        try await withConnection(.movableClock) { connection in
            for n in 0..<20 { try await connection.makeFamily("f\(n)", zone: "UTC", teens: []) }
            try await connection.run(
                """
                update millrace.quest_family set zone = 'No/Where' where family = 'f7';
                set session_replication_role = replica; update millrace.family set zone = 'No/Where' where family = 'f7'; reset session_replication_role
                """)
            try await connection.advance(by: "1 day")
            #expect(
                try await connection.records("select families, days, failed from millrace.quest_rollover()") == [
                    "(20,19,1)"
                ])
            #expect(
                try await connection.value("select problem from millrace.families where family = 'f7'")?.contains(
                    "No/Where") == true)
            #expect(try await connection.records("select broken, due from millrace.quest_state()") == ["(1,0)"])
            try await connection.advance(by: "16 minutes")
            #expect(try await connection.records("select families, failed from millrace.quest_rollover()") == ["(1,1)"])
            #expect(try await connection.int("select failures from millrace.families where family = 'f7'") == 2)
            try await connection.run("select millrace.family_zone('f7', 'UTC')")
            #expect(try await connection.value("select problem from millrace.families where family = 'f7'") == nil)
            #expect(try await connection.int("select count(distinct today) from millrace.families") == 1)
        }
    }

    @Test func `a batch takes no more than five hundred, and none that another holds`() async throws {
        try await withDatabase(.movableClock) { database in
            let one = try await database.connect()
            let other = try await database.connect()
            for n in 0..<30 { try await one.makeFamily("f\(n)", zone: "UTC", teens: []) }
            try await one.advance(by: "1 day")
            #expect(try await one.refusal(of: "select millrace.quest_rollover(501)")?.sqlState == "22023")
            try await one.run("begin")
            #expect(try await one.int("select families from millrace.quest_rollover(20)") == 20)
            #expect(try await other.int("select families from millrace.quest_rollover(500)") == 10)
            try await one.run("rollback")
            #expect(try await other.int("select families from millrace.quest_rollover(500)") == 20)
            #expect(try await other.int("select families from millrace.quest_rollover(500)") == 0)
        }
    }

    @Test func `five at once, moves at random and killed sessions leave one rollover a day and no award twice`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            try await owner.run(
                "create table public.rolled (family text, day date, primary key (family, day)); create function public.note() returns trigger language plpgsql as $$ begin insert into public.rolled values (new.family, new.today); return null; end $$; create trigger note after update of today on millrace.quest_family for each row when (old.today <> new.today) execute function public.note()"
            )
            for n in 0..<40 { try await owner.makeFamily("f\(n)", zone: Self.places[n % 12], teens: []) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<5 {
                    group.addTask {
                        for _ in 0..<40 {
                            // A session that is killed in the middle is replaced, as a worker would be.
                            guard let connection = try? await database.connect("roller") else { continue }
                            for _ in 0..<5 {
                                guard
                                    (try? await connection.int("select families from millrace.quest_rollover(7)"))
                                        != nil
                                else { break }
                                let n = Int.random(in: 0..<40)
                                let place = Self.places[Int.random(in: 0..<12)]
                                _ = try? await connection.run(
                                    "select millrace.quest_complete('f\(n)', 'f\(n)-mum', actor => 'f\(n)-mum')")
                                if n < 10 {
                                    _ = try? await connection.run("select millrace.family_zone('f\(n)', '\(place)')")
                                }
                            }
                            await connection.close()
                        }
                    }
                }
                group.addTask {
                    for _ in 0..<60 {
                        try await owner.advance(by: "\(Int.random(in: 1...700)) minutes")
                        try await owner.run(
                            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and random() < 0.1"
                        )
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
                try await group.waitForAll()
            }
            try await owner.rollOver()
            let problems = try await owner.column(
                "select distinct problem from millrace.families where problem is not null")
            #expect(problems.isEmpty, "\(problems)")
            #expect(try await owner.int("select count(*) from public.rolled") > 200)
            #expect(
                try await owner.int(
                    "select count(*) from (select family, count(*) as n, max(day) - min(day) + 1 as span from public.rolled group by family) q where n <> span"
                ) == 0)
            let findings = try await owner.findings()
            #expect(findings.isEmpty, "\(findings)")
            let done = try await owner.int("select count(*) from millrace.quest_completion where undone_at is null")
            #expect(try await owner.int("select sum(delta) from millrace.points_ledger") == done)
            await owner.close()
        }
    }

    @Test func `every local day of the zones in use begins on a quarter of an hour`() throws {
        // So that the schedule wakes at the very instant.
        for name in ZoneFiles.system.names {
            guard let zone = try? ZoneFiles.system.zone(name) else { continue }
            for number in CivilDate(year: 2025, month: 1, day: 1)
                .dayNumber...CivilDate(year: 2037, month: 1, day: 1).dayNumber
            {
                #expect(
                    zone.startOfDay(CivilDate(dayNumber: number)).isMultiple(of: 900),
                    "\(name) \(CivilDate(dayNumber: number))")
            }
        }
    }

    @Test func `a new time-zone database moves the ends of days that it changes`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.makeFamily(zone: "Asia/Tokyo")
            let ends = try await connection.value("select next_rollover_at from millrace.quest_family")
            // As if the database had known another rule.
            try await connection.run(
                "update millrace.quest_family set next_rollover_at = next_rollover_at + interval '1 hour', due_at = due_at + interval '1 hour'"
            )
            try await connection.run(
                "update millrace.family_clock set print = 'other', checked_at = checked_at - interval '2 days'")
            #expect(try await connection.int("select millrace.quest_zones_check()") == 1)
            #expect(try await connection.value("select next_rollover_at from millrace.quest_family") == ends)
            #expect(try await connection.int("select millrace.quest_zones_check()") == 0)
        }
    }

    @Test func `a reminder that moves west with its family expires with the day there`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                update millrace.test_clock set shift = timestamptz '2027-03-20 03:00Z' - clock_timestamp();
                select millrace.family_create('f', 'Asia/Tokyo'), millrace.family_join('f', 'kid', 'teen');
                select millrace.test_clock_advance('1 day');
                select * from millrace.quest_rollover()
                """)
            try await connection.run("select millrace.family_zone('f', 'America/New_York')")
            #expect(
                try await connection.column(
                    """
                    select n.kind || ' ' || (n.due_at < f.next_rollover_at) || ' ' || (n.expires_at = f.next_rollover_at)
                      from millrace.notice n, millrace.families f where n.kind = 'daily_reminder' and n.status = 'pending'
                    """) == ["daily_reminder true true"])
        }
    }
}
