import Postgres
import TestSupport
import Testing

/// What the members of a family hear of each other.
@Suite struct FeedFamilyTests {
    private static let mood = "00000000-0000-0000-0000-000000000001"

    @Test
    func
        `quests are heard by each member, points by the person and the parents, moods and hobbies without their texts`()
        async throws
    {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen"), ("sis", "teen")])
            try await connection.makeFamily("g", [("eve", "parent")])
            let begin = try await connection.feedEnd()
            try await connection.run(
                """
                update millrace.quest set item = (select id from millrace.quest_item where kind = 'family_chat' limit 1);
                select millrace.quest_complete('f', 'kid', actor => 'kid');
                select millrace.quest_undo('f', 'kid', actor => 'kid');
                select millrace.mood_log('kid', 'calm', '🙂', actor => 'kid');
                select millrace.hobby_save('kid', 'Chess', 'A secret opening', actor => 'kid');
                """)
            let shared = ["quests hobby_shared", "quests card_added"]
            let points = "quests points"
            #expect(
                try await connection.feed(of: "kid", since: begin).changes
                    == [
                        "quests completed", points, "quests undone", points, "moods logged", "quests hobby_saved",
                        points,
                    ])
            #expect(
                try await connection.feed(of: "mum", since: begin).changes
                    == ["quests completed", points, "quests undone", points, "moods logged", points] + shared)
            let sis = try await connection.feed(of: "sis", since: begin)
            #expect(sis.changes == ["quests completed", "quests undone", "moods logged"] + shared)
            #expect(sis.data.allSatisfy { $0.contains(#""person": "kid""#) })
            #expect(!sis.data.contains { $0.contains("🙂") || $0.contains("secret") || $0.contains("Chess") })
            #expect(try await connection.feed(of: "eve", since: begin).changes == [])

            try await connection.run(
                """
                select millrace.hobby_seen(h.id, 'sis', actor => 'sis'), millrace.card_answer(c.id, 'sis', 'chess', actor => 'sis')
                  from millrace.hobby h join millrace.card c on c.hobby = h.id
                """)
            #expect(
                try await connection.feed(of: "kid", since: sis.position).changes.filter { $0 != points }
                    == ["quests hobby_seen"])
            #expect(
                try await connection.feed(of: "sis", since: sis.position).changes
                    == ["quests hobby_seen", points, "quests card_answered", points])
        }
    }

    @Test func `a mood is heard by others when its delay is over, and its end by those who could see it`() async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            func log(_ id: String, _ buffer: String) async throws {
                try await connection.run(
                    "select millrace.mood_log('kid', 'sad', buffer => '\(buffer)', id => '\(id)', actor => 'kid')")
            }
            func forMum(since: Int) async throws -> Connection.Feed {
                try await connection.feed(of: "mum", since: since, topics: "'{moods}'")
            }
            try await log(Self.mood, "1 hour")
            var mum = try await forMum(since: 0)
            #expect(mum.changes == [])
            try await connection.run("select millrace.test_clock_advance('61 min')")
            mum = try await forMum(since: mum.position)
            #expect(mum.changes == ["moods logged"] && mum.refs == [Self.mood])
            try await connection.run("select millrace.mood_delete('\(Self.mood)', 'kid')")
            mum = try await forMum(since: mum.position)
            #expect(mum.changes == ["moods deleted"] && mum.refs == [Self.mood])

            let second = Self.mood.replacing("1", with: "2")
            try await log(second, "1 hour")
            try await connection.run("select millrace.mood_delete('\(second)', 'kid')")
            try await connection.run("select millrace.test_clock_advance('61 min')")
            #expect(try await forMum(since: mum.position).changes == [])
            #expect(
                try await connection.feed(of: "kid", topics: "'{moods}'").changes
                    == ["moods logged", "moods deleted", "moods logged", "moods deleted"])
        }
    }

    @Test func `who leaves keeps nothing of the family's and hears no more of it, and the others forget its moods`()
        async throws
    {
        try await withConnection { connection in
            try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen"), ("sis", "teen")])
            try await connection.run(
                """
                select millrace.mood_log('kid', 'calm', id => '\(Self.mood)', actor => 'kid'), millrace.mood_log('sis', 'happy', actor => 'sis');
                select millrace.mood_log('kid', 'sad', buffer => '1 hour', actor => 'kid'), millrace.quest_complete('f', 'sis', actor => 'sis'),
                    millrace.quest_complete('f', 'kid', actor => 'kid');
                """)
            let sis = try await connection.feed(of: "sis")
            _ = try await connection.feed(of: "kid")
            try await connection.run("select millrace.family_leave('f', 'kid')")
            // Its own moods and points stay: it sees them still.
            let kid = try await connection.feed(of: "kid")
            #expect(Set(kid.changes) == ["moods logged", "quests points", "quests left"])
            #expect(kid.data.allSatisfy { !$0.contains("sis") && !$0.contains("mum") })
            let later = try await connection.feed(of: "sis", since: sis.position)
            #expect(later.changes == ["moods deleted", "quests left"] && later.refs == [Self.mood, "f"])
            #expect(try await !connection.feed(of: "sis").data.contains { $0.contains("calm") })
            #expect(try await connection.int("select count(*) from millrace.feed where due_at is not null") == 0)

            try await connection.run(
                """
                select millrace.mood_log('sis', 'happy', actor => 'sis'), millrace.hobby_save('sis', 'Chess', 'Old', actor => 'sis');
                select millrace.mood_log('kid', 'angry', actor => 'kid')
                """)
            #expect(try await connection.feed(of: "kid", since: kid.position).changes == ["moods logged"])
            #expect(
                try await connection.feed(of: "sis", since: later.position).data.allSatisfy { !$0.contains("angry") })

            // In again: from here on.
            try await connection.run("select millrace.family_join('f', 'kid', 'teen')")
            let back = try await connection.feed(of: "kid", since: kid.position)
            #expect(back.changes == ["moods logged", "quests joined"])
            try await connection.run("select millrace.mood_log('sis', 'tired', actor => 'sis')")
            #expect(
                try await connection.feed(of: "kid", since: back.position).data.contains { $0.contains("tired") })
        }
    }

    @Test func `nobody who leaves while another acts hears of it afterwards`() async throws {
        try await withDatabase { database in
            let (leaving, acting) = (try await database.connect(), try await database.connect())
            try await leaving.makeFamily("f", [("mum", "parent"), ("kid", "teen")])
            try await leaving.run("begin; select millrace.family_leave('f', 'kid')")
            let process = try await acting.process()
            async let done: Void = acting.run("select millrace.mood_log('mum', 'happy', actor => 'mum')")
            let office = try await database.connect()
            while try await office.int("select cardinality(pg_blocking_pids(\(process)))") == 0 {}
            try await leaving.run("commit")
            try await done
            #expect(try await office.feed(of: "kid").changes == ["quests left"])
        }
    }
}
