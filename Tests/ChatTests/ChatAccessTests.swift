import Foundation
import Postgres
import TestSupport
import Testing

/// Who is in a thread, and who gets nothing of it.
@Suite struct ChatAccessTests {
    /// Everything that can be asked of a thread and a message, by the person that has signed in.
    private static func questions(_ thread: String, _ message: String) -> [String] {
        [
            "select * from millrace.chat_messages('\(thread)')",
            "select * from millrace.chat_messages('\(thread)', since => 0)",
            "select millrace.chat_send('\(thread)', 'let me in')",
            "select millrace.chat_read('\(thread)', '\(message)')",
            "select millrace.chat_delete('\(message)')", "select * from millrace.chat_status('\(message)')",
            "select millrace.chat_attachment_link('\(message)', 1)", "select millrace.chat_leave('\(thread)')",
        ]
    }

    /// Everything that finds something without a name.
    private static let lists = [
        "select id::text from millrace.chat_threads()", "select id::text from millrace.chat_search('secret or heron')",
        "select nullif(millrace.chat_unread(), 0)::text",
        "select data::text from millrace.feed_mine(0, '{chat}') where change not in ('left', 'closed')",
        "select ref from millrace.sync_pull() where topic = 'chat' and change not in ('left', 'closed')",
    ]

