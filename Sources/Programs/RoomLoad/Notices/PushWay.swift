import Clusters
import CommandKit
import Glibc
import LoadKit
import Notices
import Postgres
import Supervision
import Telemetry

/// Notices from their rows to the recorded answer, in a private Postgres.
struct PushWay: Sendable {
    let invocation: Invocation
    let provider: @Sendable (Pool) throws -> any NoticeProvider

    struct Result: Sendable {
        var perSecond = 0.0
        /// In milliseconds.
        var p50 = 0.0
        var p99 = 0.0
    }

    func measure(notices: Int, alarms: Int) async throws -> Result {
        let (_, cluster) = try await Scratch.postgres("push", invocation, settings: ["max_connections": "40"])
        return try await measure(notices, alarms, at: ConnectionOptions(location: cluster.url()))
    }

    private func measure(_ notices: Int, _ alarms: Int, at database: ConnectionOptions) async throws -> Result {
        let connection = try await Connection.open(database, name: "load")
        let pool = Pool(database, size: 2)
        var options = NoticeService.Options(database: database)
        options.slots = 64
        let service = NoticeService(
            options, providers: [try provider(pool)], supervisor: Supervisor(Supervisor.Options(), log: .silent),
            log: .standardError(threshold: .warning))
        try await connection.execute(
            """
            insert into millrace.device (token, person, platform, seen_at)
            select 'load' || lpad(n::text, 60, '0'), 'p' || n, 'apns', millrace.now() from generate_series(1, $1) n
            """, [.int4(Int32(clamping: notices))], deadline: .seconds(120))
        try await connection.execute(
            """
            insert into millrace.notice (id, person, kind, data, status, due_at, created_at)
            select gen_random_uuid(), 'p' || n, 'daily_reminder', '{}', 'pending', millrace.now(), millrace.now() from generate_series(1, $1) n
            """, [.int4(Int32(clamping: notices))], deadline: .seconds(120))
        let running = Task { await service.run() }
        let began = ContinuousClock.now
        var result = Result()
        do {
            try await wait(for: notices, on: connection)
            result.perSecond = Double(notices) / ((ContinuousClock.now - began) / .seconds(1))
            for number in 1...alarms {
                try await connection.execute(
                    "select millrace.notice_put($1, 'alarm.raised', 'push', $2, '{}', $3, millrace.now(), null, true)",
                    [.text("p1"), .text("load" + String(repeating: "0", count: 59) + "1"), .text("alarm\(number)")])
                try await Task.sleep(for: .milliseconds(5))
            }
            try await wait(for: notices + alarms, on: connection)
            let times = try await connection.query(
                "select extract(epoch from accepted_at - due_at)::float8 * 1000 from millrace.notice where alarm order by 1"
            ) { row throws(PostgresError) in try row.double(0) }
            result.p50 = percentile(times, 0.5)
            result.p99 = percentile(times, 0.99)
        } catch {
            running.cancel()
            await running.value
            throw error
        }
        running.cancel()
        await running.value
        await pool.close()
        await connection.close()
        return result
    }

    private func wait(for count: Int, on connection: Connection) async throws {
        let deadline = ContinuousClock.now + .seconds(600)
        while true {
            let (accepted, failed) =
                try await connection.query(
                    "select count(*) filter (where status = 'accepted'), count(*) filter (where status in ('failed', 'suppressed', 'expired')) from millrace.notice",
                    deadline: .seconds(30)
                ) { row throws(PostgresError) in (Int(try row.int(0)), Int(try row.int(1))) }.first ?? (0, 0)
            if accepted >= count { return }
            guard failed == 0 else { throw Failure("\(failed) notices were not taken; does the server answer 200?") }
            guard ContinuousClock.now < deadline else {
                throw Failure("\(count - accepted) notices were not sent in time")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
