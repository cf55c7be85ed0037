import Postgres
import TestSupport
import Testing

@testable import CheckIns

/// How often people are asked to be a contact, and the effect of their answers.
@Suite struct ConsentTests {
    private let all = #"{"mail": "mum@example.com", "sms": "+4915112345678", "voice": "+4915112345678"}"#

    private func name(
        _ connection: Connection, _ person: String, _ contact: String, _ channels: String
    ) async throws {
        try await connection.run(
            "select millrace.check_in_contact('\(person)', '\(contact)', 1, '\(channels)', actor => '\(person)')")
    }

    /// Channel, consent, and whether it is held back, of all contacts of a person.
    private func consents(_ connection: Connection, _ person: String) async throws -> [String] {
        try await connection.column(
            """
            select (h ->> 'channel') || ' ' || (h ->> 'consent') || case when h ->> 'held_until' is null then '' else ' until' end
              from jsonb_array_elements(millrace.check_in_show('\(person)', '\(person)') -> 'contacts') c, jsonb_array_elements(c -> 'channels') h
             order by c ->> 'contact', 1
            """)
    }

    /// How many requests were sent, whatever happened to their rows.
    private func asked(_ connection: Connection) async throws -> Int {
        try await connection.int("select count(*) from public.sent")
    }

    private func withSends(_ body: (Connection) async throws -> Void) async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                create table public.sent (key text);
                create function public.note_it() returns trigger language plpgsql as
                    $$ begin insert into public.sent values (new.key); return null; end $$;
                create trigger note_it after insert on millrace.notice for each row when (new.kind = 'alarm.consent')
                    execute function public.note_it()
                """)
            try await body(connection)
        }
    }

    @Test func `who has answered is not asked any more, whatever the way of the answer`() async throws {
        try await withConnection(.movableClock) { connection in
            let open =
                "select channel from millrace.notice where kind = 'alarm.consent' and status = 'pending' order by 1"
            let all = #"{"mail": "mum@example.com", "sms": "+4915112345678", "push": true}"#
            try await name(connection, "anna", "mum", all)
            #expect(try await connection.column(open) == ["mail", "push", "sms"])
            // By telephone, for one address; by the link; on the contact's own device; and no by the link.
            try await connection.run("select millrace.check_in_confirm('anna', 'mum', '{mail}')")
            #expect(try await connection.column(open) == ["push", "sms"])
            let sms = "(select ref from millrace.watch_address where channel = 'sms')"
            try await connection.run("select millrace.check_in_consent(\(sms), true)")
            #expect(try await connection.column(open) == ["push"])
            try await connection.run("select millrace.check_in_accept('anna', true, 'mum')")
            #expect(try await connection.column(open).isEmpty)
            try await name(connection, "anna", "bob", #"{"mail": "bob@example.com"}"#)
            #expect(try await connection.column(open) == ["mail"])
            try await connection.run(
                "select millrace.check_in_consent((select ref from millrace.watch_address where contact = 'bob'), false)"
            )
            #expect(try await connection.column(open).isEmpty)
        }
    }

    @Test func `naming a contact again asks an address once a day and five times in all`() async throws {
        try await withSends { connection in
            for n in 0..<10 {
                try await name(connection, "mallory", "c\(n % 3)", all)
                try await connection.run(
                    "select millrace.check_in_contact_remove('mallory', 'c\(n % 3)', 'mallory')")
            }
            // One mailbox and one number: written to or called.
            #expect(try await asked(connection) == 2)
            try await name(connection, "mallory", "d", all.replacing("mum@", with: "Mum+more@"))
            #expect(
                try await consents(connection, "mallory") == ["mail held until", "sms held until", "voice held until"])
            for day in 1...7 {
                try await connection.advance(by: "25 hours")
                try await connection.run("select millrace.check_in_consent_ask('mallory', 'd', 'mallory')")
                #expect(try await asked(connection) == 2 * min(day + 1, 5))
            }
            #expect(
                try await connection.column("select distinct held_until from millrace.watch_address") == ["infinity"])
            // Leaving and coming back does not help either; and the data kept for that name nobody.
            try await connection.run("select millrace.person_erase('mallory', 'mallory')")
            try await name(connection, "mallory", "c", all)
            #expect(try await asked(connection) == 10)
            #expect(
                try await connection.int(
                    "select count(*) from millrace.notice where data ->> 'person' = 'mallory'") == 0)
            #expect(
                try await connection.int(
                    "select count(*) from (select t::text as x from millrace.consent_ask t union all select t::text from millrace.consent_link t union all select t::text from millrace.day_count t) q where q.x ~ 'mallory|mum@|4915'"
                ) == 0)
        }
    }

    @Test func `Google's dots and what stands behind a plus make no other mailbox`() async throws {
        try await withSends { connection in
            for (contact, address) in [
                ("a", "first.last@gmail.com"), ("b", "firstlast+x@googlemail.com"), ("c", "FIRST.LAST@gmail.com"),
            ] { try await name(connection, "anna", contact, "{\"mail\": \"\(address)\"}") }
            #expect(try await asked(connection) == 1)
        }
    }

    @Test func `an asker and an address have a daily limit, and what is held is asked another day`() async throws {
        try await withSends { connection in
            try await connection.run(
                "update millrace.test_clock set shift = timestamptz '2027-05-10 01:00Z' - clock_timestamp()")
            for n in 0..<12 { try await name(connection, "anna", "c\(n)", "{\"mail\": \"c\(n)@example.com\"}") }
            #expect(try await asked(connection) == 10)
            #expect(try await consents(connection, "anna").filter { $0 == "mail held until" }.count == 2)
            for person in ["p1", "p2", "p3", "p4"] {
                try await name(connection, person, "v", #"{"sms": "+4915112345678"}"#)
            }
            #expect(try await asked(connection) == 13)
            #expect(try await consents(connection, "p3") == ["sms asked"])
            #expect(try await consents(connection, "p4") == ["sms held until"])
            #expect(
                try await connection.value("select held_until from millrace.watch_address where person = 'p4'")
                    == "2027-05-11 00:00:00+00")
            // The share of the asker's daily limit that a held request took is given back.
            #expect(
                try await connection.int(
                    "select n from millrace.day_count where who = millrace.keyed_hash('asker', 'p4')") == 0)
            try await connection.advance(by: "1 day")
            #expect(try await connection.int("millrace.check_in_consent_ask('p4', 'v', 'p4')") == 1)
            #expect(try await consents(connection, "p4") == ["sms asked"])
            #expect(try await connection.bool("millrace.check_in_rules_set('{\"asker_day\": 1}')"))
            try await name(connection, "p5", "v", #"{"sms": "+4915112345679", "mail": "v@example.com"}"#)
            #expect(try await consents(connection, "p5") == ["mail asked", "sms held until"])
            #expect(
                try await connection.refusal(of: "select millrace.check_in_rules_set('{\"asker\": 1}')")?.sqlState
                    == "22023")
        }
    }

    @Test func `never again holds for everybody, after the contact was removed too, until an operator lifts it`()
        async throws
    {
        try await withSends { connection in
            try await connection.befriend("carl", "mum")
            try await name(connection, "anna", "mum", all)
            let ref = try #require(
                try await connection.value(
                    "select ref from millrace.watch_address where person = 'anna' and channel = 'mail'"))
            try await connection.run("select millrace.check_in_contact_remove('anna', 'mum', 'anna')")
            #expect(try await connection.value("millrace.alarm_page(null, '\(ref)') ->> 'consent'") == "over")
            #expect(try await connection.bool("millrace.check_in_never('\(ref)')"))
            // By the same link it is taken back; an operator's block is not.
            #expect(try await connection.bool("(millrace.alarm_page(null, '\(ref)') ->> 'may_ask_again')::boolean"))
            #expect(try await connection.bool("millrace.check_in_never_undo('\(ref)')"))
            #expect(try await connection.bool("millrace.check_in_never_undo('\(ref)')") == false)
            #expect(try await connection.value("millrace.alarm_page(null, '\(ref)') ->> 'consent'") == "over")
            #expect(try await connection.bool("millrace.consent_block('mail', 'mum@example.com')"))
            #expect(try await connection.bool("millrace.check_in_never_undo('\(ref)')") == false)
            #expect(
                try await connection.bool("(millrace.alarm_page(null, '\(ref)') ->> 'may_ask_again')::boolean") == false
            )
            #expect(try await connection.bool("millrace.consent_unblock('mail', 'mum@example.com')"))
            #expect(try await connection.bool("millrace.check_in_never('\(ref)')"))
            #expect(try await connection.bool("millrace.check_in_never('\(ref)')") == false)
            #expect(try await connection.value("millrace.alarm_page(null, '\(ref)') ->> 'consent'") == "never")
            // Earlier agreements of that address end, too.
            #expect(try await consents(connection, "carl") == ["mail declined"])
            let before = try await asked(connection)
            try await connection.advance(by: "2 days")
            try await name(connection, "eve", "m", #"{"mail": "MUM+x@example.com"}"#)
            try await name(connection, "anna", "mum", #"{"mail": "mum@example.com"}"#)
            #expect(try await asked(connection) == before)
            #expect(try await consents(connection, "eve") == ["mail declined"])
            let other = try #require(
                try await connection.value("select ref from millrace.watch_address where person = 'eve'"))
            #expect(
                try await connection.refusal(of: "select millrace.check_in_consent('\(other)', true)")?.sqlState
                    == "55000")
            #expect(try await connection.bool("millrace.consent_unblock('mail', 'mum@example.com')"))
            #expect(try await connection.bool("millrace.consent_unblock('mail', 'mum@example.com')") == false)
            try await name(connection, "dave", "m", #"{"mail": "mum@example.com"}"#)
            #expect(try await asked(connection) == before + 1)
            // By an operator, for an account and for a number; requests on their way are not sent.
            try await name(connection, "dave", "u1", #"{"push": true, "sms": "+4915112345678"}"#)
            #expect(try await connection.bool("millrace.consent_block('push', 'u1')"))
            #expect(
                try await connection.column(
                    "select channel || ' ' || status from millrace.notice where person = 'u1' order by 1")
                    == ["push cancelled", "sms pending"])
            #expect(
                try await connection.refusal(of: "select millrace.check_in_accept('dave', true, 'u1')")?.sqlState
                    == "55000")
            #expect(
                try await connection.refusal(of: "select millrace.consent_block('fax', '1')")?.sqlState == "22023")
        }
    }

    @Test func `a no before any yes ends the questions, and a number that says yes may be called`() async throws {
        try await withConnection(.movableClock) { connection in
            try await name(connection, "anna", "mum", all)
            let refs = try await connection.column(
                "select ref from millrace.watch_address where channel in ('mail', 'sms') order by channel")
            try await connection.run("select millrace.check_in_consent('\(refs[0])', false)")
            try await connection.run("select millrace.check_in_consent('\(refs[1])', true)")
            #expect(try await consents(connection, "anna") == ["mail declined", "sms given", "voice given"])
            try await connection.advance(by: "2 days")
            #expect(try await connection.int("millrace.check_in_consent_ask('anna', 'mum', 'anna')") == 0)
            try await name(connection, "anna", "u1", #"{"push": true}"#)
            #expect(try await connection.int("millrace.check_in_accept('anna', false, 'u1')") == 1)
            try await connection.advance(by: "2 days")
            #expect(try await connection.int("millrace.check_in_consent_ask('anna', 'u1', 'anna')") == 0)
        }
    }

    @Test func `people who were told of an alarm hear that it is over for them, however they are removed`() async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend(
                "anna", "mum", channels: #"{"mail": "mum@example.com", "sms": "+4915112345678"}"#)
            try await connection.befriend("anna", "bob")
            try await connection.befriend("anna", "new", step: 2)
            try await connection.run("select millrace.check_in_alarm('anna', null, 'anna')")
            let left =
                "select person || ' ' || channel from millrace.notice where key ~ ':left:' and kind = 'alarm.resolved' order by 1"
            // One of two addresses is removed; the other one stays.
            try await name(connection, "anna", "mum", #"{"mail": "mum@example.com"}"#)
            #expect(try await connection.column(left) == ["mum sms"])
            #expect(
                try await connection.column(
                    "select person || ' ' || channel || ' ' || status from millrace.notice where kind = 'alarm.raised' order by 1"
                )
                    == ["bob mail pending", "mum mail pending", "mum sms cancelled"])
            try await connection.run("select millrace.check_in_contact_remove('anna', 'bob', 'anna')")
            #expect(try await connection.column(left) == ["bob mail", "mum sms"])
            // A contact that was told nothing yet is not told of an end.
            try await connection.run("select millrace.check_in_contact_remove('anna', 'new', 'anna')")
            #expect(try await connection.column(left) == ["bob mail", "mum sms"])
            // When anna is erased, unsent notices of an end no longer name her; sent notices are deleted.
            try await connection.run(
                "update millrace.notice set status = 'accepted' where key ~ ':left:' and person = 'bob'")
            try await connection.run("select millrace.person_erase('anna', 'anna')")
            #expect(try await connection.column(left) == ["mum mail", "mum sms"])
            #expect(try await connection.int("select count(*) from millrace.notice where data::text ~ 'anna'") == 0)
        }
    }

    @Test func `when the one who looks after somebody is erased, the others are told again`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend("anna", "mum")
            try await connection.befriend("anna", "bob", step: 2)
            let alarm = try #require(
                try await connection.value("select millrace.check_in_alarm('anna', null, 'anna')"))
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'mum', 'on_my_way')")
            #expect(try await connection.alarmState() == ["acknowledged"])
            try await connection.run("select millrace.person_erase('mum', 'mum')")
            #expect(try await connection.alarmState() == ["open"])
            #expect(try await connection.told().suffix(1) == ["alarm.escalated bob mail"])
        }
    }

    @Test func `ten drills a day are enough`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            for _ in 0..<10 { try await connection.run("select millrace.check_in_drill('anna', 'anna')") }
            #expect(
                try await connection.refusal(of: "select millrace.check_in_drill('anna', 'anna')")?.sqlState == "53400")
            try await connection.advance(by: "1 day")
            try await connection.run("select millrace.check_in_drill('anna', 'anna')")
        }
    }

    @Test func `beyond a hundred warnings a day nobody's number is rung`() async throws {
        try await withConnection(.movableClock) { connection in
            // In the morning of a day, which must not end while warnings are counted.
            try await connection.run(
                "select millrace.test_clock_advance(date_trunc('day', millrace.now(), 'UTC') + interval '30 hours' - millrace.now())"
            )
            try await connection.befriend()
            try await connection.arm()
            try await connection.run(
                "insert into millrace.day_count values ('warning', millrace.keyed_hash('person', 'anna'), millrace.today_utc(), 99)"
            )
            for wanted in ["null", "{push}"] {
                try await connection.advance(by: "51 min")
                try await connection.watch()
                #expect(
                    try await connection.value(
                        "select channels from millrace.notice where kind = 'alarm.warning' order by created_at desc limit 1"
                    )
                        ?? "null" == wanted)
                try await connection.checkIn()
            }
        }
    }
}