    /// The same refusal for what is there as for what is not, and nothing in any list.
    private func expectNothing(
        _ person: String, _ thread: String, _ message: String, on connection: Connection,
        _ comment: Comment, location: SourceLocation = #_sourceLocation
    ) async throws {
        try await connection.signIn(person)
        let nowhere = UUID().uuidString.lowercased()
        for (there, absent) in zip(Self.questions(thread, message), Self.questions(nowhere, nowhere)) {
            let found = try await connection.refusal(of: there)
            let expected = try await connection.refusal(of: absent)
            #expect(found?.sqlState == "P0002", "\(comment): \(there)", sourceLocation: location)
            #expect(
                found?.message.replacing(thread, with: "#").replacing(message, with: "#")
                    == expected?.message.replacing(nowhere, with: "#"), "\(comment): \(there)", sourceLocation: location
            )
        }
        for list in Self.lists {
            let rows = try await connection.column(list).filter { $0 != "null" }
            #expect(rows.isEmpty, "\(comment): \(list)", sourceLocation: location)
        }
        try await connection.run("select set_config('request.jwt.claims', '', false)")
    }

    @Test func `a stranger gets nothing in any way, and neither does who has left the family`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            try await connection.run(
                "select millrace.family_create('g', 'UTC'), millrace.family_join('g', 'eve', 'parent')")
            let thread = try await connection.beginThread()
            let message = try await connection.send("a secret", to: thread, by: "ben")
            try await expectNothing("eve", thread, message, on: connection, "another family's")
            try await expectNothing("zoe", thread, message, on: connection, "in no family")
            for members in ["'{anna}'", "'{anna, eve}'", "'{nobody}'"] {
                try await connection.signIn("eve")
                #expect(
                    try await connection.refusal(of: "select millrace.chat_thread_create(\(members))")?.sqlState
                        == "42501")
                try await connection.signIn("eve")
                #expect(
                    try await connection.refusal(of: "select millrace.chat_thread_create(\(members), 'f')")?.sqlState
                        == "42501")
            }
            try await connection.run("select set_config('request.jwt.claims', '', false)")
            #expect(try await connection.unread("cleo", in: thread) == 1)
            try await connection.run("select millrace.family_leave('f', 'cleo')")
            try await expectNothing("cleo", thread, message, on: connection, "has left")
            try await connection.run("select millrace.family_join('f', 'cleo', 'teen')")
            #expect(try await connection.texts(thread, "cleo").isEmpty, "what was written before stays hidden")
            try await connection.send("welcome back", to: thread, by: "anna")
            #expect(try await connection.texts(thread, "cleo") == ["welcome back"])
            #expect(
                try await connection.refusal(
                    of: "select millrace.chat_read('\(thread)', '\(message)', 'cleo')")?.sqlState == "P0002")
            #expect(
                try await connection.column("select id from millrace.chat_search('secret', actor => 'cleo')").isEmpty)
            #expect(try await connection.miscounted().isEmpty)
        }
    }

    @Test func `a thread of some members has no others, and goes when the last has left`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily("f", ["ben", "cleo", "dan"])
            let thread = try await connection.value("millrace.chat_thread_create('{cleo}', actor => 'ben')") ?? ""
            let message = try await connection.send("a secret", to: thread, by: "ben")
            try await expectNothing("dan", thread, message, on: connection, "not named")
            try await expectNothing("anna", thread, message, on: connection, "a parent who was not named")
            try await connection.run("select millrace.family_join('f', 'eve', 'teen')")
            try await expectNothing("eve", thread, message, on: connection, "joined later")
            #expect(try await connection.bool("millrace.chat_leave('\(thread)', 'ben')"))
            try await expectNothing("ben", thread, message, on: connection, "left the thread")
            #expect(try await connection.texts(thread, "cleo") == ["a secret"])
            try await connection.run("select millrace.family_leave('f', 'cleo')")
            #expect(
                try await connection.int(
                    "(select count(*) from millrace.chat_thread) + (select count(*) from millrace.chat_message)") == 0)
        }
    }

    @Test func `two contacts have one thread, which closes when the contact ends`() async throws {
        try await withConnection { connection in
            let begin = "millrace.chat_thread_create('{#}', actor => '$')"
            try await connection.run(
                "select millrace.check_in_contact('anna', 'zoe', 1, '{\"push\": true, \"mail\": \"zoe@example.com\"}', actor => 'anna')"
            )
            #expect(
                try await connection.refusal(of: "select millrace.chat_thread_create('{zoe}', actor => 'anna')")?
                    .sqlState
                    == "42501", "not agreed yet")
            try await connection.run("select millrace.check_in_accept('anna', true, 'zoe')")
            let thread =
                try await connection.value(begin.replacing("#", with: "anna").replacing("$", with: "zoe")) ?? ""
            #expect(
                try await connection.value(begin.replacing("#", with: "zoe").replacing("$", with: "anna")) == thread)
            let message = try await connection.send("a secret", to: thread, by: "anna")
            #expect(try await connection.texts(thread, "zoe") == ["a secret"])
            try await connection.run("select millrace.check_in_accept('anna', false, 'zoe')")
            try await expectNothing("zoe", thread, message, on: connection, "has declined")
            try await expectNothing("anna", thread, message, on: connection, "was declined")
            try await connection.run("select millrace.check_in_accept('anna', true, 'zoe')")
            #expect(try await connection.texts(thread, "zoe") == ["a secret"], "open again")
            // The other way round keeps it open, and the last that ends closes it.
            try await connection.makeContacts("zoe", "anna")
            try await connection.run("select millrace.check_in_contact_remove('anna', 'zoe', 'anna')")
            #expect(try await connection.texts(thread, "anna") == ["a secret"])
            try await connection.run("select millrace.consent_block('push', 'anna')")
            try await expectNothing("zoe", thread, message, on: connection, "blocked")
        }
    }

    @Test func `thirty days after it closed a thread is gone, and messages go when the rule says so`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.makeContacts("anna", "zoe")
            let two = try await connection.value("millrace.chat_thread_create('{zoe}', actor => 'anna')") ?? ""
            try await connection.send("bye", to: two, by: "zoe")
            try await connection.run("select millrace.check_in_contact_remove('anna', 'zoe', 'anna')")
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            try await connection.send("old", to: thread, by: "ben")
            try await connection.run("select millrace.test_clock_advance('29 days')")
            try await connection.send("new", to: thread, by: "ben")
            try await connection.run("select millrace.chat_expire()")
            #expect(try await connection.int("select count(*) from millrace.chat_message") == 3)
            try await connection.run(
                "select millrace.test_clock_advance('2 days'), millrace.chat_rules_set('{\"keep_days\": 30}')")
            try await connection.run("select millrace.chat_expire()")
            #expect(try await connection.column("select text from millrace.chat_message") == ["new"])
            #expect(try await connection.int("select count(*) from millrace.chat_thread") == 1)
            #expect(try await connection.unread("anna", in: thread) == 1)
            #expect(try await connection.miscounted().isEmpty)
        }
    }

    @Test func `an erased person leaves tombstones without a name, and nothing in any table`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            try await connection.makeContacts("ben", "zoe")
            let thread = try await connection.beginThread(by: "ben")
            let two = try await connection.value("millrace.chat_thread_create('{zoe}', actor => 'ben')") ?? ""
            let blob = try await connection.putBlob("a picture of ben")
            try await connection.run(
                """
                select millrace.chat_send('\(thread)', 'it is I', '[{"storage_url": "blob:\(blob)", "mime_type": "image/png"}]', actor => 'ben'),
                       millrace.chat_send('\(two)', 'and here', actor => 'ben')
                """)
            try await connection.send("hello ben", to: two, by: "zoe")
            try await connection.send("hello", to: thread, by: "anna")
            _ = try await connection.texts(thread, "ben")
            try await connection.run("select millrace.person_erase('ben', 'ben')")
            #expect(
                try await connection.records(
                    "select sender, text, deleted from millrace.chat_messages('\(thread)', actor => 'anna') order by n")
                    == ["(,,t)", "(anna,hello,f)"])
            #expect(try await connection.int("select count(*) from millrace.chat_thread") == 1)
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
            #expect(try await connection.miscounted().isEmpty)
            let tables = try await connection.column(
                "select c.relname from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'history' order by 1"
            )
            for table in tables {
                let found = try await connection.column(
                    "select left(t::text, 200) from millrace.\"\(table)\" t where t::text ~ '(^|[^a-z])ben([^a-z]|$)' limit 3"
                )
                #expect(found.isEmpty, "\(table)")
            }
        }
    }
}
