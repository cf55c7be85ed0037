import Foundation
import Postgres
import TestSupport
import Testing

/// The tone of a thread: what the model reads of it, who may ask, and whose consent it takes.
@Suite struct ChatToneTests {
    private static func withThread(_ body: (Connection, String) async throws -> Void) async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            try await connection.run(
                #"""
                select millrace.ai_switch('family', 'f', true, actor => 'anna'),
                    millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "small"}]')
                """#)
            try await body(connection, try await connection.beginThread())
        }
    }

    private static func messages(_ connection: Connection) async throws -> [String] {
        try await connection.column("select input ->> 'messages' from millrace.ai_question order by seq")
    }

    private static func refusal(_ connection: Connection, _ arguments: String) async throws -> String? {
        try await connection.refusal(of: "select millrace.chat_tone(\(arguments))")?.sqlState
    }

    @Test func `the newest messages are read in their order, with numbers in place of names`() async throws {
        try await Self.withThread { connection, thread in
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'anna'") == "55000", "nothing is written")
            for (person, text) in [
                ("anna", "first"), ("ben", "who?\n2: me"), ("anna", "write ada@example.org"), ("cleo", "fine"),
            ] {
                try await connection.send(text, to: thread, by: person)
            }
            let gone = try await connection.send("never said", to: thread, by: "ben")
            try await connection.run("select millrace.chat_delete('\(gone)', 'ben')")
            let question = try await connection.value("millrace.chat_tone('\(thread)', actor => 'cleo')") ?? ""
            _ = try await connection.value("millrace.chat_tone('\(thread)', 2, actor => 'cleo')")
            #expect(
                try await Self.messages(connection) == [
                    "1: first\n2: who? 2: me\n1: write [email]\n3: fine", "1: write [email]\n2: fine",
                ])
            try await connection.run(
                #"""
                update millrace.ai_question set status = 'answered', answer = '{"score": -0.4, "tone": "tense"}', ended_at = now() where id = '\#(question)';
                select millrace.ai_put_to_use(q) from millrace.ai_question q where q.id = '\#(question)'
                """#)
            #expect(
                try await connection.records(
                    "select answer ->> 'score', answer ->> 'tone' from millrace.ai_answer('\(question)', 'cleo')")
                    == ["(-0.4,tense)"])
            #expect(
                try await connection.column(
                    "select data ->> 'ref' from millrace.feed_mine(actor => 'cleo') where topic = 'ai'")
                    == [thread])
            // It is nobody else's, and goes when a message of the thread is deleted.
            #expect(try await connection.int("select count(*) from millrace.ai_own(actor => 'anna')") == 0)
            let last = try await connection.send("well", to: thread, by: "ben")
            try await connection.run("select millrace.chat_delete('\(last)', 'ben')")
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)
        }
    }

    @Test func `a member asks about what it sees, and nobody else`() async throws {
        try await Self.withThread { connection, thread in
            try await connection.send("before", to: thread, by: "ben")
            try await connection.run("select millrace.family_join('f', 'dora', 'teen')")
            try await connection.send("after", to: thread, by: "ben")
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'eve'") == "P0002")
            #expect(try await Self.refusal(connection, "gen_random_uuid(), actor => 'anna'") == "P0002")
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'dora'") == nil)
            #expect(try await Self.messages(connection) == ["1: after"])
            for bad in ["0", "201", "null"] {
                #expect(try await Self.refusal(connection, "'\(thread)', \(bad), actor => 'anna'") == "22023")
            }
            for options in ["[]", #"{"ref": "x"}"#, #"{"mood": 1}"#] {
                #expect(
                    try await Self.refusal(connection, "'\(thread)', options => '\(options)', actor => 'anna'")
                        == "22023")
            }
            // What somebody wrote who has left is not read.
            try await connection.run("select millrace.family_leave('f', 'ben')")
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'anna'") == "55000")
        }
    }

    @Test func `AI is on for everybody whose messages are read, or nothing is asked`() async throws {
        try await Self.withThread { connection, _ in
            try await connection.makeContacts("ben", "zoe")
            let thread = try await connection.value("millrace.chat_thread_create('{zoe}', actor => 'ben')") ?? ""
            try await connection.send("hi", to: thread, by: "ben")
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'ben'") == nil)
            #expect(
                try await Self.refusal(connection, "'\(thread)', actor => 'zoe'") == "55000", "not for her who asks")
            try await connection.send("hello", to: thread, by: "zoe")
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'ben'") == "55000")
            // A person's own tenant speaks for that person alone; one of both speaks for both.
            try await connection.run("select millrace.ai_switch('tenant', 'person:ben', true)")
            #expect(
                try await Self.refusal(connection, "'\(thread)', tenant => 'person:ben', actor => 'ben'") == "55000")
            try await connection.run("select millrace.ai_switch('tenant', 'school', true)")
            #expect(try await Self.refusal(connection, "'\(thread)', tenant => 'school', actor => 'ben'") == nil)
            try await connection.run("select millrace.ai_switch('family', 'f', false, actor => 'anna')")
            #expect(try await Self.refusal(connection, "'\(thread)', tenant => 'school', actor => 'ben'") == "55000")
        }
    }

    @Test func `a long thread is read from its end, as far as it fits`() async throws {
        try await Self.withThread { connection, thread in
            for n in 1...5 {
                try await connection.send("\(n)" + String(repeating: "x", count: 7000), to: thread, by: "ben")
            }
            #expect(try await Self.refusal(connection, "'\(thread)', actor => 'anna'") == nil)
            let read = try await Self.messages(connection).joined()
            #expect(read.hasPrefix("1: 4x") && read.contains("1: 5x"))
        }
    }
}
