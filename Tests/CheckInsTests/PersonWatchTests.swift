import Postgres
import TestSupport
import Testing

@testable import CheckIns

@Suite struct PersonWatchTests {
    @Test func `nobody is watched over whom nobody would be told of`() async throws {
        try await withConnection(.movableClock) { connection in
            let refused = try #require(
                try await connection.refusal(of: "select millrace.check_in_arm('anna', actor => 'anna')"))
            #expect(refused.sqlState == "55000" && refused.hint?.contains("check_in_contact") == true)
            try await connection.run(
                #"select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "mum@example.com", "push": true}', actor => 'anna')"#
            )
            #expect(
                try await connection.refusal(of: "select millrace.check_in_arm('anna', actor => 'anna')")?.sqlState
                    == "55000")
            #expect(
                try await connection.column(
                    "select channel from millrace.notice where kind = 'alarm.consent' order by 1")
                    == ["mail", "push"])
            // The link confirms only the address that it was sent to.
            let ref = try #require(
                try await connection.value("select ref from millrace.watch_address where channel = 'mail'"))
            #expect(try await connection.bool("select millrace.check_in_consent('\(ref)', true)"))
            try await connection.arm()
            #expect(try await connection.watchState() == "armed")
            #expect(
                try await connection.column(
                    "select (c ->> 'channel') || ' ' || (c ->> 'consent') from jsonb_array_elements(millrace.watch_contacts('anna') -> 0 -> 'channels') c"
                )
                    == ["mail given", "push asked"])
            // Only the contact itself confirms its own devices.
            #expect(
                try await connection.refusal(of: "select millrace.check_in_accept('anna', true, 'eve')")?.sqlState
                    == "P0002")
            #expect(try await connection.int("select millrace.check_in_accept('anna', true, 'mum')") == 1)
            // The last contact stays while the watch runs; but a contact that declines is told nothing, even if nobody is left.
            #expect(
                try await connection.refusal(of: "select millrace.check_in_contact_remove('anna', 'mum', 'anna')")?
                    .sqlState == "55000")
            #expect(try await connection.int("select millrace.check_in_accept('anna', false, 'mum')") == 2)
            try await connection.advance(by: "61 min")
            try await connection.watch()
            #expect(try await connection.alarmState() == ["unreachable"])
            #expect(try await connection.told().isEmpty)
            // A new address is asked again.
            try await connection.run(
                #"select millrace.check_in_contact('anna', 'dad', 1, '{"sms": "+4915112345678"}', actor => 'anna'), millrace.check_in_confirm('anna', 'dad')"#
            )
            try await connection.run(
                #"select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "other@example.com"}', actor => 'anna')"#
            )
            #expect(
                try await connection.int(
                    "select count(*) from millrace.watch_address where contact = 'mum' and verified_at is not null")
                    == 0)
        }
    }

    @Test
    func `a check-in moves the deadline, touches no index of the watch, and writes a row of the feed and nothing else`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.befriend()
            try await connection.arm()
            let wake = try await connection.value("select wake_at from millrace.watch")
            // Its own session, whose counts contain nothing that others have written.
            let person = try await database.connect()
            try await person.run("begin")
            try await person.checkIn()
            let written = try await person.column(
                "select relname || ' ' || n_tup_ins || ' ' || n_tup_upd || ' ' || n_tup_hot_upd || ' ' || n_tup_del from pg_stat_xact_user_tables where n_tup_ins + n_tup_upd + n_tup_del > 0 order by 1"
            )
            #expect(written == ["feed 1 0 0 0", "watch 0 1 1 0"])
            try await person.run("commit")
            #expect(try await connection.value("select wake_at from millrace.watch") == wake)
            #expect(
                try await connection.bool(
                    "select check_in_expiration = last_checked_in + interval '1 hour' from millrace.check_ins"))
            await person.close()
            await connection.close()
        }
    }

    @Test func `what is not armed, and who acts for another, is refused`() async throws {
        try await withConnection { connection in
            try await connection.befriend()
            #expect(
                try await connection.refusal(of: "select millrace.check_in('anna', actor => 'anna')")?.sqlState
                    == "P0002")
            try await connection.arm()
            #expect(try await connection.refusal(of: "select millrace.check_in('anna')")?.sqlState == "22023")
            #expect(
                try await connection.refusal(of: "select millrace.check_in('anna', actor => 'eve')")?.sqlState
                    == "42501")
            try await connection.run(#"select set_config('request.jwt.claims', '{"sub": "anna"}', false)"#)
            try await connection.run("select millrace.check_in('anna')")
            #expect(
                try await connection.refusal(of: "select millrace.check_in('anna', actor => 'mum')")?.sqlState
                    == "42501")
            try await connection.run("select set_config('request.jwt.claims', '', false)")
            #expect(try await connection.bool("select millrace.check_in_disarm('anna', 'holiday', 'anna')"))
            #expect(
                try await connection.refusal(of: "select millrace.check_in('anna', actor => 'anna')")?.sqlState
                    == "55000")
        }
    }

    @Test func `a warning comes once for each deadline, and the timer re-arms what has moved`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "warnings => '{10 min, 5 min}',")
            try await connection.advance(by: "30 min")
            try await connection.checkIn()
            try await connection.advance(by: "21 min")
            try await connection.watch()
            #expect(try await connection.told().isEmpty)
            #expect(try await connection.bool("select wake_at = expires_at - interval '10 min' from millrace.watch"))
            try await connection.advance(by: "30 min")
            try await connection.watch()
            try await connection.watch()
            #expect(try await connection.told() == ["alarm.warning anna"])
            #expect(try await connection.watchState() == "warned")
            try await connection.advance(by: "5 min")
            try await connection.watch()
            #expect(try await connection.told().count == 2)
            try await connection.checkIn()
            #expect(try await connection.watchState() == "armed")
            try await connection.advance(by: "6 min")
            try await connection.watch()
            #expect(try await connection.told().count == 2)
            #expect(try await connection.alarmState().isEmpty)
        }
    }

    @Test func `a check-in that has the row before the expiry wins, however late it commits`() async throws {
        try await withDatabase(.movableClock) { database in
            let (person, timer) = (try await database.connect(), try await database.connect())
            try await timer.befriend()
            try await timer.arm("anna", "warnings => '{}',")
            try await timer.advance(by: "59 min")
            try await person.run("begin")
            try await person.checkIn()
            try await timer.advance(by: "2 min")
            #expect(try await timer.int("select taken from millrace.watch_step('t')") == 0)
            #expect(try await timer.bool("select oldest > 0 and wait <= 0 from millrace.watch_step('t')"))
            try await person.run("commit")
            try await timer.watch()
            #expect(try await timer.alarmState().isEmpty)
            #expect(try await timer.watchState() == "armed")
            await person.close()
            await timer.close()
        }
    }

    @Test func `a check-in that finds the timer at its row is late, and ends the alarm`() async throws {
        try await withDatabase(.movableClock) { database in
            let (person, timer, eye) = (
                try await database.connect(), try await database.connect(), try await database.connect()
            )
            try await eye.befriend()
            try await eye.arm("anna", "warnings => '{}',")
            try await eye.advance(by: "61 min")
            try await timer.run("begin")
            #expect(try await timer.int("select expired from millrace.watch_step('t')") == 1)
            let process = try await person.process()
            async let late: Void = person.checkIn()
            try await waitUntilBlocked(process, seenBy: eye)
            try await timer.run("commit")
            try await late
            #expect(try await eye.alarmState() == ["resolved late_check_in"])
            #expect(try await eye.watchState() == "armed")
            // Unsent notices are not sent any more, and the end is told.
            #expect(
                try await eye.column(
                    "select kind || ' ' || status from millrace.notice where alarm order by created_at")
                    == ["alarm.raised cancelled", "alarm.resolved pending"])
            for connection in [person, timer, eye] { await connection.close() }
        }
    }

    @Test func `behind the expiry and before the timer, the alarm is there all the same`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "warnings => '{}',")
            try await connection.advance(by: "61 min")
            try await connection.checkIn()
            #expect(try await connection.alarmState() == ["resolved late_check_in"])
            #expect(try await connection.told() == ["alarm.resolved mum mail"])
            try await connection.watch()
            #expect(try await connection.told().count == 1)
            #expect(try await connection.watchState() == "armed")
        }
    }

    @Test func `a late check-in from offline ends the alarm, and arms nothing when its own interval is over`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "warnings => '{}',")
            try await connection.advance(by: "2 hours")
            try await connection.watch()
            try await connection.checkIn(at: "millrace.now() - interval '70 min'")
            #expect(try await connection.alarmState() == ["resolved late_check_in"])
            #expect(try await connection.watchState() == "expired")
            try await connection.checkIn(at: "millrace.now() - interval '20 min'")
            #expect(try await connection.watchState() == "armed")
            #expect(
                try await connection.bool(
                    "select check_in_expiration between millrace.now() + interval '35 min' and millrace.now() + interval '41 min' from millrace.check_ins"
                ))
            // Not believed: it is older than the last. Counted as of now, and said.
            try await connection.checkIn(at: "millrace.now() - interval '3 hours'")
            #expect(
                try await connection.bool(
                    "select check_in_expiration > millrace.now() + interval '59 min' from millrace.check_ins"))
            #expect(
                try await connection.column(
                    "select change from millrace.checkin_changes() where change = 'at_not_used'")
                    == ["at_not_used"])
            #expect(try await connection.alarmState() == ["resolved late_check_in"])
        }
    }

    @Test func `a pause misses nothing, an interval is never shorter than the grace, disarming hides no alarm`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "warnings => '{}',")
            try await connection.run(
                "select millrace.check_in_pause('anna', millrace.now() + interval '8 hours', 'anna')")
            try await connection.advance(by: "7 hours")
            try await connection.watch()
            try await connection.checkIn()
            #expect(try await connection.watchState() == "paused")
            try await connection.advance(by: "61 min")
            try await connection.watch()
            #expect(try await connection.watchState() == "armed")
            #expect(
                try await connection.bool("select wake_at > millrace.now() + interval '50 min' from millrace.watch"))
            try await connection.advance(by: "30 min")
            try await connection.run("select millrace.check_in_set_interval('anna', '10 min', 'anna')")
            #expect(
                try await connection.bool(
                    "select check_in_expiration between millrace.now() + interval '4 min' and millrace.now() + interval '5 min' from millrace.check_ins"
                ))
            #expect(
                try await connection.refusal(
                    of: "select millrace.check_in_pause('anna', millrace.now() - interval '1 s', 'anna')")?.sqlState
                    == "22023")
            try await connection.advance(by: "6 min")
            // Late, and the timer has not looked yet: neither a longer interval nor disarming takes the alarm away.
            try await connection.run("select millrace.check_in_set_interval('anna', '3 hours', 'anna')")
            #expect(
                try await connection.refusal(
                    of: "select millrace.check_in_pause('anna', millrace.now() + interval '1 hour', 'anna')")?
                    .sqlState == "55000")
            try await connection.run("select millrace.check_in_disarm('anna', null, 'anna')")
            #expect(try await connection.alarmState() == ["open"])
            #expect(try await connection.told() == ["alarm.raised mum mail"])
            try await connection.arm()
            #expect(try await connection.watchState() == "armed")
        }
    }
}
