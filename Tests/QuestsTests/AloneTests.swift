import Postgres
import TestSupport
import Testing

/// A person in no family, and the hour at which each is reminded.
@Suite struct AloneTests {
    @Test func `a person in no family logs moods and hobbies by the clock of its own zone`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                update millrace.test_clock set shift = timestamptz '2027-05-10 20:00Z' - clock_timestamp();
                select millrace.person_profile('kid', zone => 'Asia/Tokyo', actor => 'kid')
                """)
            for _ in 0..<7 {
                try await connection.run("select millrace.mood_log('kid', 'happy', actor => 'kid')")
                try await connection.advance(by: "1 day")
            }
            #expect(
                try await connection.column(
                    "select day from millrace.moods('kid', actor => 'kid') order by day limit 2")
                    == ["2027-05-11", "2027-05-12"])
            #expect(try await connection.int("millrace.streak('kid', 'kid') ->> 'current'") == 7)
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 10)
            // Within the grace the day before still counts, once.
            let late =
                "select millrace.mood_log('kid', 'sad', at => millrace.now() - interval '6 hours', actor => 'kid')"
            try await connection.run(late)
            #expect(
                try await connection.value("select day from millrace.moods('kid', actor => 'kid') limit 1")
                    == "2027-05-17")
            try await connection.advance(by: "2 hours")
            #expect(
                try await connection.refusal(of: late.replacing("6 hours", with: "8 hours"))?.sqlState == "55000")
            try await connection.run("select millrace.hobby_save('kid', 'Chess', 'Old', actor => 'kid')")
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 15)
            #expect(try await connection.int("select count(*) from millrace.notice") == 0)
            #expect(try await connection.int("millrace.streak('nobody', 'nobody') ->> 'current'") == 0)
        }
    }

    @Test func `what was logged alone stays one's own in a family, and a hobby is shared by saving it again`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                select millrace.mood_log('kid', 'happy', actor => 'kid'), millrace.hobby_save('kid', 'Chess', 'Old', actor => 'kid')
                """)
            try await connection.makeFamily(zone: "UTC")
            let moods = "select count(*) from millrace.moods('kid', actor => 'f-mum')"
            let hobbies = "select name from millrace.hobbies('f', actor => 'f-mum')"
            #expect(try await connection.int(moods) == 0)
            #expect(try await connection.column(hobbies).isEmpty)
            #expect(try await connection.column("select name from millrace.hobbies(null, actor => 'kid')") == ["Chess"])
            #expect(try await connection.column("select name from millrace.hobbies(null, actor => 'f-mum')").isEmpty)
            try await connection.run("select millrace.hobby_save('kid', 'chess', 'Old', actor => 'kid')")
            #expect(try await connection.column(hobbies) == ["Chess"])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.points_ledger where person = 'kid' and key = 'hobby:chess'") == 1)
            #expect(try await connection.findings().isEmpty)
            let erased = try await connection.int("millrace.person_erase('kid', 'kid') ->> 'quests'")
            #expect(erased >= 3)
            #expect(try await connection.int("select count(*) from millrace.mood where person = 'kid'") == 0)
        }
    }

    @Test func `a fact is shown to the family that it was noted in, and to no other`() async throws {
        try await withConnection(.movableClock) { connection in
            let save = "select millrace.hobby_save('kid', 'Chess', '$', actor => 'kid')"
            func facts(_ family: String, _ reader: String) async throws -> [String] {
                let cards = try await connection.column(
                    "select fact from millrace.cards('\(family)', actor => '\(reader)') order by fact")
                let hobbies = try await connection.column(
                    "select fact from millrace.hobbies('\(family)', actor => '\(reader)')")
                return cards + ["/"] + hobbies
            }
            try await connection.run(save.replacing("$", with: "alone"))
            try await connection.makeFamily(zone: "UTC")
            #expect(try await facts("f", "f-mum") == ["/"])
            let hobby = try await connection.value("select id from millrace.hobby") ?? ""
            let seen = "select millrace.hobby_seen('\(hobby)', '$', '$')"
            #expect(try await connection.refusal(of: seen.replacing("$", with: "f-mum"))?.sqlState == "P0002")
            try await connection.run(save.replacing("$", with: "joined"))
            #expect(try await facts("f", "f-mum") == ["joined", "/", "joined"])
            let card = try await connection.value("select id from millrace.card where fact = 'alone'") ?? ""
            #expect(
                try await connection.refusal(
                    of: "select millrace.card_answer('\(card)', 'f-mum', 'chess', actor => 'f-mum')")?
                    .sqlState == "P0002")
            try await connection.run(
                "\(seen.replacing("$", with: "f-mum")); select millrace.family_leave('f', 'kid'); \(save.replacing("$", with: "between"))"
            )
            try await connection.run(
                "select millrace.family_create('g', 'UTC'), millrace.family_join('g', 'eve', 'parent'), millrace.family_join('g', 'kid', 'teen')"
            )
            #expect(try await facts("g", "eve") == ["/"])
            // One that another family has on its card gets a card of its own here.
            try await connection.run(save.replacing("$", with: "joined"))
            try await connection.run(save.replacing("$", with: "moved"))
            #expect(try await facts("g", "eve") == ["joined", "moved", "/", "moved"])
            #expect(try await facts("f", "f-mum") == ["joined", "/", "joined"])
            #expect(
                try await connection.column("select seen_by from millrace.hobbies('g', actor => 'eve')") == ["{}"],
                "who looked at it in another family")
            try await connection.run("select millrace.person_erase('kid', 'kid')")
            #expect(
                try await connection.int(
                    "(select count(*) from millrace.card) + (select count(*) from millrace.hobby_share)") == 0)
        }
    }

    @Test func `each is reminded at its own hour, also when that is changed during the day`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.makeFamily(zone: "UTC", teens: ["kid", "sis"])
            try await connection.run(
                """
                update millrace.test_clock set shift = timestamptz '2027-05-10 22:00Z' - clock_timestamp();
                select millrace.person_profile('kid', reminder_hour => 8, actor => 'kid')
                """)
            try await connection.rollOver()
            try await connection.advance(by: "3 hours")
            try await connection.rollOver()
            let hours = """
                select person || ' ' || to_char(due_at at time zone 'UTC', 'DD HH24:MI') from millrace.notice
                 where key = 'daily_reminder:2027-05-11' order by person
                """
            #expect(try await connection.column(hours) == ["f-mum 11 19:00", "kid 11 08:00", "sis 11 19:00"])
            try await connection.run("select millrace.person_profile('sis', reminder_hour => 17, actor => 'sis')")
            #expect(try await connection.column(hours) == ["f-mum 11 19:00", "kid 11 08:00", "sis 11 17:00"])
            try await connection.run("select millrace.person_profile('sis', reminder_hour => -1, actor => 'sis')")
            #expect(try await connection.column(hours).last == "sis 11 19:00")
            let refusal = try await connection.refusal(
                of: "select millrace.person_profile('sis', reminder_hour => 24, actor => 'sis')")
            #expect(refusal?.sqlState == "22023")
        }
    }
}
