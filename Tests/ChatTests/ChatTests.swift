import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct ChatTests {
    @Test func `a message sent twice is there once, and its id with different content is a conflict`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            let id = UUID().uuidString.lowercased()
            #expect(try await connection.send("hello", to: thread, by: "ben", id: id) == id)
            #expect(try await connection.send("hello", to: thread, by: "ben", id: id) == id)
            #expect(try await connection.texts(thread, "anna") == ["hello"])
            #expect(try await connection.unread("anna", in: thread) == 1)
            let again = "select millrace.chat_send('\(thread)', '$', id => '\(id)', actor => '#')"
            for (text, person) in [("hallo", "ben"), ("hello", "cleo")] {
                let refusal = try await connection.refusal(
                    of: again.replacing("$", with: text).replacing("#", with: person))
                #expect(refusal?.sqlState == "23505")
                #expect(refusal?.detail?.contains("conflict") == true)
            }
            try await connection.run("select millrace.chat_delete('\(id)', 'ben')")
            #expect(try await connection.send("hello", to: thread, by: "ben", id: id) == id, "it stays deleted")
            #expect(try await connection.texts(thread, "anna") == ["-"])
            #expect(try await connection.unread("anna", in: thread) == 0)
        }
    }

    @Test func `one transaction counts, tells, and completes the quest of the family`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            try await connection.run(
                "update millrace.quest set item = (select min(id) from millrace.quest_item where kind = 'family_chat')")
            let thread = try await connection.beginThread()
            let notices =
                "select person || ' ' || status || ' ' || coalesce(data ->> 'by', '-') from millrace.notice where kind = 'chat.message' order by 1"
            try await connection.run("begin")
            try await connection.send("hello", to: thread, by: "ben")
            try await connection.run("rollback")
            #expect(try await connection.texts(thread, "anna").isEmpty)
            #expect(try await connection.column(notices).isEmpty)
            #expect(try await connection.int("millrace.points('ben', 'ben')") == 0)
            try await connection.send("hello", to: thread, by: "ben")
            try await connection.send("are you there?", to: thread, by: "ben")
            #expect(try await connection.column(notices) == ["anna pending ben", "cleo pending ben"])
            #expect(try await connection.int("millrace.points('ben', 'ben')") == 1, "the quest, once")
            #expect(try await connection.bool("millrace.quest_today('f', 'ben') -> 'completed'"))
            let newest = try await connection.send("yes", to: thread, by: "cleo")
            #expect(
                try await connection.column(notices) == ["anna pending -", "ben pending cleo", "cleo pending ben"],
                "one notice for each thread, which names nobody when several have written")
            #expect(try await connection.int("millrace.chat_read('\(thread)', '\(newest)', 'anna')") == 0)
            #expect(try await connection.column(notices).first == "anna cancelled -", "what was read is not told")
            try await connection.send("good", to: thread, by: "ben")
            #expect(
                try await connection.column(
                    "\(notices.replacing("order by 1", with: "and person = 'anna' order by 1"))")
                    == ["anna cancelled -", "anna pending ben"])
            #expect(try await connection.miscounted().isEmpty)
        }
    }

    @Test func `a mark never goes back, and says sent, delivered and read`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            var ids: [String] = []
            for n in 1...6 { ids.append(try await connection.send("\(n)", to: thread, by: "ben")) }
            func status(_ index: Int) async throws -> [String] {
                try await connection.column(
                    "select person || ' ' || status from millrace.chat_status('\(ids[index])', 'ben')")
            }
            func read(_ index: Int, _ person: String) async throws -> Int {
                try await connection.int("millrace.chat_read('\(thread)', '\(ids[index])', '\(person)')")
            }
            #expect(try await status(0) == ["anna sent", "cleo sent"])
            _ = try await connection.texts(thread, "anna")
            #expect(try await status(5) == ["anna delivered", "cleo sent"])
            #expect(try await read(1, "anna") == 4)
            #expect(try await read(4, "anna") == 1)
            #expect(try await read(2, "anna") == 1, "an older mark changes nothing")
            #expect(try await status(4) == ["anna read", "cleo sent"])
            #expect(try await status(5) == ["anna delivered", "cleo sent"])
            #expect(try await read(5, "cleo") == 0)
            #expect(
                try await connection.column(
                    "select status from millrace.chat_messages('\(thread)', actor => 'ben') order by n")
                    == ["read", "read", "read", "read", "read", "delivered"])
            #expect(
                try await connection.refusal(
                    of: "select * from millrace.chat_status('\(ids[0])', 'anna')")?.sqlState == "P0002",
                "only the sender asks")
            #expect(try await connection.miscounted().isEmpty)
        }
    }

    @Test func `a deleted message leaves a row, and neither text nor file nor find`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            let blob = try await connection.putBlob("a picture")
            let id = UUID().uuidString.lowercased()
            try await connection.run(
                """
                select millrace.chat_send('\(thread)', 'look at the heron', '[{"storage_url": "blob:\(blob)", "mime_type": "image/png", "name": "heron.png"}]',
                    id => '\(id)', actor => 'ben')
                """)
            let references = "select count(*) from millrace.blob_reference where owner like 'chat:%'"
            let found = "select highlight from millrace.chat_search('heron', actor => 'anna')"
            #expect(try await connection.int(references) == 1)
            #expect(try await connection.column(found) == ["look at the ⟦heron⟧"])
            #expect(
                try await connection.value(
                    "select attachments -> 0 ->> 'name' from millrace.chat_messages('\(thread)', actor => 'anna')")
                    == "heron.png")
            #expect(
                try await connection.refusal(of: "select millrace.chat_delete('\(id)', 'anna')")?.sqlState == "P0002",
                "only the sender")
            #expect(try await connection.bool("millrace.chat_delete('\(id)', 'ben')"))
            #expect(try await !connection.bool("millrace.chat_delete('\(id)', 'ben')"))
            #expect(try await connection.int(references) == 0)
            #expect(try await connection.column(found).isEmpty)
            #expect(
                try await connection.records(
                    "select n, text, attachments, deleted from millrace.chat_messages('\(thread)', actor => 'anna')")
                    == ["(1,,[],t)"])
            #expect(try await connection.unread("anna", in: thread) == 0)
            let other = try await connection.send("again", to: thread, by: "ben")
            #expect(try await connection.bool("millrace.chat_remove('\(other)')"), "an operator may")
            #expect(try await connection.miscounted().isEmpty)
        }
    }

    @Test func `pages go on where the last row was, both ways`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            for n in 1...7 { try await connection.send("m\(n)", to: thread, by: "ben") }
            let page = "select n from millrace.chat_messages('\(thread)', #, actor => 'anna')"
            #expect(try await connection.column(page.replacing("#", with: "page => 3")) == ["7", "6", "5"])
            #expect(try await connection.column(page.replacing("#", with: "'5', 3")) == ["4", "3", "2"])
            #expect(try await connection.column(page.replacing("#", with: "since => 5")) == ["6", "7"])
            #expect(try await connection.column(page.replacing("#", with: "since => 0, page => 2")) == ["1", "2"])
            var (seen, after): ([String], String?) = ([], nil)
            while true {
                let rows = try await connection.column(
                    """
                    select n || ' ' || next from millrace.chat_search('m1 or m3 or m6', \(after.map { "'\($0)'" } ?? "null"), 2, 'anna')
                    """)
                guard let last = rows.last else { break }
                seen += rows.map { String($0.prefix { $0 != " " }) }
                after = last.split(separator: " ").last.map(String.init)
            }
            #expect(seen == ["6", "3", "1"])
            let second = try await connection.beginThread(by: "ben")
            #expect(
                try await connection.column("select id from millrace.chat_threads(actor => 'cleo')") == [
                    second, thread,
                ])
            try await connection.send("up", to: thread, by: "ben")
            #expect(
                try await connection.column("select id from millrace.chat_threads(actor => 'cleo')") == [
                    thread, second,
                ])
            let next = try await connection.value("select next from millrace.chat_threads(page => 1, actor => 'cleo')")
            #expect(
                try await connection.column("select id from millrace.chat_threads('\(next ?? "")', actor => 'cleo')")
                    == [second])
            #expect(try await connection.int("millrace.chat_unread('anna')") == 8)
        }
    }

    @Test func `what is written is bounded in size and in number`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            let thread = try await connection.beginThread()
            func refused(_ arguments: String) async throws -> String {
                let error = try await connection.refusal(
                    of: "select millrace.chat_send('\(thread)', \(arguments), actor => 'ben')")
                return "\(error?.sqlState ?? "") \(error?.detail?.contains("quota") == true ? "quota" : "")"
            }
            #expect(try await refused("repeat('x', 8001)") == "53400 ")
            #expect(try await refused("'  '") == "22023 ")
            #expect(try await refused("chr(7)") == "22023 ")
            #expect(
                try await refused("'x', '[{\"storage_url\": \"https://a.example/x\", \"mime_type\": \"image/png\"}]'")
                    == "22023 ")
            #expect(
                try await refused(
                    "'x', '[{\"storage_url\": \"blob:\(String(repeating: "0", count: 64))\", \"mime_type\": \"image/png\"}]'"
                )
                    == "P0002 ")
            try await connection.run("select millrace.chat_rules_set('{\"day\": 2}')")
            try await connection.send("1", to: thread, by: "ben")
            let id = try await connection.send("2", to: thread, by: "ben")
            #expect(try await refused("'3'") == "53400 quota")
            #expect(try await connection.send("2", to: thread, by: "ben", id: id) == id, "sent again is not one more")
            // By a clock that is fast: it counts as now.
            try await connection.run(
                "select millrace.chat_send('\(thread)', '1', at => now() + interval '1 hour', actor => 'cleo')")
            #expect(
                try await connection.bool(
                    "select bool_and(at <= millrace.now()) from millrace.chat_message where sender = 'cleo'"))
            try await connection.run(
                "select millrace.quota_set('school', 'messages', 1, 'day'), set_config('request.jwt.claims', '{\"sub\": \"anna\", \"tenant\": \"school\"}', false)"
            )
            try await connection.run("select millrace.chat_send('\(thread)', 'one')")
            let full = try await connection.refusal(of: "select millrace.chat_send('\(thread)', 'two')")
            #expect(full?.sqlState == "53400")
            #expect(full?.detail?.contains("tenant") == true)
        }
    }
}
