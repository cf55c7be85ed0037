import Postgres
import TestSupport
import Testing

/// The contact's side: whom it watches over, what it sees of them, and the alarms that it was told of.
@Suite struct WatchedTests {
    private func watched(_ contact: String, _ path: String, on connection: Connection) async throws -> [String] {
        try await connection.column(
            "select p ->> '\(path)' from jsonb_array_elements(millrace.check_in_watched(actor => '\(contact)') -> 'people') p"
        )
    }

    private func alarms(_ reader: String, _ path: String, on connection: Connection) async throws -> [String] {
        try await connection.column(
            "select a #>> '{\(path)}' from jsonb_array_elements(millrace.check_in_alarms(actor => '\(reader)') -> 'alarms') a"
        )
    }

    @Test func `who is asked agrees in the app, and then sees of a watch what the person shares`() async throws {
        try await withConnection { connection in
            try await connection.befriend("anna", "mum")
            try await connection.arm()
            try await connection.run(
                #"""
                select millrace.person_profile('anna', 'Anna', avatar => 'https://img.example.com/a.png', actor => 'anna');
                select millrace.check_in_contact('anna', 'bob', 2, '{"push": true, "mail": "bob@example.com"}', actor => 'anna')
                """#)
            // A question has a name, and nothing else of the person.
            let asked = try await connection.value(
                "select millrace.check_in_watched('asked', actor => 'bob') -> 'people' -> 0")
            #expect(asked?.contains(#""name": "Anna""#) == true)
            #expect(asked?.contains("img.example.com") == false && asked?.contains("state") == false)
            #expect(try await watched("mum", "person", on: connection).isEmpty, "an address by mail is no account")

            #expect(try await connection.int("select millrace.check_in_accept('anna', true, 'bob')") == 1)
            #expect(try await watched("bob", "consent", on: connection) == ["given"])
            #expect(try await watched("bob", "avatar", on: connection) == ["https://img.example.com/a.png"])
            #expect(
                try await watched("bob", "state", on: connection) == ["null"], "nothing is shared before she says so")
            let share = "millrace.check_in_contact_details('anna', 'bob', shares => '#', actor => 'anna')"
            try await connection.run("select \(share.replacing("#", with: "state"))")
            #expect(try await watched("bob", "state", on: connection) == ["armed"])
            #expect(try await watched("bob", "check_in_expiration", on: connection) == ["null"])
            try await connection.run(
                "update millrace.watch set state = 'warned'; select \(share.replacing("#", with: "times"))")
            #expect(try await watched("bob", "state", on: connection) == ["armed"], "a warning is the person's own")
            #expect(try await watched("bob", "check_in_expiration", on: connection) != ["null"])
            // A contact does not choose what it sees.
            let refusal = try await connection.refusal(
                of: "select millrace.check_in_contact_details('anna', 'bob', shares => 'times', actor => 'bob')")
            #expect(refusal?.sqlState == "42501")

            #expect(try await connection.int("select millrace.check_in_accept('anna', false, 'bob')") == 2)
            #expect(try await watched("bob", "consent", on: connection) == ["declined"])
            #expect(try await watched("bob", "state", on: connection) == ["null"])
            #expect(try await watched("eve", "person", on: connection).isEmpty)
        }
    }

    @Test func `a question that the limits hold back is not there for the one whom it is for`() async throws {
        try await withConnection { connection in
            try await connection.run(#"select millrace.check_in_rules_set('{"address_day": 1}')"#)
            for person in ["anna", "ben"] {
                try await connection.run(
                    #"select millrace.check_in_contact('\#(person)', 'bob', 1, '{"push": true}', actor => '\#(person)')"#
                )
            }
            #expect(try await watched("bob", "person", on: connection) == ["anna"])
            // Who never wants to be asked sees no question either.
            try await connection.run(
                #"select millrace.consent_block('push', 'cyd'), millrace.check_in_contact('anna', 'cyd', 1, '{"push": true}', actor => 'anna')"#
            )
            #expect(try await watched("cyd", "person", on: connection).isEmpty)
        }
    }

    @Test func `pages of whom one watches over go on where they ended`() async throws {
        try await withConnection { connection in
            try await connection.run(#"select millrace.check_in_rules_set('{"address_day": 100}')"#)
            for number in 1...5 {
                try await connection.run(
                    #"select millrace.check_in_contact('p\#(number)', 'bob', 1, '{"push": true}', actor => 'p\#(number)')"#
                )
            }
            var seen: [String] = []
            var after = "null"
            repeat {
                let page = "millrace.check_in_watched(after => \(after), page => 2, actor => 'bob')"
                seen += try await connection.column(
                    "select p ->> 'person' from jsonb_array_elements(\(page) -> 'people') p")
                after = try await connection.value("select quote_nullable(\(page) ->> 'next')") ?? "NULL"
            } while after != "NULL"
            #expect(seen == ["p1", "p2", "p3", "p4", "p5"])
        }
    }

    @Test func `an alarm is there for its person and who was told, with words, answers and place, and for nobody else`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            for (contact, step) in [("bob", 1), ("mum", 2), ("dad", 1)] {
                let channels = contact == "dad" ? #"{"mail": "dad@example.com"}"# : #"{"push": true}"#
                try await connection.befriend("anna", contact, step: step, channels: channels)
            }
            try await connection.arm()
            try await connection.run(
                #"select millrace.check_in_help('anna', 'at the lake', 'anna', '{"latitude": 47.5, "longitude": 13}')"#)
            #expect(try await alarms("bob", "place,latitude", on: connection) == ["47.5"])
            #expect(try await alarms("bob", "body", on: connection).first?.contains("at the lake") == true)
            #expect(try await alarms("anna", "is_own", on: connection) == ["true"])
            // Her turn has not come.
            #expect(try await alarms("mum", "alarm", on: connection).isEmpty)
            // Told by mail alone: there is an alarm, and the account, which has not agreed, reads nothing of it.
            #expect(try await alarms("dad", "state", on: connection) == ["open"])
            #expect(try await alarms("dad", "body", on: connection) == ["null"])
            #expect(try await alarms("dad", "place", on: connection) == ["null"])
            #expect(try await alarms("eve", "alarm", on: connection).isEmpty)

            let id = try #require(try await connection.value("select id from millrace.alarm"))
            #expect(try await watched("bob", "alarms", on: connection) == [#"["\#(id)"]"#])
            try await connection.run("select millrace.check_in_respond('\(id)', 'bob', 'on_my_way')")
            #expect(try await alarms("anna", "answers,0,answer", on: connection) == ["on_my_way"])
            #expect(try await alarms("bob", "answer", on: connection) == ["on_my_way"])
            let show = "select millrace.check_in_alarm_show('\(id)', '#')"
            let own = try await connection.value(
                show.replacing("#", with: "anna") + " -> 'events' @> '[{\"what\": \"told\", \"contact\": \"bob\"}]'")
            #expect(own == "true")
            #expect(try await connection.value(show.replacing("#", with: "bob") + " ? 'events'") == "false")
            for stranger in ["mum", "eve"] {
                let refusal = try await connection.refusal(of: show.replacing("#", with: stranger))
                #expect(refusal?.sqlState == "P0002")
            }
            // Over: it stays in the history of both, the place for a day. Who is no contact any more reads nothing.
            try await connection.run("select millrace.check_in_respond('\(id)', 'anna', 'safe')")
            #expect(
                try await connection.value("select millrace.check_in_alarms(true, actor => 'bob') -> 'alarms'") == "[]")
            #expect(try await alarms("bob", "state", on: connection) == ["resolved"])
            try await connection.advance(by: "25 hours")
            #expect(try await alarms("bob", "place", on: connection) == ["null"])
            try await connection.run("select millrace.check_in_contact_remove('anna', 'bob', 'anna')")
            #expect(try await alarms("bob", "alarm", on: connection).isEmpty)
            #expect(try await alarms("anna", "alarm", on: connection) == [id])
        }
    }

    @Test func `alarms are read page by page, and one's own cost what one has, however many others have`() async throws
    {
        try await withConnection { connection in
            try await connection.befriend("anna", "bob", channels: #"{"push": true}"#)
            for _ in 1...5 {
                try await connection.run(
                    "select millrace.check_in_respond(millrace.check_in_alarm('anna', actor => 'anna'), 'anna', 'safe')"
                )
            }
            var seen: [String] = []
            var after = "null"
            repeat {
                let page = "millrace.check_in_alarms(after => \(after), page => 2, actor => 'bob')"
                seen += try await connection.column(
                    "select a ->> 'alarm' from jsonb_array_elements(\(page) -> 'alarms') a")
                after = try await connection.value("select quote_nullable(\(page) ->> 'next')") ?? "NULL"
            } while after != "NULL"
            #expect(
                try await seen == connection.column("select id from millrace.alarm order by raised_at desc, id desc"))
            func pages() async throws -> Int {
                var least = Int.max  // a look after others' changes of the catalogue reads that, too
                for _ in 1...3 {
                    least = min(least, try await connection.pages("select millrace.check_in_alarms(actor => 'bob')"))
                }
                return least
            }
            try await connection.run("set plan_cache_mode = force_generic_plan")  // planning reads the catalogue
            _ = try await pages()
            let before = try await pages()
            try await connection.run(
                """
                insert into millrace.alarm (id, person, cause, state, resolution, resolved_at, expired_at, late_by, raised_at)
                select gen_random_uuid(), 'other' || n, 'help', 'resolved', 'contact', now(), now(), '0', now() from generate_series(1, 5000) n;
                insert into millrace.alarm_event (alarm, at, what, contact) select a.id, now(), 'told', 'pal' from millrace.alarm a where a.person like 'other%';
                analyze millrace.alarm, millrace.alarm_event
                """)
            _ = try await pages()
            #expect(try await pages() < before + 40)
        }
    }

    @Test func `a person checks in before anybody has agreed, and nothing happens when the next is due`() async throws {
        try await withConnection(.movableClock) { connection in
            #expect(
                try await connection.value("select millrace.check_in_set_interval('anna', '2 hours', 'anna')") == nil)
            let due = try await connection.bool(
                "select millrace.check_in('anna', actor => 'anna') between millrace.now() + interval '119 min' and millrace.now() + interval '2 hours'"
            )
            #expect(due)
            #expect(try await connection.watchState() == "disarmed")
            let refusal = try await connection.refusal(of: "select millrace.check_in_arm('anna', actor => 'anna')")
            #expect(refusal?.sqlState == "55000", "an alarm needs somebody to tell")
            // One from before the last one counts as of now, as it does while a watch runs.
            try await connection.run("select millrace.check_in('anna', millrace.now() - interval '1 hour', 'anna')")
            #expect(
                try await connection.bool(
                    "select last_checked_in > millrace.now() - interval '1 min' from millrace.check_ins"))
            try await connection.advance(by: "3 hours")
            try await connection.watch()
            #expect(try await connection.told().isEmpty)
            #expect(try await connection.alarmState().isEmpty)

            // Somebody has agreed: from now on a check-in that nobody watches is refused, and arming makes it one.
            try await connection.befriend()
            let alone = try await connection.refusal(of: "select millrace.check_in('anna', actor => 'anna')")
            #expect(alone?.sqlState == "55000")
            try await connection.arm("anna", "every => '2 hours',")
            #expect(try await connection.watchState() == "armed")
            #expect(try await connection.alarmState().isEmpty, "what was not watched raises nothing afterwards")
            try await connection.advance(by: "121 min")
            try await connection.watch()
            #expect(try await connection.told().contains("alarm.raised mum mail"))
            #expect(try await connection.alarmState() == ["open"])
        }
    }

    @Test func `a name, a group and what is shared stay when a contact is named again`() async throws {
        try await withConnection { connection in
            try await connection.befriend("anna", "mum")
            try await connection.run(
                "select millrace.check_in_contact_details('anna', 'mum', 'Mummy', 'Family', 'state', 'anna')")
            try await connection.befriend("anna", "mum", step: 3)
            let shown =
                "select c ->> '#' from jsonb_array_elements(millrace.check_in_show('anna', 'anna') -> 'contacts') c"
            func show(_ key: String) async throws -> String? {
                try await connection.value(shown.replacing("#", with: key))
            }
            #expect(try await [show("name"), show("label")] == ["Mummy", "Family"])
            #expect(try await [show("shares"), show("step")] == ["state", "3"])
            try await connection.run(
                "select millrace.check_in_contact_details('anna', 'mum', '', shares => '', actor => 'anna')")
            #expect(try await [show("name"), show("label")] == [nil, "Family"])
            #expect(try await show("shares") == "nothing")
            for (wrong, field) in [
                ("name => ' '", "name"), ("label => repeat('x', 101)", "label"), ("shares => 'all'", "shares"),
            ] {
                let refusal = try await connection.refusal(
                    of: "select millrace.check_in_contact_details('anna', 'mum', \(wrong), actor => 'anna')")
                #expect(refusal?.sqlState == "22023" && refusal?.detail?.contains("\"\(field)\"") == true)
            }
        }
    }

    @Test func `the app's own server hears of watches and alarms, without a note, a place or a contact`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm()
            try await connection.advance(by: "61 min")
            try await connection.watch()
            try await connection.run(
                #"""
                select millrace.check_in_help('anna', 'at the lake', 'anna', '{"latitude": 47.5, "longitude": 13}');
                select millrace.check_in_respond(id, 'mum', 'safe') from millrace.alarm;
                select millrace.check_in_disarm('anna', 'because', 'anna')
                """#)
            let events = try await connection.records(
                "select e.type, e.data ->> 'person' from millrace.event e where e.source = '/millrace/check-ins' order by e.at, e.type"
            )
            #expect(
                events == [
                    "(millrace.check_in.armed,anna)", "(millrace.alarm.raised,anna)", "(millrace.alarm.answered,anna)",
                    "(millrace.alarm.resolved,anna)", "(millrace.check_in.disarmed,anna)",
                ])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.event e where e.data::text ~ 'lake|47[.]5|mum|because'") == 0)
            #expect(
                try await connection.value(
                    "select data ->> 'cause' from millrace.event where type = 'millrace.alarm.raised'") == "expired")
        }
    }
}
