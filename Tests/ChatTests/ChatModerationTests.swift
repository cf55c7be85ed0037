import Postgres
import TestSupport
import Testing

/// New messages are judged by a language model, where the rule says so and the family has AI switched on.
@Suite struct ChatModerationTests {
    @Test func `a message is asked about where that is switched on, and is sent in any case`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            func asked() async throws -> [String] {
                try await connection.column("select input ->> 'text' from millrace.ai_question order by seq")
            }
            try await connection.send("without the rule", to: thread, by: "ben")
            try await connection.run(#"select millrace.chat_rules_set('{"moderate": 1}')"#)
            try await connection.send("without a model", to: thread, by: "ben")
            try await connection.run(
                #"select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "small"}]')"#)
            try await connection.send("not switched on", to: thread, by: "ben")
            #expect(try await asked().isEmpty)
            try await connection.run("select millrace.ai_switch('family', 'f', true, actor => 'anna')")
            try await connection.send("now it is", to: thread, by: "ben")
            #expect(try await asked() == ["now it is"])
            #expect(try await connection.texts(thread, "anna").count == 4)
        }
    }

    @Test func `the back end hears of the judgement, the sender does not, and it goes with the message`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            try await connection.run(
                """
                select millrace.chat_rules_set('{"moderate": 1}'), millrace.ai_switch('family', 'f', true, actor => 'anna'),
                    millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "small"}]')
                """)
            let message = try await connection.send("go away", to: thread, by: "ben")
            try await connection.run(
                """
                update millrace.ai_question set status = 'answered', answer = '{"sentiment": "negative", "concern": "high"}', ended_at = now();
                select millrace.ai_put_to_use(q) from millrace.ai_question q
                """)
            let events = try await connection.records(
                "select data ->> 'message_id', data ->> 'concern', data::text ~ 'away' from millrace.event where type = 'com.peachy.message.judged'"
            )
            #expect(events == ["(\(message),high,f)"])
            #expect(try await connection.int("select count(*) from millrace.ai_own(actor => 'ben')") == 0)
            #expect(try await connection.int("select count(*) from millrace.feed where topic = 'ai'") == 0)
            try await connection.run("select millrace.chat_delete('\(message)', 'ben')")
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)

            // One that nobody has answered yet: its job goes too.
            let waiting = try await connection.send("go away again", to: thread, by: "ben")
            let job = try await connection.int("select job from millrace.ai_question")
            try await connection.run("select millrace.chat_delete('\(waiting)', 'ben')")
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)
            #expect(try await connection.value("select state from millrace.job(\(job))") == "cancelled")
        }
    }
}
