import FoundationEssentials
import Postgres
import TestSupport
import Testing

@testable import Quests

@Suite struct QuestTests {
    /// A family whose quest of the day is of this kind.
    static func withFamily(_ kind: String = "family_chat", _ body: (Connection) async throws -> Void) async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                "select millrace.quest_rules_set('{\"catalogue\": [{\"kind\": \"\(kind)\", \"title\": \"T\"}]}')")
            try await connection.makeFamily(teens: ["kid", "sis"])
            try await body(connection)
        }
    }

    @Test func `a quest of the catalogue keeps its id and its description`() async throws {
        try await Self.withFamily { connection in
            func set(_ description: String) -> String {
                """
                millrace.quest_rules_set('{"catalogue": [{"kind": "family_chat", "title": "T", "id": "chat-1", "description": "\(description)"}]}')
                """
            }
            #expect(try await connection.bool(set("Ask your sister.")))
            #expect(try await connection.bool(set("Ask your sister.")) == false)
            let quest = "millrace.quest_today('f', actor => 'kid')"
            #expect(try await connection.value("\(quest) ->> 'id'") == "chat-1")
            #expect(try await connection.value("\(quest) ->> 'description'") == "Ask your sister.")
            #expect(try await connection.bool(set("Ask your brother.")))
            #expect(try await connection.value("\(quest) ->> 'description'") == "Ask your brother.")
            let refusal = try await connection.refusal(
                of:
                    #"select millrace.quest_rules_set('{"catalogue": [{"kind": "family_chat", "title": "T", "id": ""}]}')"#
            )
            #expect(refusal?.sqlState == "22023")
        }
    }

    @Test func `points are five, two, one and ten, each once`() async throws {
        try await Self.withFamily("share_hobby") { connection in
            // A first hobby that is also the quest gives six.
            let hobby =
                try await connection.value("millrace.hobby_save('kid', 'Chess', 'Bishops go aslant', actor => 'kid')")
                ?? ""
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 6)
            #expect(
                try await connection.value("millrace.hobby_save('kid', ' CHESS ', 'Bishops go aslant', actor => 'kid')")
                    == hobby)
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 6)
            #expect(try await connection.bool("millrace.hobby_seen('\(hobby)', 'sis', 'sis')"))
            #expect(try await connection.bool("millrace.hobby_seen('\(hobby)', 'sis', 'sis')") == false)
            #expect(try await connection.bool("millrace.hobby_seen('\(hobby)', 'kid', 'kid')") == false)
            let card = try await connection.value("select id from millrace.cards('f', actor => 'sis')") ?? ""
            #expect(
                try await connection.value(
                    "millrace.card_answer('\(card)', 'sis', 'checkers', actor => 'sis') ->> 'right'") == "false")
            #expect(
                try await connection.value(
                    "millrace.card_answer('\(card)', 'sis', 'chess', actor => 'sis') ->> 'awarded'") == "0")
            #expect(try await connection.int("millrace.points('sis', 'sis')") == 3)
            #expect(
                try await connection.refusal(
                    of: "select millrace.card_answer('\(card)', 'kid', 'chess', actor => 'kid')")?.sqlState == "42501")
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test func `seven days of moods bring ten points, and deleting one takes them back`() async throws {
        try await Self.withFamily { connection in
            for day in 1...7 {
                try await connection.run(
                    "select millrace.mood_log('kid', 'Happy', actor => 'kid'), millrace.mood_log('kid', '#5DADE2', actor => 'kid')"
                )
                #expect(try await connection.int("millrace.streak('kid', 'kid') ->> 'current'") == day)
                #expect(try await connection.int("millrace.points('kid', 'kid')") == (day == 7 ? 10 : 0))
                if day < 7 { try await connection.advance(by: "1 day") }
            }
            #expect(
                try await connection.column(
                    "select distinct color from millrace.moods('kid', actor => 'kid') order by 1") == ["happy", "sad"])
            let old = try await connection.column(
                "select id from millrace.moods('kid', actor => 'kid') order by at limit 2")
            for (n, id) in old.enumerated() {
                #expect(try await connection.bool("millrace.mood_delete('\(id)', 'kid')"))
                #expect(try await connection.int("millrace.points('kid', 'kid')") == (n == 0 ? 10 : 0))
            }
            #expect(try await connection.bool("millrace.mood_delete('\(old[0])', 'kid')") == false)
            #expect(try await connection.int("millrace.streak('kid', 'kid') ->> 'current'") == 6)
            #expect(
                try await connection.column("select delta from millrace.points_ledger order by at") == ["10", "-10"])
            try await connection.advance(by: "1 day")
            try await connection.run("select millrace.mood_log('kid', 'tired', actor => 'kid')")
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 10)
            try await connection.advance(by: "3 days")
            // The freeze that the week earned covers one day; two are too many.
            #expect(try await connection.int("millrace.streak('kid', 'kid') ->> 'current'") == 0)
            try await connection.rollOver()
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test func `others see a mood after its buffer, strangers never`() async throws {
        try await Self.withFamily { connection in
            let id = "11111111-2222-3333-4444-555555555555"
            let log = "millrace.mood_log('kid', 'calm', buffer => '10 min', id => '\(id)', actor => 'kid')"
            #expect(try await connection.value(log) == id)
            #expect(try await connection.value(log) == id)
            #expect(
                try await connection.refusal(
                    of: "select millrace.mood_log('kid', 'sad', id => '\(id)', actor => 'kid')")?.sqlState == "23505")
            #expect(try await connection.int("select count(*) from millrace.moods('kid', actor => 'kid')") == 1)
            #expect(try await connection.int("select count(*) from millrace.moods('kid', actor => 'sis')") == 0)
            #expect(
                try await connection.refusal(of: "select millrace.moods('kid', actor => 'stranger')")?.sqlState
                    == "42501")
            #expect(
                try await connection.column("select status from millrace.notices where key = 'mood_buffer:\(id)'") == [
                    "pending"
                ])
            try await connection.advance(by: "11 minutes")
            #expect(try await connection.int("select count(*) from millrace.moods('kid', actor => 'sis')") == 1)
            #expect(
                try await connection.refusal(of: "select millrace.mood_delete('\(id)', 'f-mum')")?.sqlState == "P0002")
            #expect(try await connection.bool("millrace.mood_delete('\(id)', 'kid')"))
            #expect(try await connection.int("select count(*) from millrace.moods('kid', actor => 'kid')") == 0)
        }
    }

    @Test func `a quest is undone by a row of its own, and may be done again`() async throws {
        try await Self.withFamily { connection in
            try await connection.rollOver()
            let complete = "millrace.quest_complete('f', 'kid', actor => 'kid')"
            #expect(try await connection.int("\(complete) ->> 'awarded'") == 1)
            #expect(try await connection.int("\(complete) ->> 'awarded'") == 0)
            #expect(
                try await connection.refusal(of: "select millrace.quest_undo('f', 'kid', actor => 'sis')")?.sqlState
                    == "42501")
            #expect(try await connection.int("millrace.quest_undo('f', 'kid', actor => 'f-mum') ->> 'total'") == 0)
            #expect(try await connection.value("millrace.quest_today('f', 'kid') ->> 'state'") == "open")
            #expect(try await connection.int("\(complete) ->> 'total'") == 1)
            #expect(
                try await connection.column("select delta from millrace.points_ledger order by at") == ["1", "-1", "1"])
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test func `what was done offline counts once, until the grace is over`() async throws {
        try await Self.withFamily { connection in
            try await connection.run(
                "update millrace.test_clock set shift = timestamptz '2027-05-10 20:00Z' - clock_timestamp()")
            try await connection.rollOver()
            try await connection.advance(by: "4 hours")  // two at night in Berlin: the 11th
            let done = "millrace.quest_complete('f', 'kid', at => '2027-05-10 21:00Z', actor => 'kid')"
            #expect(try await connection.value("\(done) ->> 'day'") == "2027-05-10")
            try await connection.rollOver()
            #expect(try await connection.int("\(done) ->> 'awarded'") == 0)
            #expect(try await connection.value("select state from millrace.quests where day = '2027-05-10'") == "done")
            #expect(try await connection.int("select streak from millrace.families") == 1)
            try await connection.run("select millrace.quest_complete('f', 'sis', day => '2027-05-10', actor => 'sis')")
            try await connection.advance(by: "6 hours")
            let late = try await connection.refusal(
                of: "select millrace.quest_complete('f', 'f-mum', at => '2027-05-10 21:00Z', actor => 'f-mum')")
            #expect(late?.sqlState == "55000" && late?.hint?.contains("2027-05-11T04:00:00Z") == true)
            let early = try await connection.refusal(
                of: "select millrace.quest_complete('f', 'f-mum', day => '2027-05-12', actor => 'f-mum')")
            #expect(early?.sqlState == "22023")
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test func `a thousand completions by one member are one award`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.makeFamily(zone: "UTC")
            try await Self.completeAtOnce(1000, in: database) { _ in ("f", "kid") }
            #expect(try await owner.records("select sum(delta), count(*) from millrace.points_ledger") == ["(1,1)"])
            await owner.close()
        }
    }

    @Test func `a thousand members complete a quest, and each has one point`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.makeFamily(zone: "UTC", teens: [])
            try await owner.run(
                "select count(millrace.family_join('f', 'p' || n, 'teen')) from generate_series(0, 999) n")
            try await Self.completeAtOnce(1000, in: database) { ("f", "p\($0)") }
            #expect(
                try await owner.records(
                    "select sum(delta), count(*), count(distinct person), max(delta) from millrace.points_ledger") == [
                        "(1000,1000,1000,1)"
                    ])
            await owner.close()
        }
    }

    private static func completeAtOnce(
        _ calls: Int, in database: TestDatabase, _ who: @Sendable @escaping (Int) -> (String, String)
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<20 {
                group.addTask {
                    let connection = try await database.connect()
                    for n in stride(from: lane, to: calls, by: 20) {
                        let (family, person) = who(n)
                        try await connection.run(
                            "select millrace.quest_complete('\(family)', '\(person)', actor => '\(person)')")
                    }
                    await connection.close()
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `with claims everybody acts as themselves, and parents alone change the family`() async throws {
        try await Self.withFamily { connection in
            try await connection.signIn("kid")
            #expect(try await connection.int("millrace.quest_complete('f', 'kid') ->> 'awarded'") == 1)
            for call in [
                "quest_complete('f', 'kid', actor => 'sis')", "quest_complete('f', 'sis')", "mood_log('sis', 'happy')",
                "points('sis')",
                "family_zone('f', 'UTC')", "family_join('f', 'x', 'teen')", "family_leave('f', 'sis')",
                "person_erase('sis')", "quest_undo('f', 'sis')",
                "weekly_stats('f-mum')", "hobbies('g')",
            ] {
                let refusal = try await connection.refusal(of: "select millrace.\(call)")
                #expect(
                    refusal?.sqlState == "42501" && refusal?.hint?.isEmpty == false
                        && refusal?.detail?.contains("permission") == true, "\(call)")
            }
            try await connection.signIn("f-mum")
            #expect(try await connection.int("millrace.points('kid')") == 1)
            #expect(try await connection.value("millrace.weekly_stats('kid') ->> 'quests'") == "1")
            #expect(try await connection.bool("millrace.family_zone('f', 'Asia/Tokyo')"))
            #expect(try await connection.bool("millrace.family_leave('f', 'sis')"))
            try await connection.signIn(nil)
            #expect(try await connection.refusal(of: "select millrace.points('kid')")?.sqlState == "22023")
        }
    }

    @Test func `bad input is refused with its field`() async throws {
        try await Self.withFamily { connection in
            for (call, state, field) in [
                ("family_create('', 'UTC')", "22023", "family"), ("family_create('g', 'Mars/Base')", "22023", "zone"),
                ("family_create('g', 'UTC', 7)", "22023", "week_starts"),
                ("family_create('f', 'UTC')", "23505", "family"),
                ("family_join('f', 'y', 'uncle')", "22023", "role"),
                ("family_join('h', 'y', 'teen')", "P0002", "family"),
                ("mood_log('kid', 'blue', actor => 'kid')", "22023", "color"),
                ("hobby_seen(gen_random_uuid(), 'ghost', 'ghost')", "P0002", "person"),
                ("hobby_save('kid', '', 'x', actor => 'kid')", "22023", "name"),
                ("moods('kid', page => 501, actor => 'kid')", "22023", "page"),
                ("quest_complete_many('[{\"x\": 1}]', 'kid')", "22023", "completions"),
                ("points_award('kid', 0, 'k', 'r')", "22023", "delta"),
                ("notice_send('kid', 'a b')", "22023", "kind"),
                ("quest_rules_set('{\"catalogue\": []}')", "22023", "catalogue"),
                ("quest_rules_set('{\"gracee\": 1}')", "22023", "rules"),
            ] {
                let refusal = try await connection.refusal(of: "select millrace.\(call)")
                #expect(
                    refusal?.sqlState == state && refusal?.detail?.contains("\"\(field)\"") == true,
                    "\(call): \(refusal?.message ?? "taken")")
            }
        }
    }

    @Test func `batches are all or nothing`() async throws {
        try await Self.withFamily { connection in
            try await connection.rollOver()
            let moods = #"[{"person": "kid", "color": "happy"}, {"person": "kid", "color": "sad"}]"#
            #expect(try await connection.int("jsonb_array_length(millrace.mood_log_many('\(moods)', 'kid'))") == 2)
            let wrong = #"[{"person": "kid", "color": "happy"}, {"person": "kid", "color": "mauve"}]"#
            #expect(
                try await connection.refusal(of: "select millrace.mood_log_many('\(wrong)', 'kid')")?.sqlState
                    == "22023")
            #expect(try await connection.int("select count(*) from millrace.moods('kid', actor => 'kid')") == 2)
            let done = #"[{"family": "f", "person": "kid"}, {"family": "f", "person": "kid"}]"#
            #expect(
                try await connection.value(
                    "select string_agg(e ->> 'awarded', ',') from jsonb_array_elements(millrace.quest_complete_many('\(done)', 'kid')) e"
                ) == "1,0")
        }
    }

    @Test func `an erased person is nowhere, and the family keeps its streak`() async throws {
        try await Self.withFamily { connection in
            try await connection.run(
                "select millrace.quest_complete('f', 'kid', actor => 'kid'), millrace.mood_log('kid', 'happy', actor => 'kid')"
            )
            let hobby = try await connection.value("millrace.hobby_save('kid', 'Chess', 'Old', actor => 'kid')") ?? ""
            try await connection.run("select millrace.hobby_seen('\(hobby)', 'sis', 'sis')")
            try await connection.advance(by: "1 day")
            try await connection.rollOver()
            try await connection.run(
                "create function millrace.letters_erase_person(person text) returns bigint language sql as 'select 3::bigint'"
            )
            let answer = try await connection.value("millrace.person_erase('kid', 'kid')") ?? ""
            #expect(!answer.contains("letters"), "a function is not called for its name")
            #expect(answer.contains(#""quests""#) && answer.contains(#""notices""#))
            let tables = try await connection.column(
                "select table_name || '.' || column_name from information_schema.columns where table_schema = 'millrace' and column_name in ('person', 'key', 'actor')"
            )
            for place in tables {
                let parts = place.split(separator: ".")
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.\(parts[0]) x where x.\(parts[1])::text ~ '\\ykid\\y'") == 0,
                    "\(place)")
            }
            #expect(try await connection.records("select streak, best from millrace.families") == ["(1,1)"])
            #expect(try await connection.int("millrace.points('sis', 'sis')") == 1)
            #expect(try await connection.findings().isEmpty)
        }
    }

    @Test func `reminders keep quiet at night, are moved and cancelled, and come once`() async throws {
        try await Self.withFamily { connection in
            try await connection.run(
                "update millrace.test_clock set shift = timestamptz '2027-05-10 20:00Z' - clock_timestamp()")
            try await connection.rollOver()
            try await connection.advance(by: "3 hours")
            try await connection.rollOver()
            let due =
                "select kind || ' ' || due_at from millrace.notices where person = 'kid' and key like '%:2027-05-11' and status = 'pending' order by 1"
            #expect(
                try await connection.column(due) == [
                    "daily_reminder 2027-05-11 17:00:00+00", "quest_available 2027-05-11 05:00:00+00",
                ])
            try await connection.run("select millrace.family_zone('f', 'Europe/Lisbon')")
            #expect(
                try await connection.column(due) == [
                    "daily_reminder 2027-05-11 18:00:00+00", "quest_available 2027-05-11 06:00:00+00",
                ])
            try await connection.run(
                "select millrace.quest_complete('f', 'kid', actor => 'kid'), millrace.mood_log('kid', 'calm', actor => 'kid')"
            )
            #expect(try await connection.column(due).isEmpty)
            #expect(
                try await connection.bool(
                    "millrace.notice_move('sis', 'daily_reminder:2027-05-11', '2027-05-11 15:00Z')"))
            #expect(try await connection.bool("millrace.notice_cancel('sis', 'daily_reminder:2027-05-11')"))
            #expect(
                try await connection.bool(
                    "millrace.notice_move('sis', 'daily_reminder:2027-05-11', '2027-05-11 16:00Z')") == false)
            #expect(
                try await connection.int(
                    "select count(*) from (select person, key from millrace.notices group by 1, 2 having count(*) > 1) q"
                ) == 0)
            // Three days in a row put something at risk.
            for _ in 0..<3 {
                try await connection.run("select millrace.quest_complete('f', 'kid', actor => 'kid')")
                try await connection.advance(by: "1 day")
                try await connection.rollOver()
            }
            let risk = "select status from millrace.notices where kind = 'streak_at_risk' and due_at > millrace.now()"
            #expect(try await connection.column(risk) == ["pending", "pending", "pending"])
            try await connection.run("select millrace.quest_complete('f', 'sis', actor => 'sis')")
            #expect(try await connection.column(risk) == ["cancelled", "cancelled", "cancelled"])
        }
    }

    @Test func `what is wrong is found and mended`() async throws {
        try await Self.withFamily { connection in
            for _ in 0..<9 {
                try await connection.run(
                    "select millrace.quest_complete('f', 'kid', actor => 'kid'), millrace.mood_log('kid', 'calm', actor => 'kid')"
                )
                try await connection.advance(by: "1 day")
                try await connection.rollOver()
            }
            #expect(try await connection.findings().isEmpty)
            try await connection.run("update millrace.quest_family set streak = 3")
            try await connection.run("update millrace.quest_person set mood_streak = 1 where person = 'kid'")
            try await connection.run(
                "update millrace.quest set state = 'missed' where day = (select min(day) from millrace.quest)")
            try await connection.run("delete from millrace.points_ledger where key like 'mood_streak:%'")
            try await connection.run(
                "delete from millrace.points_ledger where key = (select min(key) from millrace.points_ledger)")
            try await connection.run(
                "insert into millrace.points_ledger values ('kid', 'hobby:ghost', 5, 'hobby', '2020-01-01', now())")
            let found = try await connection.findings(true)
            #expect(found.map(\.what).sorted() == ["award", "award", "award", "day", "streak", "streak"])
            #expect(try await connection.findings().isEmpty)
            #expect(try await connection.int("millrace.points('kid', 'kid')") == 19)
        }
    }
}
