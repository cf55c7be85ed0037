import Postgres
import TestSupport
import Testing

@Suite struct OwnNoticeTests {
    @Test func `a person sets, moves and cancels notices of its own, and none of anybody else's`() async throws {
        try await withConnection { connection in
            func own(_ key: String, _ more: String = "") -> String {
                "millrace.own_notice_schedule('ada', 'water', '\(key)', now() + interval '1 hour', '{\"title\": \"Drink\"}'\(more), actor => 'ada')"
            }
            let id = try await connection.value(own("k")) ?? ""
            // Sent again, because the answer may have been lost.
            #expect(try await connection.value(own("k")) == id)
            #expect(
                try await connection.column("select kind || ' ' || key || ' ' || channels::text from millrace.notice")
                    == ["own.water own:k {push}"])
            #expect(
                try await connection.bool("millrace.own_notice_move('ada', 'k', now() + interval '5 hours', 'ada')"))
            #expect(
                try await connection.bool(
                    "select due_at > now() + interval '4 hours' and expires_at > due_at from millrace.notice"))
            // Set again otherwise, it is this one from now on; and after it was cancelled, there is a new one.
            let due = "now() + interval '2 hours'"
            let other =
                "millrace.own_notice_schedule('ada', 'walk', 'k', \(due), '{\"title\": \"Walk\"}', actor => 'ada')"
            #expect(try await connection.value(other) == id)
            #expect(
                try await connection.records(
                    "select kind, data ->> 'title', due_at < now() + interval '3 hours' from millrace.notice")
                    == ["(own.walk,Walk,t)"])
            #expect(try await connection.bool("millrace.own_notice_cancel('ada', 'k', 'ada')"))
            let second = try await connection.value(other) ?? ""
            #expect(second != id)
            #expect(
                try await connection.column(
                    "select status || ' ' || coalesce(key, '-') from millrace.notice order by 1")
                    == ["cancelled -", "pending own:k"])
            // Sent, and said again: it is not sent twice.
            try await connection.run("update millrace.notice set status = 'accepted' where id = '\(second)'")
            #expect(try await connection.value(other) == second)
            try await connection.run("update millrace.notice set status = 'pending' where id = '\(second)'")
            // A reminder of a room's has the same words as its key; it is out of reach.
            try await connection.run("select millrace.notice_send('ada', 'daily_reminder', key => 'daily_reminder:1')")
            #expect(
                try await connection.bool("millrace.own_notice_cancel('ada', 'daily_reminder:1', 'ada')") == false)
            #expect(try await connection.bool("millrace.own_notice_cancel('ada', 'k', 'ada')"))
            for (call, code) in [
                (own("x", ", channels => '{sms}'"), "22023"), (own("x", ", channels => '{push,mail}'"), "22023"),
                ("millrace.own_notice_schedule('ada', 'w', 'x', now() - interval '1 hour', actor => 'ada')", "22023"),
                ("millrace.own_notice_schedule('ada', 'w', '', now(), actor => 'ada')", "22023"),
                ("millrace.own_notice_schedule('ada', 'w', 'x', now(), '[]', actor => 'ada')", "22023"),
                ("millrace.own_notice_schedule('bob', 'w', 'x', now(), actor => 'ada')", "42501"),
                ("millrace.own_notice_cancel('bob', 'x', 'ada')", "42501"),
            ] {
                let refusal = try await connection.refusal(of: "select \(call)")
                #expect(refusal?.sqlState == code, "\(call)")
            }
            for number in 3...50 { _ = try await connection.value(own("n\(number)")) }
            let refusal = try await connection.refusal(of: "select \(own("one more"))")
            #expect(refusal?.sqlState == "53400" && refusal?.detail?.contains("\"limit\" : 50") == true)
        }
    }
}
