import CheckIns
import CommandKit
import LoadKit
import Postgres

/// Check-ins that arrive at the very moment of expiry, while two services look. The first to lock the row decides, and both sides must
/// tell the same story: without an alarm the check-in was in time, with one it was late, by the clock read under the lock.
struct RaceScenario: Sendable {
    let invocation: Invocation

    private static let callers = 6
    private static let batch = 20

    private struct Tally: Sendable {
        var tries = 0
        var inTime = 0
        var late = 0
        var wrong = 0
        /// Late check-ins for which the timer had raised the alarm before.
        var raisedBefore = 0
    }

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await CheckInScenario.open(options)
        let tries = invocation.count("tries")
        let watching = (0..<2).map { number in
            var own = CheckInService.Options(database: options, name: "race-\(number)")
            own.poll = .milliseconds(2)
            let service = CheckInService(own, log: invocation.settings.log)
            return Task { await service.run() }
        }
        defer { for one in watching { one.cancel() } }
        let live = invocation.console.live()
        var whole = Tally()
        try await withThrowingTaskGroup(of: Tally.self) { group in
            for caller in 0..<Self.callers {
                let share = tries / Self.callers + (caller < tries % Self.callers ? 1 : 0)
                group.addTask {
                    try await race(caller, share, options, say: caller == 0 ? { live.update([$0]) } : { _ in })
                }
            }
            for try await one in group {
                whole.tries += one.tries
                whole.inTime += one.inTime
                whole.late += one.late
                whole.wrong += one.wrong
                whole.raisedBefore += one.raisedBefore
            }
        }
        live.update([])
        for one in watching {
            one.cancel()
            await one.value
        }
        await connection.close()
        return invocation.report(
            "checkins-race",
            [
                .atMost("tries in which the two sides disagree", 0, measured: Double(whole.wrong), unit: "tries"),
                .atLeast("check-ins in time", Double(tries) / 10, measured: Double(whole.inTime), unit: "tries"),
                .atLeast("check-ins too late", Double(tries) / 10, measured: Double(whole.late), unit: "tries"),
            ],
            figures: [
                ("tries", .int(whole.tries)), ("in_time", .int(whole.inTime)), ("late", .int(whole.late)),
                ("raised_by_the_timer_first", .int(whole.raisedBefore)), ("disagreements", .int(whole.wrong)),
            ])
    }

    private func race(
        _ caller: Int, _ tries: Int, _ options: ConnectionOptions, say: (String) -> Void
    ) async throws -> Tally {
        let connection = try await Connection.open(options, name: "race-caller")
        var tally = Tally()
        var round = 0
        var aside = 0.0
        var spacing = 0.008
        var tenths = Tenths()
        while tally.tries < tries {
            let size = min(Self.batch, tries - tally.tries)
            let stem = "race-\(caller)-\(round)-"
            round += 1
            // `created_at` keeps the deadline, which the check-in moves.
            try await connection.execute(
                """
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select $1 || g, '1 hour', '5 min', '{}', 'UTC', 'armed', x.due - interval '1 hour', x.due, x.due, x.due
                  from generate_series(0, $2::int - 1) g, lateral (select millrace.now() + (0.005 + $3 * (g + 1)) * interval '1 s' as due offset 0) x
                """, [.text(stem), .int4(Int32(size)), .float8(spacing)])
            for number in 0..<size {
                // A little earlier after one that was late, a little later after one that was not: so the boundary is found, on any machine.
                let wasLate = try await connection.query(
                    """
                    select millrace.check_in($1, actor => $1) - interval '1 hour' >= x.due
                      from (select w.created_at as due, pg_sleep(greatest(extract(epoch from w.created_at - millrace.now())::float8 + $2, 0)) as slept
                              from millrace.watch w where w.person = $1 offset 0) x
                     where x.slept is not null
                    """, [.text("\(stem)\(number)"), .float8(aside)], deadline: .seconds(60)
                ) { row throws(PostgresError) in try row.bool(0) }.first
                aside = max(-0.006, min(0.006, aside + (wasLate == true ? -0.0004 : 0.0004)))
            }
            let found = try await judge(stem, on: connection)
            // A machine that cannot keep up has every call come late: it gets more time between two.
            let lateShare = Double(found.late) / Double(size)
            if lateShare > 0.7 { spacing = min(spacing * 1.25, 0.2) }
            if lateShare < 0.45 { spacing = max(spacing * 0.95, 0.004) }
            tally.tries += size
            tally.inTime += found.inTime
            tally.late += found.late
            tally.raisedBefore += found.raisedBefore
            tally.wrong += found.wrong + max(0, size - found.inTime - found.late - found.wrong)
            try await connection.execute("delete from millrace.watch where person like $1 || '%'", [.text(stem)])
            if tenths.pass(tally.tries, of: tries) { say("\(tally.tries * 100 / tries) %") }
        }
        await connection.close()
        return tally
    }

    private func judge(_ stem: String, on connection: Connection) async throws(PostgresError) -> Tally {
        try await connection.query(
            """
            select count(*) filter (where f.alarms = 0 and f.checked < f.due and f.state = 'armed'),
                   count(*) filter (where f.alarms = 1 and f.ended = 1 and f.checked >= f.due and f.state = 'armed'),
                   count(*) filter (where f.alarms = 1 and f.raised < f.checked),
                   count(*) filter (where not (f.alarms = 0 and f.checked < f.due or f.alarms = 1 and f.ended = 1 and f.checked >= f.due) or f.state <> 'armed')
              from (select w.created_at as due, w.last_checked_in as checked, w.state, count(a.id) as alarms, min(a.raised_at) as raised,
                           count(a.id) filter (where a.state = 'resolved' and a.resolution = 'late_check_in' and a.expired_at = w.created_at) as ended
                      from millrace.watch w left join millrace.alarm a on a.person = w.person
                     where w.person like $1 || '%' group by w.person) f
            """, [.text(stem)], deadline: .seconds(60)
        ) { row throws(PostgresError) in
            var tally = Tally()
            tally.inTime = Int(try row.int(0))
            tally.late = Int(try row.int(1))
            tally.raisedBefore = Int(try row.int(2))
            tally.wrong = Int(try row.int(3))
            return tally
        }.first ?? Tally()
    }
}
