import Postgres
import TestSupport
import Testing

/// Alarms concern the person and the contacts that were told.
@Suite struct FeedAlarmTests {
    private static func setUp(_ connection: Connection) async throws {
        try await connection.befriend("ada", "bob", step: 1)
        try await connection.befriend("ada", "cyd", step: 2)
        try await connection.befriend("ada", "dan", step: 1)
        try await connection.run(
            """
            select millrace.check_in_contact('ada', 'eli', 1, '{"push": true}', actor => 'ada');
            select millrace.check_in_accept('ada', false, 'dan'), millrace.check_in_arm('ada', actor => 'ada')
            """)
    }

    private static func alarms(_ connection: Connection, _ person: String) async throws -> [String] {
        try await connection.feed(of: person, topics: "'{alarms}'").changes.map {
            String($0.dropFirst("alarms ".count))
        }
    }

    @Test func `a contact hears of an alarm when it is told, and then of its course; who has not agreed hears nothing`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await Self.setUp(connection)
            try await connection.run("select millrace.test_clock_advance('61 min')")
            try await connection.run("select millrace.watch_step('w')")
            let end = try await connection.feedEnd()
            #expect(try await Self.alarms(connection, "ada") == ["raised"])
            #expect(try await Self.alarms(connection, "bob") == ["raised"])
            #expect(try await Self.alarms(connection, "cyd") == [])
            try await connection.run("select millrace.test_clock_advance('6 min')")
            try await connection.run("select millrace.watch_step('w')")
            #expect(try await Self.alarms(connection, "cyd") == ["raised"])
            try await connection.run("select millrace.check_in_respond(id, 'cyd', 'on_my_way') from millrace.alarm")
            try await connection.run("select millrace.check_in('ada', actor => 'ada')")
            #expect(
                try await Self.alarms(connection, "ada") == [
                    "raised", "escalated", "answered", "acknowledged", "resolved",
                ])
            #expect(try await Self.alarms(connection, "bob") == ["raised", "answered", "acknowledged", "resolved"])
            #expect(try await Self.alarms(connection, "cyd") == ["raised", "answered", "acknowledged", "resolved"])
            for person in ["dan", "eli"] { #expect(try await Self.alarms(connection, person) == [], "\(person)") }
            let last = try await connection.feed(of: "bob", since: end, topics: "'{alarms}'")
            #expect(last.data.last?.contains(#""resolution": "late_check_in""#) == true)
            #expect(
                try await connection.bool(
                    "select bool_and(f.ref = a.id::text) from millrace.feed f, millrace.alarm a where f.topic = 'alarms'"
                ))
        }
    }

    @Test func `a contact hears of a watch that begins where the person shares it, and not of its check-ins`()
        async throws
    {
        try await withConnection { connection in
            try await connection.befriend("ada", "bob", step: 1)
            try await connection.befriend("ada", "cyd", step: 2)
            for (contact, shares) in [("bob", "state"), ("cyd", "nothing")] {
                try await connection.run(
                    "select millrace.check_in_contact_details('ada', '\(contact)', shares => '\(shares)', actor => 'ada')"
                )
            }
            let end = try await connection.feedEnd()
            try await connection.run("select millrace.check_in_arm('ada', actor => 'ada')")
            try await connection.run("select millrace.check_in('ada', actor => 'ada')")
            for (contact, heard) in [("bob", ["check-ins watched"]), ("cyd", [])] {
                let feed = try await connection.feed(of: contact, since: end, topics: "'{check-ins}'")
                #expect(feed.changes == heard, "\(contact)")
            }
        }
    }

    @Test func `what was said stays between those who were told, and no row has an address or a note`() async throws {
        try await withConnection { connection in
            try await connection.befriend("ada", "cyd", step: 2)
            try await connection.run(
                """
                select millrace.check_in_contact('ada', 'bob', 1, '{"mail": "bob@example.com"}', actor => 'ada'), millrace.check_in_confirm('ada', 'bob');
                select millrace.notice_preferences('ada', 'UTC', '1:00', '1:00', '{"mail": "ada@example.com"}', 'en', 'ada');
                select millrace.check_in_help('ada', 'by the lake', actor => 'ada');
                select millrace.check_in_respond(id, 'bob', 'cannot') from millrace.alarm;
                select millrace.check_in_respond(id, 'ada', 'safe') from millrace.alarm
                """)
            #expect(
                try await Self.alarms(connection, "bob") == ["raised", "answered", "answered", "resolved"])
            #expect(try await connection.int("select count(*) from millrace.feed f where f::text ~ '@|lake'") == 0)
        }
    }

    @Test func `a contact that is removed hears that it is over, and no more`() async throws {
        try await withConnection { connection in
            try await Self.setUp(connection)
            try await connection.run(
                """
                select millrace.check_in_help('ada', actor => 'ada');
                select millrace.check_in_contact_remove('ada', 'bob', 'ada');
                select millrace.check_in_respond(id, 'ada', 'safe') from millrace.alarm
                """)
            #expect(try await Self.alarms(connection, "bob") == ["raised", "left"])
            #expect(try await Self.alarms(connection, "ada") == ["raised", "answered", "resolved"])
        }
    }

    @Test func `an alarm that was over before anybody was told is heard of as one that is over`() async throws {
        try await withConnection(.movableClock) { connection in
            try await Self.setUp(connection)
            try await connection.run("select millrace.test_clock_advance('61 min')")
            try await connection.run("select millrace.check_in('ada', actor => 'ada')")
            #expect(try await Self.alarms(connection, "ada") == ["raised", "resolved"])
            #expect(try await Self.alarms(connection, "bob") == ["resolved"])
        }
    }

    @Test func `a person hears what became of its own notices, and not of those to addresses that others gave`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.device_add('ada', 'fcm', 'token-0001'), millrace.notice_send('ada', 'news'),
                       millrace.own_notice_schedule('ada', 'water', 'k', now() + interval '1 hour', actor => 'ada');
                select millrace.own_notice_move('ada', 'k', now() + interval '2 hours', 'ada'), millrace.own_notice_cancel('ada', 'k', 'ada');
                select millrace.check_in_contact('zoe', 'ada', 1, '{"mail": "zoe2@example.com"}', actor => 'zoe');
                select count(*) from millrace.notice_take(false, 10, 7, 60);
                update millrace.notice set status = 'attempting', holder = 7 where status = 'pending';
                select millrace.notice_record(7, (select jsonb_agg(jsonb_build_object('id', id, 'attempt', 1, 'provider', 'p', 'outcome', 'accepted')) from millrace.notice where kind <> 'own.water'))
                """)
            #expect(
                try await connection.feed(of: "ada").changes
                    == ["notices scheduled", "notices moved", "notices cancelled", "notices accepted"])
        }
    }
}
