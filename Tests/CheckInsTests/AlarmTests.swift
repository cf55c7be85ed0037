import Postgres
import TestSupport
import Testing

@testable import CheckIns

@Suite struct AlarmTests {
    /// Anna, with mum first, bob and eve after five minutes, missed an hour ago.
    private func missed(_ connection: Connection) async throws -> String {
        try await connection.befriend("anna", "mum", channels: #"{"mail": "mum@example.com", "sms": "+4915112345678"}"#)
        try await connection.befriend("anna", "bob", step: 2)
        try await connection.befriend("anna", "eve", step: 2)
        try await connection.arm("anna", "warnings => '{}',")
        try await connection.advance(by: "61 min")
        try await connection.watch()
        return try #require(try await connection.value("select id from millrace.alarms"))
    }

    @Test func `steps are taken until somebody answers, and all who were told hear of it`() async throws {
        try await withConnection(.movableClock) { connection in
            let alarm = try await missed(connection)
            #expect(try await connection.told() == ["alarm.raised mum mail", "alarm.raised mum sms"])
            #expect(try await connection.bool("select late_by >= interval '1 min' from millrace.alarms"))
            try await connection.advance(by: "5 min")
            try await connection.watch()
            #expect(try await connection.told().suffix(2) == ["alarm.escalated bob mail", "alarm.escalated eve mail"])
            #expect(
                try await connection.value("select millrace.check_in_respond('\(alarm)', 'bob', 'on_my_way')")
                    == "acknowledged")
            #expect(
                try await connection.told().suffix(3) == [
                    "alarm.acknowledged mum mail", "alarm.acknowledged mum sms", "alarm.acknowledged eve mail",
                ])
            let count = try await connection.told().count
            // A second answer, by the same contact or another, notifies nobody again, and changes nothing.
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'bob', 'on_my_way')")
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'eve', 'acknowledged')")
            try await connection.advance(by: "3 hours")
            try await connection.watch()
            #expect(try await connection.told().count == count)
            // Bob cannot after all, but eve can; then eve cannot either: the next step starts at once.
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'bob', 'cannot')")
            #expect(try await connection.value("select acknowledged_by from millrace.alarms") == "eve")
            #expect(
                try await connection.value("select millrace.check_in_respond('\(alarm)', 'eve', 'cannot')") == "open")
            #expect(try await connection.told().count == count + 2)
            #expect(
                try await connection.value("select millrace.check_in_respond('\(alarm)', 'mum', 'safe')") == "resolved")
            #expect(try await connection.alarmState() == ["resolved contact"])
            #expect(try await connection.told().suffix(2) == ["alarm.resolved bob mail", "alarm.resolved eve mail"])
            #expect(
                try await connection.value("select millrace.check_in_respond('\(alarm)', 'bob', 'safe')") == "resolved")
            #expect(
                try await connection.refusal(of: "select millrace.check_in_respond('\(alarm)', 'x', 'safe')")?.sqlState
                    == "P0002")
            #expect(try await connection.watchState() == "expired")
        }
    }

    @Test func `when all of a step cannot, or nothing reaches one of them, the next is taken at once`() async throws {
        try await withConnection(.movableClock) { connection in
            let alarm = try await missed(connection)
            try await connection.run(
                "update millrace.notice set status = 'failed' where alarm and channel = 'mail'")
            try await connection.watch()
            #expect(try await connection.told().count == 2)  // a channel is left
            try await connection.run(
                "update millrace.notice set status = 'accepted', accepted_at = millrace.now() where channel = 'sms' and alarm"
            )
            #expect(try await connection.bool("select first_accepted_at is not null from millrace.alarms"))
            try await connection.run("update millrace.notice set status = 'failed' where alarm and channel = 'sms'")
            try await connection.watch()
            #expect(try await connection.told().count == 4)
            #expect(try await connection.value("select step from millrace.alarms") == "2")
            // That does not start the round again: an alarm that can reach nobody must not use up the rounds.
            try await connection.run("update millrace.notice set status = 'failed' where alarm")
            try await connection.watch()
            #expect(try await connection.told().count == 4)
            #expect(
                try await connection.int("select count(*) from millrace.alarm_history where what = 'not_reached'") == 4)
            #expect(try await connection.alarmState() == ["open"])
            try await connection.advance(by: "6 min")
            try await connection.watch()
            #expect(try await connection.value("select round from millrace.alarms") == "2")
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'mum', 'cannot')")
            #expect(try await connection.value("select step from millrace.alarms") == "2")
        }
    }

    @Test func `a mail that bounces after it was handed over is as good as none: the next step is taken at once`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.befriend("anna", "bob", step: 2)
            try await connection.arm("anna", "warnings => '{}',")
            try await connection.advance(by: "61 min")
            try await connection.watch()
            #expect(try await connection.told() == ["alarm.raised mum mail"])
            try await connection.run(
                """
                select count(*) from millrace.notice_take(true, 10, 1, 30);
                select millrace.notice_mail(1, (select jsonb_agg(jsonb_build_object('id', n.id, 'subject', 's', 'body', 'b'))
                                                  from millrace.notice n where n.alarm and n.status = 'attempting'))
                """)
            try await connection.watch()
            #expect(try await connection.value("select status from millrace.notice where alarm") == "accepted")
            #expect(try await connection.told().count == 1)
            try await connection.run(
                "select millrace.mail_raise(id, 'bounced', 'bounced', 'no such mailbox') from millrace.mail where purpose = 'alarm'"
            )
            try await connection.watch()
            #expect(try await connection.told() == ["alarm.raised mum mail", "alarm.escalated bob mail"])
            #expect(
                try await connection.value("select contact from millrace.alarm_history where what = 'not_reached'")
                    == "mum")
        }
    }

    @Test func `nobody answers: everybody, each hour, and an operator ends it`() async throws {
        try await withConnection(.movableClock) { connection in
            let alarm = try await missed(connection)
            for _ in 0..<6 {
                try await connection.advance(by: "5 min 1 s")
                try await connection.watch()
            }
            #expect(try await connection.alarmState() == ["unreachable"])
            let count = try await connection.told().count
            for hours in 1...3 {
                try await connection.advance(by: "61 min")
                try await connection.watch()
                #expect(try await connection.told().count == count + 4 * hours)
            }
            #expect(try await connection.int("select unreachable from millrace.check_in_state()") == 1)
            #expect(try await connection.bool("select millrace.check_in_resolve('\(alarm)', 'found')"))
            #expect(try await connection.alarmState() == ["resolved operator"])
            #expect(try await connection.int("select count(*) from millrace.notice where kind = 'alarm.resolved'") == 4)
            let keys = try await connection.int("select count(*) - count(distinct (person, key)) from millrace.notice")
            #expect(keys == 0)
        }
    }

    @Test func `help is told now, again when it is asked for again, and no check-in takes it back`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm()
            let alarm = try #require(
                try await connection.value("select millrace.check_in_alarm('anna', 'at the lake', 'anna')"))
            #expect(try await connection.told() == ["alarm.raised mum mail"])
            #expect(
                try await connection.value("select data ->> 'body' from millrace.notice where kind = 'alarm.raised'")?
                    .contains("at the lake") == true)
            #expect(try await connection.value("select millrace.check_in_alarm('anna', null, 'anna')") == alarm)
            #expect(try await connection.told().count == 1)
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'mum', 'acknowledged')")
            try await connection.advance(by: "2 min")
            try await connection.run("select millrace.check_in_alarm('anna', null, 'anna')")
            #expect(try await connection.told() == ["alarm.raised mum mail", "alarm.raised mum mail"])
            try await connection.checkIn()
            #expect(try await connection.alarmState() == ["open"])
            #expect(
                try await connection.refusal(of: "select millrace.check_in_respond('\(alarm)', 'anna', 'cannot')")?
                    .sqlState == "22023")
            #expect(
                try await connection.value("select millrace.check_in_respond('\(alarm)', 'anna', 'safe')") == "resolved"
            )
            // Nobody to be told is no reason to refuse.
            try await connection.run("select millrace.check_in_alarm('carl', null, 'carl')")
            #expect(try await connection.alarmState("carl") == ["unreachable"])
        }
    }

    @Test func `help within an open alarm is told with the time at which it was asked for`() async throws {
        try await withConnection(.movableClock) { connection in
            _ = try await missed(connection)
            let now = "select millrace.time_in_zone(millrace.now(), millrace.alarm_zone('anna', 'mum'))"
            for _ in 0..<2 {
                try await connection.advance(by: "28 min")
                // The minute may turn between the two.
                let before = try await connection.value(now)
                try await connection.run("select millrace.check_in_help('anna', null, 'anna')")
                let after = try await connection.value(now)
                let body = try await connection.value(
                    "select data ->> 'body' from millrace.notice where kind = 'alarm.raised' and person = 'mum' order by created_at desc limit 1"
                )
                let told = try #require(body)
                #expect([before, after].contains { told.contains($0 ?? "?") }, "\(told)")
                #expect(!told.contains("late"))
                #expect(
                    try await connection.bool(
                        "select expired_at > millrace.now() - interval '1 min' and late_by = '0' from millrace.alarms"))
            }
        }
    }

    @Test func `a call for help says in its result who is told, and that nobody can be`() async throws {
        try await withConnection(.movableClock) { connection in
            func help(_ person: String) async throws -> String? {
                try await connection.value(
                    "select concat_ws(' | ', h -> 'told', h -> 'to_tell', h -> 'reaches_nobody') from (select millrace.check_in_help('\(person)', null, '\(person)') as h) x"
                )
            }
            #expect(try await help("carl") == "[] | [] | true")
            #expect(try await connection.alarmState("carl") == ["unreachable"])
            // An address that has not agreed is none.
            try await connection.run(
                #"select millrace.check_in_contact('carl', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'carl')"#)
            #expect(try await help("carl") == "[] | [] | true")
            try await connection.befriend()
            try await connection.befriend("anna", "dad", step: 2)
            #expect(try await help("anna") == #"["mum"] | ["dad"] | false"#)
            try await connection.advance(by: "6 min")
            try await connection.watch()
            #expect(
                try await connection.value(
                    "select a ->> 'sentence' from jsonb_array_elements(millrace.check_in_show('anna', 'anna') -> 'alarms') a"
                )
                    == "told: dad, mum")
            // The released call has the same effect and answers the same alarm.
            #expect(
                try await connection.value("select millrace.check_in_alarm('anna', null, 'anna')")
                    == connection.value("select millrace.check_in_help('anna', null, 'anna') ->> 'alarm'"))
        }
    }

    @Test func `a drill goes through the whole chain as a test, and ends by itself`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.befriend("anna", "bob", step: 2)
            try await connection.run("select millrace.check_in_drill('anna', 'anna')")
            try await connection.advance(by: "6 min")
            try await connection.watch()
            try await connection.advance(by: "6 min")
            try await connection.watch()
            #expect(try await connection.alarmState() == ["resolved drill"])
            #expect(
                try await connection.column("select distinct kind from millrace.notice where alarm") == ["alarm.drill"])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.notice where alarm and data ->> 'body' not like 'TEST: %'") == 0)
            #expect(try await connection.int("select count(*) from millrace.notice where alarm") == 4)
            let second = try #require(try await connection.value("select millrace.check_in_drill('anna', 'anna')"))
            #expect(
                try await connection.value("select millrace.check_in_respond('\(second)', 'mum', 'acknowledged')")
                    == "resolved")
        }
    }

    @Test func `after downtime the oldest comes first, each says how late it is, and a broken one stands aside`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                create function public.break_it() returns trigger language plpgsql as
                    $$ begin if new.person = 'p3' then raise 'no way'; end if; return new; end $$;
                create trigger break_it before insert on millrace.alarm for each row execute function public.break_it()
                """)
            for n in 1...6 {
                try await connection.befriend("p\(n)")
                try await connection.arm("p\(n)", "every => '\(70 - n * 10) min', warnings => '{}',")
            }
            try await connection.advance(by: "5 hours")
            #expect(
                try await connection.column("select expired || ' ' || failed from millrace.watch_step('t', 2)") == [
                    "2 0"
                ])
            #expect(try await connection.column("select person from millrace.alarms order by person") == ["p5", "p6"])
            try await connection.watch()
            #expect(
                try await connection.column("select person from millrace.alarms order by expired_at") == [
                    "p6", "p5", "p4", "p2", "p1",
                ])
            #expect(try await connection.bool("select bool_and(late_by > interval '3 hours') from millrace.alarms"))
            #expect(
                try await connection.value("select problem from millrace.check_ins where person = 'p3'") == "no way")
            #expect(
                try await connection.bool(
                    "select broken = 1 from millrace.check_in_state()"))
            try await connection.run("drop trigger break_it on millrace.alarm")
            try await connection.advance(by: "1 min")
            try await connection.watch()
            #expect(try await connection.alarmState("p3") == ["open"])
        }
    }

    @Test func `a contact whose notice cannot be written keeps no other from being told`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                create function public.break_it() returns trigger language plpgsql as
                    $$ begin if new.address = 'bad@example.com' and new.alarm then raise 'no way'; end if; return new; end $$;
                create trigger break_it before insert on millrace.notice for each row execute function public.break_it()
                """)
            try await connection.befriend("anna", "bad")
            try await connection.befriend("anna", "mum")
            try await connection.run("update millrace.watch set zone = 'No/Where'")
            try await connection.arm("anna", "warnings => '{}',")
            try await connection.run("update millrace.watch set zone = 'No/Where'")
            try await connection.advance(by: "61 min")
            try await connection.watch()
            #expect(try await connection.told() == ["alarm.raised mum mail"])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.alarm_history where what = 'not_told' and contact = 'bad'") == 1)
        }
    }

    @Test func `the feed says what changed, in the order in which it came to be seen`() async throws {
        try await withConnection(.movableClock) { connection in
            _ = try await missed(connection)
            try await connection.checkIn()
            let changes = try await connection.column(
                "select change from millrace.checkin_changes(0, 500) order by seq")
            #expect(
                changes.filter { !["contact", "asked", "consent_given"].contains($0) } == [
                    "armed", "raised", "resolved",
                ])
            #expect(
                try await connection.column("select change from millrace.checkin_changes(\(changes.count), 500)")
                    .isEmpty)
            #expect(try await connection.int("select max(seq) from millrace.checkin_changes(0, 500)") == changes.count)
        }
    }

    @Test func `a person is erased, and so is an address`() async throws {
        try await withConnection(.movableClock) { connection in
            _ = try await missed(connection)
            try await connection.befriend("carl", "anna")
            try await connection.arm("carl", "warnings => '{}',")
            try await connection.advance(by: "61 min")
            try await connection.watch()
            try await connection.run(
                "select millrace.check_in_respond(id, 'anna', 'safe') from millrace.alarms where person = 'carl'")
            // How often this session read whole tables; reads before this are included.
            func walked() async throws -> [String] {
                try await connection.column(
                    "select relname || ' ' || seq_scan from pg_stat_xact_user_tables where schemaname = 'millrace' and relname in ('alarm', 'alarm_event', 'checkin_change') order by 1"
                )
            }
            try await connection.run("begin")
            let before = try await walked()
            #expect(
                try await connection.bool("select (millrace.person_erase('anna', 'anna') ->> 'checkins')::int > 10"))
            // Found by indexes, and not by reading everybody's history.
            #expect(try await walked() == before)
            try await connection.run("commit")
            for table in ["watch", "watch_contact", "watch_address", "alarm", "alarm_event", "notice"] {
                let left = try await connection.int(
                    "select count(*) from millrace.\(table) t where t::text ~ 'anna|mum|bob' and t::text !~ ':left:'")
                #expect(left == 0, "\(table)")
            }
            // People who were told of the open alarm are told that it is over; the time says which, because her name is gone.
            #expect(
                try await connection.column(
                    "select kind || ' ' || person || ' ' || channel from millrace.notice where key ~ ':left:' order by 1"
                )
                    == [
                        "alarm.resolved bob mail", "alarm.resolved eve mail", "alarm.resolved mum mail",
                        "alarm.resolved mum sms",
                    ])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.notice where key ~ ':left:' and (data::text ~ 'anna' or data ->> 'body' not like 'You were told of a check-in that was due by 2%')"
                ) == 0)
            try await connection.befriend("carl", "dave")
            try await connection.run("select millrace.mail_erase('Dave@example.com')")
            #expect(try await connection.int("select count(*) from millrace.watch_address") == 0)
        }
    }
}
