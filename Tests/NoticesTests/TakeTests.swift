import Faults
import FoundationEssentials
import Postgres
import Supervision
import TestSupport
import Testing

@testable import Notices

/// The database's decisions: by which channels, when, how often.
@Suite struct TakeTests {
    @Test func `a notice goes by what the person has, an alarm by all of it`() async throws {
        try await withNotices { bench in
            let nowhere = try await bench.send()
            let lost = try await bench.send("alarm.raised", "alarm => true")
            _ = try await bench.take(alarms: false)
            _ = try await bench.take(alarms: true)
            #expect(try await bench.look(nowhere) == "suppressed")
            #expect(try await bench.look(lost) == "failed")

            try await bench.addDevice("token-0001")
            let one = try await bench.send()
            let taken = try await bench.take(alarms: false)
            #expect(taken.map(\.id) == [one] && taken[0].address == "token-0001" && taken[0].platform == "apns")

            try await bench.addDevice("token-0002", platform: "fcm")
            try await bench.prefer(
                #"{"mail": "ada@example.org", "sms": "+4930123456", "kinds": {"muted": [], "text": ["sms"]}}"#,
                locale: "de")
            let plain = try await bench.send()
            let ways = try await bench.take(alarms: false)
            #expect(ways.map(\.channel).sorted() == ["mail", "push", "push"])
            #expect(ways.allSatisfy { $0.locale == "de" } && !ways.contains { $0.id == plain })
            let muted = try await bench.send("muted")
            try await bench.send("text")
            #expect(try await bench.take(alarms: false).map(\.channel) == ["sms"])
            #expect(try await bench.look(muted) == "suppressed")
            try await bench.send("muted", "alarm => true")
            #expect(
                try await bench.take(alarms: true).map(\.channel).sorted() == ["mail", "push", "push", "sms"])
            try await bench.send("note", "channels => array['sms']")
            #expect(try await bench.take(alarms: false).map(\.channel) == ["sms"])
        }
    }

    @Test
    func `a notice is in the language of the preferences, else of the profile, and the check-ins say it themselves`()
        async throws
    {
        try await withNotices { bench in
            try await bench.addDevice("token-0001")
            func locale(_ kind: String = "note", _ data: String = "{}") async throws -> String {
                try await bench.send(kind, "'\(data)'")
                return try await bench.take(alarms: false).first?.locale ?? "none"
            }
            #expect(try await locale() == "none")
            try await bench.connection.run("select millrace.person_profile('ada', locale => 'pt-BR', actor => 'ada')")
            #expect(try await locale() == "pt-BR")
            // A contact may be named by another's id: an alarm about somebody else does not show the profile behind it.
            #expect(try await locale("alarm.raised", #"{"stage": "raised"}"#) == "none")
            #expect(try await locale("alarm.raised", #"{"stage": "raised", "locale": "de"}"#) == "de")
            try await bench.prefer(#"{"push": true}"#, locale: "fr")
            #expect(try await locale() == "fr")
            try await bench.connection.run(
                "select millrace.notice_preferences('ada', 'UTC', '0:00', '0:00', '{\"push\": true}', null)")
            #expect(try await locale() == "pt-BR")
            try await bench.connection.run("select millrace.person_profile('ada', locale => '', actor => 'ada')")
            #expect(try await locale() == "none")
        }
    }

    @Test func `a notice of several sendings is accepted with the first, and fails with the last`() async throws {
        try await withNotices { bench in
            for number in 1...3 { try await bench.addDevice("token-000\(number)") }
            let good = try await bench.send("alarm.raised", "key => 'a', alarm => true")
            let sendings = try await bench.take(alarms: true)
            #expect(try await bench.look(good) == "attempting" && sendings.count == 3)
            try await bench.record(sendings[0], .refused(Fault(.invalid, "no")))
            #expect(try await bench.look(good) == "attempting")
            try await bench.record(sendings[1], .accepted(id: "x"))
            #expect(try await bench.look(good, "status || ' ' || (accepted_at is not null)") == "accepted true")
            try await bench.record(sendings[2], .gone(Fault(.notFound, code: "410", "gone")))
            #expect(try await bench.look(good) == "accepted")

            let bad = try await bench.send("alarm.raised", "key => 'b', alarm => true")
            let others = try await bench.take(alarms: true)
            #expect(others.count == 2)  // the third device has gone
            for one in others { try await bench.record(one, .refused(Fault(.invalid, "no"))) }
            #expect(try await bench.look(bad, "status || ' ' || error") == "failed no")
            #expect(try await bench.connection.int("select lost from millrace.notice_state()") == 1)

            let called = try await bench.send("alarm.raised", "key => 'c', alarm => true")
            for one in try await bench.take(alarms: true) { try await bench.record(one, .failed(unavailable)) }
            #expect(try await bench.connection.bool("select millrace.notice_cancel('ada', 'c')"))
            #expect(try await bench.look(called) == "cancelled")
            #expect(try await bench.connection.bool("select millrace.notice_cancel('ada', 'c')") == false)
        }
    }

    @Test func `quiet hours move what can wait and drop what can not, and hold no alarm`() async throws {
        try await withNotices { bench in
            try await bench.addDevice("token-0001")
            // Whatever the hour is: it is quiet now, and for an hour and a half.
            let from = try await bench.connection.value(
                "select to_char(millrace.now() at time zone 'UTC' - interval '1 hour', 'HH24:MI')")
            let to = try await bench.connection.value(
                "select to_char(millrace.now() at time zone 'UTC' + interval '90 min', 'HH24:MI')")
            try await bench.prefer("{}", from: from ?? "", to: to ?? "")
            let moved = try await bench.send()
            let dropped = try await bench.send("note", "expires_at => millrace.now() + interval '20 min'")
            let alarm = try await bench.send("alarm.raised", "alarm => true")
            #expect(try await bench.take(alarms: false).isEmpty)
            #expect(try await bench.look(moved) == "pending")
            #expect(try await bench.look(dropped) == "suppressed")
            #expect(
                try await bench.look(moved, "due_at > millrace.now() + interval '80 min'") == "true")
            #expect(try await bench.take(alarms: true).map(\.id) == [alarm])
            try await bench.connection.run("select millrace.test_clock_advance('2 hours')")
            #expect(try await bench.take(alarms: false).map(\.id) == [moved])
        }
    }

    @Test func `what piled up while nobody was there becomes a summary`() async throws {
        try await withNotices { bench in
            try await bench.addDevice("token-0001")
            for key in 1...4 { try await bench.send(key < 4 ? "note" : "other", "key => 'k\(key)'") }
            try await bench.connection.run("select millrace.test_clock_advance('5 hours')")
            let fresh = try await bench.send("note", "key => 'fresh'")
            var taken = try await bench.take(alarms: false)
            if !taken.contains(where: { $0.kind == "summary" }) { taken += try await bench.take(alarms: false) }
            #expect(Set(taken.map(\.kind)) == ["summary", "note"] && taken.contains { $0.id == fresh })
            #expect(taken.first { $0.kind == "summary" }?.data["count"] == "4")
            #expect(
                try await bench.connection.int("select count(*) from millrace.notices where status = 'suppressed'") == 4
            )

            // Two are sent one by one.
            for key in 5...6 { try await bench.send("note", "key => 'k\(key)'") }
            try await bench.connection.run("select millrace.test_clock_advance('5 hours')")
            let two = try await bench.take(alarms: false).filter { !$0.isAgain }
            #expect(two.map(\.kind) == ["note", "note"])
        }
    }

    @Test func `a lease that ran out sends again and counts it, and a late answer still counts`() async throws {
        try await withNotices { bench in
            let id = try await bench.put("sms", "+4930123456", key: "a")
            let first = try await bench.take(alarms: true, holder: 1)
            #expect(first.map(\.id) == [id])
            #expect(try await bench.take(alarms: true, holder: 2).isEmpty)
            try await bench.connection.run("select millrace.test_clock_advance('31 seconds')")
            let second = try await bench.take(alarms: true, holder: 2)
            #expect(second.map(\.id) == [id] && second[0].isAgain && second[0].attempt == 2)
            #expect(try await bench.look(id, "status || attempts || duplicates") == "attempting21")
            // The first one's failure says nothing of the second try.
            try await bench.record(first[0], .refused(Fault(.invalid, "no")), holder: 1, provider: "sms")
            #expect(try await bench.look(id) == "attempting")
            try await bench.record(first[0], .accepted(id: "late"), holder: 1, provider: "sms")
            #expect(try await bench.look(id) == "accepted")
            try await bench.record(second[0], .failed(unavailable), holder: 2, provider: "sms")
            #expect(try await bench.look(id) == "accepted")
            let outcomes = try await bench.connection.column(
                "select outcome from millrace.notice_attempt where notice = '\(id)' order by n, at")
            #expect(outcomes == ["lost", "refused", "accepted", "failed"])
        }
    }

    @Test func `an alarm is tried for hours, anything else a few times`() async throws {
        try await withNotices { bench in
            let alarm = try await bench.put("sms", "+4930123456", key: "a")
            let plain = try await bench.put("sms", "+4930123456", key: "b", alarm: false, kind: "note")
            for _ in 0..<60 {
                for isAlarm in [true, false] {
                    for one in try await bench.take(alarms: isAlarm) {
                        try await bench.record(one, .failed(unavailable), provider: "sms")
                    }
                }
                try await bench.connection.run("select millrace.test_clock_advance('75 seconds')")
            }
            #expect(try await bench.look(alarm, "status || ' ' || (attempts >= 55)") == "pending true")
            try await bench.connection.run("select millrace.test_clock_advance('2 hours')")
            for _ in 0..<8 {
                for one in try await bench.take(alarms: false) {
                    try await bench.record(one, .failed(unavailable), provider: "sms")
                }
                try await bench.connection.run("select millrace.test_clock_advance('2 hours')")
            }
            #expect(try await bench.look(plain, "status || ' ' || attempts || ' ' || error") == "failed 8 it is away")
            try await bench.connection.run("select millrace.test_clock_advance('1 day')")
            for one in try await bench.take(alarms: true) {
                try await bench.record(one, .failed(unavailable), provider: "sms")
            }
            #expect(try await bench.look(alarm) == "failed")

            // By SMS a reminder that may have arrived is not sent again; an alarm is, and that is counted.
            let doubtful = try await bench.put("sms", "+4930123456", key: "c", alarm: false, kind: "note")
            let again = try await bench.put("sms", "+4930123456", key: "d")
            for isAlarm in [true, false] {
                for one in try await bench.take(alarms: isAlarm) {
                    try await bench.record(one, .unknown(Fault(.unknown, "lost")), provider: "sms")
                }
            }
            #expect(try await bench.look(doubtful) == "failed")
            #expect(try await bench.look(again, "status || duplicates") == "pending1")
        }
    }

    @Test func `a provider that is not called uses up no try, and is called as soon as it was said`() async throws {
        try await withNotices { bench in
            let id = try await bench.put("sms", "+4930123456", key: "a", alarm: false, kind: "note")
            for _ in 0..<20 {
                let one = try #require(try await bench.take(alarms: false).first)
                let refusal = CallRefusal(provider: "sms", why: .open, wait: .seconds(7))
                try await bench.record(one, .notCalled(refusal), provider: "sms")
                let next = try #require(try await NoticeStore.next(alarms: false, on: bench.connection))
                #expect(next > .seconds(0) && next <= .seconds(7))
                try await bench.connection.run("select millrace.test_clock_advance('7 seconds')")
            }
            #expect(try await bench.look(id, "status || ' ' || attempts || ' ' || provider") == "pending 0 sms")
            #expect(try await bench.look(id, "error")?.hasPrefix("sms is not called for now") == true)
            let one = try #require(try await bench.take(alarms: false).first)
            try await bench.record(one, .accepted(id: "1"), provider: "sms")
            #expect(try await bench.look(id, "status || ' ' || attempts") == "accepted 1")
            #expect(try await bench.connection.int("select count(*) from millrace.notice_attempt") == 1)
        }
    }

    @Test func `a lone reminder is taken within seconds of its next try after an outage`() async throws {
        try await withNotices { bench in
            let id = try await bench.put("sms", "+4930123456", key: "a", alarm: false, kind: "note")
            let outage = try await ProviderOutage(of: "sms", in: bench.database, on: bench.connection)
            let provider = ScriptedNoticeProvider("sms")
            let router = NoticeRouter(
                providers: ["sms": provider], supervisor: outage.supervisor, app: "Shop", locale: "en", links: nil,
                phrases: PublishedPhrases())
            let waits = try await outage.tries {
                for one in try await bench.take(alarms: false) {
                    let (name, outcome) = await router.bring(one, deadline: .seconds(30))
                    try await bench.record(one, outcome, provider: name)
                }
                return try await NoticeStore.next(alarms: false, on: bench.connection)
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
            #expect(try await bench.look(id, "status || ' ' || attempts") == "accepted 1")
            #expect(provider.sendings.count == 1)
        }
    }

    @Test func `a mail is accepted when the mail room has it, and fails when that can not deliver`() async throws {
        try await withNotices { bench in
            let id = try await bench.put("mail", "ada@example.org", key: "a")
            let bad = try await bench.put("mail", "no address", key: "b")
            let taken = try await bench.take(alarms: true)
            #expect(taken.count == 2)
            let done = try await NoticeStore.handOver(
                taken.map { NoticeStore.Letter(id: $0.id, subject: "Ben may need help", body: "Look.\n") }, holder: 1,
                on: bench.connection)
            #expect(done == 1)
            #expect(
                try await bench.look(id, "status || ' ' || provider || ' ' || (accepted_at is not null)")
                    == "accepted mail true")
            #expect(try await bench.look(bad) == "failed")
            #expect(
                try await bench.connection.records(
                    "select m.priority, m.purpose, m.on_unknown, j.lane >> 2, c.subject from millrace.mail m join millrace.job j on j.id = m.job join millrace.mail_content c on c.message = m.id"
                ) == ["(urgent,alarm,again,0,\"Ben may need help\")"])
            try await bench.connection.run(
                "select millrace.mail_raise(id, 'bounced', 'bounced', 'no such mailbox') from millrace.mail")
            #expect(
                try await bench.look(id, "status || ': ' || error")
                    == "failed: the mail was handed over and is bounced: no such mailbox")
        }
    }

    @Test func `devices and preferences are the person's own, and refused when they make no sense`() async throws {
        try await withNotices { bench in
            let connection = bench.connection
            #expect(try await connection.bool("select millrace.device_add('ada', 'apns', 'token-0001')"))
            #expect(try await connection.bool("select millrace.device_add('ada', 'apns', 'token-0001')") == false)
            #expect(try await connection.bool("select millrace.device_add('ben', 'apns', 'token-0001')"))
            #expect(try await connection.column("select person from millrace.device_list()") == ["ben"])
            for number in 1...60 {
                try await connection.run("select millrace.device_add('eve', 'fcm', 'token-of-eve-\(number)')")
            }
            #expect(try await connection.int("select count(*) from millrace.device_list('eve', page => 500)") == 50)
            for (call, code, field) in [
                ("device_add('ada', 'palm', 'token-0001')", "22023", "platform"),
                ("device_add('ada', 'apns', '../../x')", "22023", "token"),
                ("device_add('ada', 'apns', 'token-0001', 'a b')", "22023", "app"),
                ("notice_preferences('ada', 'Mars', '22:00', '07:00', '{}', null)", "22023", "zone"),
                ("notice_preferences('ada', 'UTC', null, '07:00', '{}', null)", "22023", "zone"),
                (#"notice_preferences('ada', 'UTC', '22:00', '07:00', '{"sms": "0301"}', null)"#, "22023", "channels"),
                (#"notice_preferences('ada', 'UTC', '22:00', '07:00', '{"mail": "x"}', null)"#, "22023", "channels"),
                (
                    #"notice_preferences('ada', 'UTC', '22:00', '07:00', '{"kinds": {"a": ["fax"]}}', null)"#, "22023",
                    "channels"
                ),
                ("notice_preferences('ada', 'UTC', '22:00', '07:00', '{}', 'x y')", "22023", "locale"),
                ("notice_send('ada', 'note', channels => array['fax'])", "22023", "channels"),
            ] {
                let refusal = try await connection.refusal(of: "select millrace.\(call)")
                #expect(refusal?.sqlState == code, "\(call): \(refusal?.message ?? "taken")")
                #expect(refusal?.detail?.contains("\"\(field)\"") == true, "\(call): \(refusal?.detail ?? "")")
            }
            try await connection.run(#"select set_config('request.jwt.claims', '{"sub": "ada"}', false)"#)
            #expect(
                try await connection.refusal(of: "select millrace.device_add('ben', 'apns', 'token-0009')")?.sqlState
                    == "42501")
            #expect(try await connection.bool("select millrace.device_remove('token-0001')") == false)
            #expect(try await connection.bool("select millrace.device_add('ada', 'apns', 'token-0009')"))
            #expect(try await connection.bool("select millrace.device_remove('token-0009')"))
        }
    }

    @Test func `nothing is left of a person who is erased, and old notices go`() async throws {
        try await withNotices { bench in
            try await bench.addDevice("token-0001")
            try await bench.prefer("{}")
            let id = try await bench.send()
            for one in try await bench.take(alarms: false) { try await bench.record(one, .accepted(id: nil)) }
            try await bench.send("note", to: "ben")
            try await bench.connection.run("select millrace.person_erase('ada', 'ada')")
            #expect(try await bench.look(id) == nil)
            for table in ["notice", "device", "notice_preference"] {
                #expect(
                    try await bench.connection.int("select count(*) from millrace.\(table) where person = 'ada'") == 0)
            }
            #expect(try await bench.connection.int("select count(*) from millrace.notice_attempt") == 0)
            _ = try await bench.take(alarms: false)
            try await bench.connection.run("select millrace.test_clock_advance('29 days')")
            #expect(try await bench.connection.int("select millrace.notices_expire()") == 0)
            try await bench.connection.run("select millrace.test_clock_advance('2 days')")
            #expect(try await bench.connection.int("select millrace.notices_expire()") == 1)
        }
    }

    @Test func `what is due is found by its index, however much is not due and before any ANALYZE`() async throws {
        try await withNotices { bench in
            try await bench.connection.run(
                """
                insert into millrace.notice (id, person, kind, data, alarm, status, due_at, created_at, channel, address)
                select gen_random_uuid(), 'p' || n, 'note', '{}', n % 2 = 0, case n % 3 when 0 then 'accepted' else 'pending' end,
                       millrace.now() + interval '1 day', millrace.now(), 'sms', '+49301234' || n
                  from generate_series(1, 30000) n
                """)
            try await bench.put("sms", "+4930123456", key: "a")
            try await bench.connection.run("select pg_stat_force_next_flush()")
            let before = try await bench.connection.int(
                "select seq_scan from pg_stat_user_tables where relid = 'millrace.notice'::regclass")
            let read = try await bench.connection.int(
                "select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where relid = 'millrace.notice'::regclass"
            )
            #expect(try await bench.take(alarms: true).count == 1)
            #expect(try await bench.take(alarms: false).isEmpty)
            _ = try await bench.connection.value("select millrace.notice_next(true)")
            try await bench.connection.run("select pg_stat_force_next_flush()")
            try await bench.connection.run("select pg_stat_clear_snapshot()")
            let after = try await bench.connection.int(
                "select seq_scan from pg_stat_user_tables where relid = 'millrace.notice'::regclass")
            let readAfter = try await bench.connection.int(
                "select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where relid = 'millrace.notice'::regclass"
            )
            #expect(after == before)
            #expect(readAfter - read < 200, "\(readAfter - read)")
        }
    }
}
