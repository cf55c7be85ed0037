import Postgres
import TestSupport
import Testing

/// How long changes are kept, and what stays of a person who is erased.
@Suite struct FeedKeepingTests {
    @Test func `of an erased person nothing stays, and nothing names it; others forget by tombstones`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await connection.befriend("kid", "mum")
            try await connection.befriend("kid", "bob", step: 1)
            try await connection.run(
                """
                select millrace.check_in_arm('kid', actor => 'kid'), millrace.mood_log('kid', 'sad', actor => 'kid'), millrace.hobby_save('kid', 'Chess', 'Old', actor => 'kid');
                select millrace.quest_complete('f', 'kid', actor => 'kid'), millrace.mood_log('mum', 'happy', actor => 'mum');
                select millrace.document_register('https://a.example/1', 'a', tenant => 'kid', actor => 'kid');
                select millrace.check_in_help('kid', actor => 'kid');
                select millrace.check_in_respond(id, 'bob', 'on_my_way') from millrace.alarm
                """)
            let mum = try await connection.feed(of: "mum")
            #expect(mum.changes.contains("alarms answered") && mum.data.contains { $0.contains("kid") })
            // The name of the one who answered goes from what the others were told.
            try await connection.run("select millrace.person_erase('bob', 'bob')")
            #expect(try await connection.int("select count(*) from millrace.feed f where f::text ~ 'bob'") == 0)
            #expect(try await connection.feed(of: "kid").changes.contains("alarms answered"))

