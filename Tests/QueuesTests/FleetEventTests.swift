import Postgres
import TestSupport
import Testing

/// What happened to the fleet, as charts and `status --at` show it.
@Suite struct FleetEventTests {
    private func events(_ connection: Connection) async throws -> [String] {
        try await connection.records(
            """
            select event, subject, version, by is not null, detail
              from millrace.fleet_events(millrace.now() - interval '1 day', millrace.now()) order by at, event, subject
            """)
    }

    private func start(_ session: Int, _ version: String, on connection: Connection) async throws {
        try await connection.run(
            """
            select millrace.test_clock_advance('1 min');
            select millrace.session_open(\(session), 'worker-\(session)', 'host', 1, '\(version)', null, '{}', 1, false)
            """)
    }

    @Test func `a deploy is the first start of a version while none of its workers lives`() async throws {
        try await withConnection(.movableClock) { connection in
            try await start(1, "1.0", on: connection)
            try await start(2, "1.1", on: connection)
            try await start(3, "1.0", on: connection)  // a worker of the old version that was started again
            try await start(4, "1.1", on: connection)
            try await connection.run("select millrace.session_close(s) from unnest('{1,3}'::bigint[]) s")
            try await start(5, "1.0", on: connection)  // taken back
            let deploys = try await events(connection).filter { $0.hasPrefix("(deploy,") }
            #expect(
                deploys == [
                    "(deploy,worker-2,1.1,f,\"1.1 after 1.0\")", "(deploy,worker-5,1.0,f,\"1.0 after 1.1\")",
                ])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.fleet_events(millrace.now() - interval '1 day', millrace.now(), 3)")
                    == 3)
        }
    }

    @Test func `pauses, forced providers, lost workers and their jobs are told, with who did it`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.enqueue()
            try await connection.claim(wanted: 1)
            try await connection.run("select millrace.test_clock_advance('1 s'); select millrace.pause('mail')")
            try await connection.run("select millrace.pause('mail')")  // changes nothing, so it is no event
            try await connection.run("select millrace.test_clock_advance('1 s'); select millrace.resume('mail')")
            try await connection.run(
                "select millrace.test_clock_advance('1 s'); select millrace.provider_force('resend', 'open', 'why')")
            try await connection.run("select millrace.test_clock_advance('1 s')")
            _ = try await connection.rescue()
            #expect(
                try await events(connection) == [
                    "(\"worker started\",worker-1,0,f,)", "(\"queue paused\",mail,,t,)", "(\"queue resumed\",mail,,t,)",
                    "(\"provider forced\",resend,,t,\"forced_open: why\")",
                    "(\"worker lost\",worker-1,0,f,lost)",
                    "(\"jobs rescued\",worker-1,,f,\"1 jobs, 0 of them quarantined\")",
                ])
        }
    }

    @Test func `a server with another start has restarted, and with another timeline failed over`() async throws {
        try await withConnection(.movableClock) { connection in
            func sample() async throws {
                try await connection.run(
                    "select millrace.test_clock_advance('1 min'); select * from millrace.sample_take()")
            }
            try await sample()
            #expect(try await events(connection) == [])
            try await connection.run(
                "update millrace.sample_state set server_started = server_started - interval '1 day'")
            try await sample()
            #expect(try await events(connection).map { String($0.prefix(29)) } == ["(\"server restarted\",postgres,"])
            try await connection.run(
                "update millrace.sample_state set server_started = server_started - interval '1 day', timeline = timeline + 4"
            )
            try await sample()
            #expect(try await events(connection).last == "(\"server failed over\",postgres,,f,\"timeline 5 became 1\")")
            try await sample()
            #expect(try await events(connection).count == 2)
        }
    }
}
