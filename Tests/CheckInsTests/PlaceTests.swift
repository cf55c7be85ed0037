import Postgres
import TestSupport
import Testing

/// Where a person was, for the contacts of one alarm.
@Suite struct PlaceTests {
    private static let lake = #"{"latitude": 47.8095014, "longitude": -13.05, "accuracy": 12.4}"#

    private func shown(_ contact: String = "mum", on connection: Connection) async throws -> String? {
        try await connection.value(
            "select millrace.alarm_page(a.id, d.ref) #>> '{place}' from millrace.alarm a join millrace.watch_address d on d.person = a.person and d.contact = '\(contact)' order by a.raised_at desc limit 1"
        )
    }

    @Test func `a place is shown to the contacts of its alarm, and gone a day after its end`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.run(
                "select millrace.check_in_respond(millrace.check_in_alarm('anna', null, 'anna', '\(Self.lake)'), 'mum', 'on_my_way')"
            )
            let place = try await shown(on: connection) ?? ""
            for part in [#""map": "osm""#, #""accuracy": 12,"#, #""latitude": 47.809501,"#, #""longitude": -13.05}"#] {
                #expect(place.contains(part), "\(place)")
            }
            try await connection.advance(by: "3 days")
            #expect(try await shown(on: connection) != nil)
            try await connection.run("select millrace.check_in_respond(id, 'anna', 'safe') from millrace.alarm")
            try await connection.advance(by: "23 hours 59 min")
            #expect(try await connection.int("millrace.places_expire()") == 0)
            #expect(try await shown(on: connection) != nil)
            try await connection.advance(by: "2 min")
            #expect(try await shown(on: connection) == nil)
            #expect(try await connection.int("select count(*) from millrace.place") == 1)
            try await connection.run("select millrace.maintain()")
            #expect(try await connection.int("select count(*) from millrace.place") == 0)
        }
    }

    @Test func `an alarm takes the place of the last check-in of that day, and a newer place replaces it`() async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.arm("anna", "every => '20 hours',")
            try await connection.run("select millrace.check_in('anna', actor => 'anna', place => '\(Self.lake)')")
            #expect(try await shown(on: connection) == nil)
            try await connection.advance(by: "20 hours 1 min")
            try await connection.watch()
            #expect(try await shown(on: connection)?.contains("47.809501") == true)
            try await connection.run(
                #"select millrace.check_in_help('anna', actor => 'anna', place => '{"latitude": 1, "longitude": 2}')"#)
            #expect(try await shown(on: connection)?.contains(#""latitude": 1, "longitude": 2}"#) == true)
            // One from before does not.
            try await connection.run(
                #"select millrace.check_in_help('anna', actor => 'anna', place => '{"latitude": 5, "longitude": 5, "at": "2020-01-01T00:00:00Z"}')"#
            )
            #expect(try await shown(on: connection)?.contains(#""latitude": 1, "longitude": 2}"#) == true)
            try await connection.advance(by: "1 day")
            try await connection.run("select millrace.places_expire()")
            #expect(try await connection.int("select count(*) from millrace.place where person is not null") == 0)
            #expect(try await shown(on: connection) != nil)
            // The next alarm, long after, begins without.
            try await connection.run(
                "select millrace.check_in_respond(id, 'anna', 'safe') from millrace.alarm; select millrace.check_in_alarm('anna', actor => 'anna')"
            )
            #expect(try await shown(on: connection) == nil)
        }
    }

    @Test func `nobody but a contact who has agreed sees it, and no row that others read has it`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend()
            try await connection.run(
                """
                select millrace.check_in_contact('anna', 'eve', 2, '{"mail": "eve@example.com"}', actor => 'anna');
                select millrace.check_in_alarm('anna', 'help', 'anna', '\(Self.lake)')
                """)
            #expect(try await shown(on: connection) != nil)
            #expect(try await shown("eve", on: connection) == nil)
            let tables = try await connection.column(
                "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p') and relname <> 'place'"
            )
            for table in tables {
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.\"\(table)\" x where x::text ~ '[^0-9:]:?47[.]8095|-13[.]05'")
                        == 0,
                    "\(table)")
            }
            for view in ["alarms", "alarm_history", "check_ins", "notices", "events"] {
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.\(view) x where x::text ~ '[^0-9:]:?47[.]8095|-13[.]05'") == 0,
                    "\(view)")
            }
            #expect(try await connection.value("millrace.check_in_show('anna', 'anna')")?.contains("47.8") == false)
            try await connection.run("select millrace.check_in_drill('anna', 'anna')")
            #expect(try await connection.int("select count(*) from millrace.place where alarm is not null") == 1)
        }
    }

    @Test func `what is no place on earth is left out, and stops neither a call for help nor a check-in`() async throws
    {
        try await withConnection(.movableClock) { (connection: Connection) async throws -> Void in
            try await connection.befriend()
            try await connection.arm()
            for place in [
                #"{"latitude": 90.1, "longitude": 0}"#, #"{"latitude": 0, "longitude": -180.1}"#,
                #"{"latitude": "1", "longitude": 0}"#, #"{"latitude": 1}"#, "[1, 2]", "7",
                #"{"latitude": 1, "longitude": 1, "accuracy": -1}"#,
                #"{"latitude": 1, "longitude": 1, "name": "home"}"#,
                #"{"latitude": 1, "longitude": 1, "at": "yesterday"}"#, #"{"latitude": 1e300, "longitude": 1}"#,
            ] {
                let used = "millrace.check_in_help('anna', null, 'anna', '\(place)') ->> 'place_used'"
                #expect(try await connection.value(used) == "false", "\(place)")
                try await connection.run("select millrace.check_in('anna', actor => 'anna', place => '\(place)')")
            }
            #expect(try await connection.int("select count(*) from millrace.place") == 0)
            #expect(try await connection.int("select count(*) from millrace.alarm") == 1)
            let edge = #"{"latitude": -90, "longitude": 180, "accuracy": null, "at": null}"#
            #expect(
                try await connection.value("millrace.check_in_help('anna', null, 'anna', '\(edge)') ->> 'place_used'")
                    == "true")
            #expect(try await shown(on: connection)?.contains(#""accuracy": null"#) == true)
            #expect(
                try await connection.refusal(
                    of: "select millrace.check_in_alarm('anna', null, 'anna', to_jsonb(repeat('x', 600)))")?.sqlState
                    == "53400")
        }
    }
}
