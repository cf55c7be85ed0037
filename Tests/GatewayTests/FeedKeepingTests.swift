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
}
