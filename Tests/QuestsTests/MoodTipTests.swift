import FoundationEssentials
import Postgres
import TestSupport
import Testing

/// A tip for a mood: what the model reads, and whose mood it may be.
@Suite struct MoodTipTests {
    private static func withMoods(_ body: (Connection) async throws -> Void) async throws {
        try await QuestTests.withFamily { connection in
            try await connection.run(
                #"select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "small"}]')"#)
            try await body(connection)
        }
    }

    private static func log(_ connection: Connection, _ person: String, _ color: String, _ more: String = "")
        async throws -> String
    {
        try await connection.value("millrace.mood_log('\(person)', '\(color)'\(more), actor => '\(person)')") ?? ""
    }

    @Test func `the model reads the mood and the situation, of the newest mood or of one that is named`() async throws {
        try await Self.withMoods { connection in
            let old = try await Self.log(connection, "kid", "sad", ", '😢'")
            try await connection.advance(by: "1 hour")
            _ = try await Self.log(connection, "kid", "tired")
            let tip = "select millrace.mood_tip(actor => 'kid')"
            #expect(try await connection.refusal(of: tip)?.sqlState == "55000", "AI is not switched on")
            try await connection.run("select millrace.ai_switch('family', 'f', true, actor => 'f-mum')")
            let first = try await connection.value(tip) ?? ""
            _ = try await connection.value(
                #"select millrace.mood_tip('\#(old)', 'An exam', 'school', options => '{"locale": "de"}', actor => 'kid')"#
            )
            let inputs = try await connection.column("select input::text from millrace.ai_question order by seq")
            #expect(
                inputs == [
                    #"{"mood": "tired", "language": "en", "situation": "Nothing more is known."}"#,
                    #"{"mood": "sad 😢", "topic": "school", "language": "de", "situation": "An exam"}"#,
                ])
            #expect(
                try await connection.column("select distinct purpose || ' ' || room from millrace.ai_question")
                    == ["coaching_tip moods"])
            // It is the person's own question, and its feed says what it was about.
            try await connection.run(
                #"""
                update millrace.ai_question set status = 'answered', answer = '{"tip": "Sleep.", "action": "Lie down."}', ended_at = now() where id = '\#(first)';
                select millrace.ai_put_to_use(q) from millrace.ai_question q where q.id = '\#(first)'
                """#)
            #expect(
                try await connection.value("select answer ->> 'tip' from millrace.ai_answer('\(first)', 'kid')")
                    == "Sleep.")
            #expect(
                try await connection.column(
                    "select ref || ' ' || (data ->> 'room') from millrace.feed where topic = 'ai' and person = 'kid'")
                    == ["\(first) moods"])
            #expect(try await connection.int("select count(*) from millrace.ai_own(actor => 'sis')") == 0)
        }
    }

    @Test func `a mood of the family is read where it is shared, and nobody else's ever`() async throws {
        try await Self.withMoods { connection in
            try await connection.run(
                """
                select millrace.ai_switch('family', 'f', true, actor => 'f-mum');
                select millrace.family_create('g', 'UTC'), millrace.family_join('g', 'eve', 'parent');
                select millrace.ai_switch('family', 'g', true, actor => 'eve')
                """)
            let mood = try await Self.log(connection, "kid", "angry", ", buffer => '10 min'")
            func refusal(_ actor: String, _ named: String? = nil) async throws -> String? {
                let asked = named ?? "'\(mood)'"
                let refused = try await connection.refusal(
                    of: "select millrace.mood_tip(\(asked), actor => '\(actor)')")
                return refused?.sqlState
            }
            #expect(try await refusal("kid") == nil)
            for actor in ["sis", "f-mum", "eve"] { #expect(try await refusal(actor) == "P0002", "\(actor)") }
            try await connection.advance(by: "11 minutes")
            for actor in ["sis", "f-mum"] { #expect(try await refusal(actor) == nil, "\(actor)") }
            #expect(try await refusal("eve") == "P0002")
            #expect(
                try await connection.column(
                    "select distinct input ->> 'whose' from millrace.ai_question where actor <> 'kid'")
                    == ["somebody of the family"])
            #expect(
                try await connection.int("select count(*) from millrace.ai_question where input::text ~ 'kid'") == 0)
            // Without a name it is one's own, of the last day.
            #expect(try await refusal("sis", "null") == "P0002")
            try await connection.advance(by: "1 day")
            #expect(try await refusal("kid", "null") == "P0002")
            // With the mood goes what was asked about it, by anybody.
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 3)
            try await connection.run("select millrace.mood_delete('\(mood)', 'kid')")
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)
            #expect(try await refusal("kid") == "P0002")
        }
    }

    @Test func `with an erased person goes what others asked about its moods, and bad input is refused`() async throws {
        try await Self.withMoods { connection in
            try await connection.run("select millrace.ai_switch('family', 'f', true, actor => 'f-mum')")
            let mood = try await Self.log(connection, "kid", "sad")
            for (arguments, code) in [
                ("options => '{\"room\": \"chat\"}'", "22023"), ("options => '[]'", "22023"),
                ("situation => repeat('x', 5000)", "22023"), ("tenant => E'a\\u0001'", "22023"),
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.mood_tip(\(arguments), actor => 'kid')")?.sqlState
                        == code, "\(arguments)")
            }
            try await connection.run("select millrace.mood_tip('\(mood)', actor => 'sis')")
            try await connection.run("select millrace.person_erase('kid', 'kid')")
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)
        }
    }
}
