import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Notices, webhooks and check-ins are no jobs and stand in no queue: `millrace.room_lanes` counts what waits there.
@Suite(.enabled(if: Template.hasRooms)) struct RoomLaneTests {
    /// Room, lane, waiting, later, running, ended, failed, workers.
    private static func lanes(on connection: Connection, cap: Int? = nil) async throws -> [String] {
        try await connection.column(
            """
            select concat_ws(' ', room, lane, waiting, later, coalesce(running::text, '-'), coalesce(ended::text, '-'), coalesce(failed::text, '-'), workers)
              from millrace.room_lanes(\(cap.map(String.init) ?? "null"))
            """)
    }

    @Test func `what waits, what a worker has and what failed is told lane by lane`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            #expect(
                try await Self.lanes(on: connection) == [
                    "notices alarms 0 0 0 0 0 0", "notices others 0 0 0 0 0 0", "webhooks events 0 0 - - - 0",
                    "webhooks deliveries 0 0 0 0 0 0", "check-ins watches 0 0 - - - 0", "check-ins alarms 0 0 - - - 0",
                ])
            try await connection.run(
                """
                select millrace.device_add('anna', 'apns', 'token-0001');
                select millrace.notice_send('anna', 'k', channels => '{push}') from generate_series(1, 3);
                select millrace.notice_send('anna', 'k', channels => '{push}', at => millrace.now() + interval '1 hour');
                select millrace.notice_send('ben', 'help', alarm => true);
                select millrace.notice_take(false, 1, 7, 600);
                select millrace.webhook_add('https://a.example/', '{*}', handshake => false);
                select millrace.event_publish('a.b', '/t', '{}') from generate_series(1, 2);
                select millrace.webhook_fan_out();
                select millrace.webhook_claim(5, 1, 1, 1, '{}', 600, 'o');
                select millrace.event_publish('a.b', '/t', '{}');
                insert into millrace.watch (person, every, grace, warnings, zone, state, expires_at, wake_at, created_at)
                select p, '1 day', '5 min', '{}', 'UTC', 'armed', millrace.now() + d, millrace.now() + d, millrace.now()
                  from (values ('anna', '1 min'::interval), ('ben', '1 day')) x(p, d);
                select millrace.session_open(1, 'w', 'h', 1, '0', null, '{}', 1, false, '{"notices": "on", "check-ins": "on"}')
                """)
            try await connection.run("select millrace.test_clock_advance('5 min')")
            #expect(
                try await Self.lanes(on: connection) == [
                    "notices alarms 1 0 0 0 0 1", "notices others 2 1 1 0 0 1", "webhooks events 1 0 - - - 0",
                    "webhooks deliveries 1 0 1 0 0 0", "check-ins watches 1 1 - - - 1", "check-ins alarms 0 0 - - - 1",
                ])
            #expect(
                try await connection.column(
                    "select round(oldest_s) from millrace.room_lanes() where waiting > 0 and room <> 'check-ins'")
                    == ["300", "300", "300", "300"])
            // Nobody can tell Ben: the alarm has failed. Anna's first notice arrives.
            try await connection.run(
                """
                select millrace.notice_take(true, 1, 7, 60);
                select millrace.notice_record(7, jsonb_build_array(jsonb_build_object('id', n.id, 'attempt', 1, 'provider', 'apns', 'outcome', 'accepted')))
                  from millrace.notice n where n.status = 'attempting'
                """)
            #expect(
                try await Self.lanes(on: connection).prefix(2) == [
                    "notices alarms 0 0 0 1 1 1", "notices others 2 1 0 1 0 1",
                ])
            await connection.close()
        }
    }

    @Test func `a notice that went to two devices counts as its two sendings`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.device_add('anna', 'apns', 'token-0001'), millrace.device_add('anna', 'apns', 'token-0002');
                select millrace.notice_send('anna', 'k', channels => '{push}');
                select millrace.notice_take(false, 9, 7, 600);
                select millrace.notice_take(false, 9, 7, 600);
                select millrace.notice_record(7, jsonb_agg(jsonb_build_object('id', n.id, 'attempt', 1, 'provider', 'apns',
                           'outcome', case n.address when 'token-0001' then 'accepted' else 'refused' end, 'error', 'no')))
                  from millrace.notice n where n.address is not null
                """)
            #expect(try await Self.lanes(on: connection)[1] == "notices others 0 0 0 2 1 0")
            await connection.close()
        }
    }

    @Test func `counting stops at the cap`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.notice_send('anna', 'k') from generate_series(1, 20)")
            #expect(try await Self.lanes(on: connection, cap: 5)[1] == "notices others 5 0 0 0 0 0")
            #expect(try await Self.lanes(on: connection)[1] == "notices others 20 0 0 0 0 0")
            await connection.close()
        }
    }
}