            let erased = try await connection.value("select millrace.person_erase('kid', 'kid') ->> 'feed'")
            #expect(Int(erased ?? "") ?? 0 > 10)
            #expect(try await connection.int("select count(*) from millrace.feed f where f::text ~ 'kid'") == 0)
            let later = try await connection.feed(of: "mum", since: mum.position)
            #expect(
                Set(later.changes) == ["alarms deleted", "moods deleted", "quests deleted", "quests left"]
                    && later.data.allSatisfy { $0 == "{}" || $0 == #"{"family": "f"}"# })
            #expect(Set(later.refs).isSubset(of: Set(mum.refs).union(["f"])))
            // Her own stays.
            #expect(try await connection.feed(of: "mum").data.contains { $0.contains("happy") })
        }
    }

    @Test func `changes are kept for 14 days, read or not, and the position says what went`() async throws {
        try await withConnection(.movableClock) { connection in
            func log() async throws {
                try await connection.run("select millrace.mood_log('ada', 'calm', actor => 'ada')")
            }
            func positions() async throws -> String? {
                try await connection.value("select f.newest || ' ' || f.oldest from millrace.feed_position('ada') f")
            }
            try await log()
            try await log()
            #expect(try await positions() == "2 0")
            try await connection.run("select millrace.test_clock_advance('13 days')")
            try await log()
            #expect(try await connection.int("select millrace.feed_expire()") == 0)
            try await connection.run("select millrace.test_clock_advance('1 day 1 hour')")
            #expect(try await connection.bool("select ran from millrace.maintain()"))
            #expect(try await positions() == "3 2")
            #expect(try await connection.feed(of: "ada").changes == ["moods logged"])

            // What nobody has read goes, too; a reader who was away that long learns it by the position.
            try await connection.run("select millrace.test_clock_advance('20 days')")
            try await log()
            try await connection.run("select millrace.test_clock_advance('15 days')")
            #expect(try await connection.int("select millrace.feed_expire()") == 2)
            let left = try await connection.int("select oldest from millrace.feed_position('ada')")
            let end = try await connection.feedEnd()
            #expect(left > 3 && left == end)
            try await log()
            #expect(try await connection.feed(of: "ada", since: left).changes == ["moods logged"])
        }
    }

    @Test func `of plain check-ins only the last is kept for longer than a day`() async throws {
        try await withConnection(.movableClock) { connection in
            for person in ["ada", "bob"] {
                try await connection.befriend(person, "cyd")
                try await connection.run("select millrace.check_in_arm('\(person)', '2 days', actor => '\(person)')")
            }
            let armed = (try await connection.feed(of: "ada").position, try await connection.feed(of: "bob").position)
            for step in ["1 hour", "2 hours", "3 hours"] {
                try await connection.run(
                    "select millrace.test_clock_advance('\(step)'), millrace.check_in('ada', actor => 'ada'), millrace.check_in('bob', actor => 'bob')"
                )
            }
            try await connection.run("select millrace.test_clock_advance('20 hours')")
            #expect(try await connection.int("select millrace.feed_expire()") == 2)
            let ada = try await connection.feed(of: "ada", since: armed.0)
            #expect(ada.changes == ["check-ins checked_in", "check-ins checked_in"])
            try await connection.run("select millrace.test_clock_advance('20 hours')")
            #expect(try await connection.int("select millrace.feed_expire()") == 2)
            #expect(try await connection.int("select millrace.feed_expire()") == 0)
            #expect(try await connection.feed(of: "ada", since: armed.0).data == [ada.data[1]])
            #expect(try await connection.feed(of: "bob", since: armed.1).changes == ["check-ins checked_in"])
            #expect(try await connection.feed(of: "bob").changes.contains("check-ins armed"))
        }
    }

    @Test func `a document's rows have its lesson and tell of its end`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.document_register('https://a.example/1', 'a', lesson_id => 'l7', tenant => 't', actor => 'ada');
                select millrace.document_delete(array[id], actor => 'ada') from millrace.document
                """)
            #expect(
                try await connection.records(
                    "select f.change, f.lesson, f.person, f.data ->> 'status' from millrace.feed_new(0) f order by f.seq"
                )
                    == ["(created,l7,ada,processing)", "(deleted,l7,ada,deleted)"])
        }
    }

    @Test func `leaving a family, a thread, a mood or everything costs the same, however much others have not read`()
        async throws
    {
        try await withConnection { connection in
            var members = [("mum", "parent")]
            for number in 1...4 { members += [("kid\(number)", "teen"), ("tot\(number)", "teen")] }
            try await connection.makeFamily("f", members)
            for number in 1...4 {
                try await connection.befriend("kid\(number)", "pal\(number)")
                try await connection.run(
                    """
                    select millrace.chat_thread_create(array['pal\(number)'], actor => 'kid\(number)');
                    select millrace.mood_log('kid\(number)', 'sad', actor => 'kid\(number)')
                    """)
            }
            func leave(_ number: Int) async throws -> [Int] {
                let mood =
                    try await connection.value("select id from millrace.mood where person = 'kid\(number)'") ?? ""
                var costs: [Int] = []
                for statement in [
                    "millrace.mood_delete('\(mood)', 'kid\(number)')",
                    "millrace.check_in_contact_remove('kid\(number)', 'pal\(number)', 'kid\(number)')",
                    "millrace.family_leave('f', 'tot\(number)')",
                    "millrace.person_erase('kid\(number)', 'kid\(number)')",
                ] {
                    costs.append(try await connection.pages("select \(statement)"))
                }
                return costs
            }
            // Planning reads the catalogue, and so do a session's first calls and those after an `alter`.
            try await connection.run("set plan_cache_mode = force_generic_plan")
            _ = try await leave(1)
            let before = try await leave(2)
            try await connection.run(
                """
                alter table millrace.feed set (autovacuum_enabled = false);
                insert into millrace.feed (at, topic, person, ref, change, data, family)
                select now(), 'quests', 'other' || n, 'x', 'points', '{}', 'g' from generate_series(1, 20000) n;
                select millrace.feed_number(100000);
                insert into millrace.feed (at, topic, person, ref, change, data, family, about, due_at)
                select now(), 'moods', 'other' || n, 'x', 'logged', '{}', 'g', 'them' || n, case when n % 2 = 0 then now() + interval '1 hour' end
                  from generate_series(1, 20000) n;
                insert into millrace.feed (at, topic, thread, n, ref, change, data)
                select now(), 'chat', gen_random_uuid(), 1, 'x', 'message', '{}' from generate_series(1, 10000) n
                """)
            _ = try await leave(3)
            let after = try await leave(4)
            for (before, after) in zip(before, after) { #expect(after < before + 100) }
        }
    }
}
