import FoundationEssentials
import Postgres
import TestSupport
import Testing

/// A reminder that a person does not want is not sent; what it reminds of stays.
@Suite struct SilenceTests {
    @Test func `the notice of a mood is cancelled alone, by its person, and does not come back`() async throws {
        try await QuestTests.withFamily { connection in
            func log(_ buffer: String) async throws -> String {
                try await connection.value(
                    "millrace.mood_log('kid', 'calm', buffer => '\(buffer)', actor => 'kid')") ?? ""
            }
            let first = try await log("10 min")
            let second = try await log("20 min")
            let waiting = "select key from millrace.notices where kind = 'mood_buffer' and status = 'pending'"
            #expect(try await connection.column(waiting).count == 2)
            for actor in ["sis", "f-mum"] {
                let refusal = try await connection.refusal(
                    of: "select millrace.mood_notice_cancel('\(first)', '\(actor)')")
                #expect(refusal?.sqlState == "P0002")
            }
            #expect(try await connection.bool("millrace.mood_notice_cancel('\(first)', 'kid')"))
            #expect(try await connection.bool("millrace.mood_notice_cancel('\(first)', 'kid')") == false)
            #expect(try await connection.column(waiting) == ["mood_buffer:\(second)"])
            // Handed in again, as a phone does that has heard no answer.
            try await connection.run(
                "select millrace.mood_log('kid', 'calm', buffer => '10 min', id => '\(first)', actor => 'kid')")
            #expect(try await connection.column(waiting) == ["mood_buffer:\(second)"])
            // The mood is there, and is shared when its buffer is over.
            try await connection.advance(by: "15 minutes")
            #expect(
                try await connection.column("select id from millrace.moods('kid', actor => 'sis')") == [first])
            let absent = try await connection.refusal(
                of: "select millrace.mood_notice_cancel('11111111-2222-3333-4444-555555555555', 'kid')")
            #expect(absent?.sqlState == "P0002" && absent?.detail?.contains("\"id\"") == true)
        }
    }

    @Test func `a reminder of today is cancelled for today, and comes again tomorrow`() async throws {
        try await QuestTests.withFamily { connection in
            try await connection.run(
                "update millrace.test_clock set shift = timestamptz '2027-05-10 20:00Z' - clock_timestamp()")
            try await connection.rollOver()
            try await connection.advance(by: "3 hours")
            try await connection.rollOver()
            let waiting =
                "select person || ' ' || kind from millrace.notices where status = 'pending' and key like '%:' || (select today from millrace.quest_family) and person in ('kid', 'sis') order by 1"
            let all = ["kid daily_reminder", "kid quest_available", "sis daily_reminder", "sis quest_available"]
            #expect(try await connection.column(waiting) == all)
            // What the app's server sent under a name like it is not touched.
            try await connection.run(
                "select millrace.notice_send('kid', 'daily_reminder', key => 'app:daily_reminder:x', at => millrace.now() + interval '9 hours')"
            )
            #expect(try await connection.bool("millrace.reminder_cancel('kid', actor => 'kid')"))
            #expect(try await connection.bool("millrace.reminder_cancel('kid', actor => 'kid')") == false)
            #expect(try await connection.column(waiting) == Array(all.dropFirst()))
            #expect(try await connection.bool("millrace.reminder_cancel('kid', 'quest_available', 'kid')"))
            #expect(try await connection.column(waiting) == Array(all.dropFirst(2)))
            #expect(
                try await connection.value("select status from millrace.notices where key = 'app:daily_reminder:x'")
                    == "pending")
            try await connection.advance(by: "1 day")
            try await connection.rollOver()
            #expect(try await connection.column(waiting) == all)
            for (call, code) in [
                ("reminder_cancel('kid', actor => 'sis')", "42501"),
                ("reminder_cancel('kid', 'check_in', 'kid')", "22023"),
                ("reminder_cancel('kid', null, 'kid')", "22023"),
                ("reminder_cancel('', actor => 'kid')", "22023"),
            ] {
                #expect(try await connection.refusal(of: "select millrace.\(call)")?.sqlState == code, "\(call)")
            }
        }
    }

    @Test func `one kind is switched off for good, and nothing else changes`() async throws {
        try await withConnection(.movableClock) { connection in
            let kept = "select channels::text from millrace.notice_preference where person = 'ada'"
            try await connection.run(
                "select millrace.notice_preferences('ada', 'Europe/London', '22:00', '07:00', '{\"mail\": \"ada@example.org\", \"kinds\": {\"a\": [\"push\"]}}', 'en', actor => 'ada')"
            )
            #expect(try await connection.bool("millrace.notice_kind('ada', 'daily_reminder', '{}', 'ada')"))
            #expect(try await connection.bool("millrace.notice_kind('ada', 'daily_reminder', '{}', 'ada')") == false)
            #expect(
                try await connection.value(kept)
                    == #"{"mail": "ada@example.org", "kinds": {"a": ["push"], "daily_reminder": []}}"#)
            #expect(try await connection.bool("millrace.notice_kind('ada', 'daily_reminder', null, 'ada')"))
            #expect(try await connection.bool("millrace.notice_kind('ada', 'a', '{push,mail}', 'ada')"))
            #expect(
                try await connection.records(
                    "select zone, quiet_from, channels::text from millrace.notice_preference where person = 'ada'")
                    == [
                        ##"(Europe/London,22:00:00,"{""mail"": ""ada@example.org"", ""kinds"": {""a"": [""push"", ""mail""]}}")"##
                    ]
            )
            // Somebody who has said nothing yet.
            #expect(try await connection.bool("millrace.notice_kind('bob', 'a', null, 'bob')") == false)
            #expect(try await connection.bool("millrace.notice_kind('bob', 'a', '{}', 'bob')"))
            for (call, code) in [
                ("notice_kind('ada', 'a', '{}', 'bob')", "42501"), ("notice_kind('ada', 'a', '{fax}', 'ada')", "22023"),
                ("notice_kind('ada', 'a b', '{}', 'ada')", "22023"), ("notice_kind('ada', null, '{}', 'ada')", "22023"),
            ] {
                #expect(try await connection.refusal(of: "select millrace.\(call)")?.sqlState == code, "\(call)")
            }
            let more = try await connection.refusal(
                of:
                    "select count(millrace.notice_kind('ada', 'k' || n, '{push}', 'ada')) from generate_series(1, 2000) n"
            )
            #expect(more?.sqlState == "53400")
        }
    }
}
