import CheckIns
package import CommandKit
import LoadKit
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadCheckIns = scenario(
        "checkins",
        summary: "Measure how soon a missed check-in is told, and who wins at the boundary",
        discussion: """
            In a database of its own. even: watches that expire evenly over a minute. instant: all at one instant. \
            million: a million armed watches, a thousand check-ins a second, and alarms beside them. race: check-ins \
            against the timer at the moment of expiry, with two services that watch. An alarm counts as raised when \
            another connection sees its notice, and as handed over when a worker that sends notices has recorded \
            that, if one runs. strike starts a Postgres, two workers and a provider of its own and causes every \
            fault at every step from the expiry to the contact's answer: kill (-9), vanish (the machine with its \
            connections), pause and freeze (SIGSTOP, shorter and longer than a lease), stop and crash (Postgres, \
            fast and immediate). failover lets a standby take over in the middle of check-ins, armings and alarms. \
            Exit 1 when a promise is broken.
            """,
        flags: [
            .single(
                "part", "PART", .choice(["even", "instant", "million", "race", "strike", "failover"]),
                environment: .none,
                fallback: "even",
                help: "What to measure."),
            .count(
                "watches", 10...10_000_000, "Watches that expire, 10000; with million those that are armed, 1000000."),
            .count("tries", 100...10_000_000, 100_000, "How many tries race makes."),
            .count("rate", 1...100_000, 1000, "Check-ins a second, with million."),
            .single(
                "for", "DURATION", .duration(.seconds(1) ... .seconds(3600)), environment: .none, fallback: "60s",
                help: "How long even and million take."),
            .repeated(
                "step", "STEP", .choice(StrikePoint.allCases.map(\.rawValue)), environment: .none,
                help: "Cause faults at this step only; may be given several times."),
            .repeated(
                "fault", "FAULT", .choice(StrikeFault.allCases.map(\.rawValue)), environment: .none,
                help: "Cause this fault only; may be given several times."),
            .count(
                "campaign", 1...1_000_000,
                "With even, send this many mails at full speed meanwhile; in a Postgres of its own, with a worker of its own."
            ),
            .single(
                "smtp", "HOST:PORT", .text, environment: .none,
                help:
                    "With --campaign: a mail server that keeps nothing, never a real one. If not given, the command starts one."
            ),
            .single(
                "mode", "MODE", .choice(Failover.Mode.allCases.map(\.rawValue)), environment: .none,
                fallback: "synchronous", help: "With failover, how the standby follows."),
            .count(
                "people", 1...1000,
                "With strike: in each wave, how many people are missed, and how many others check in just in time; 200 with failover."
            ),
            .single(
                "lease", "DURATION", .duration(.seconds(2) ... .seconds(60)), environment: .none, fallback: "8s",
                help: "With strike: how long only the worker that took a sending may send it; 30s in production."),
            .single(
                "break", "NAME", .choice(StrikeBreak.allCases.map(\.rawValue)), environment: .none,
                help: "Remove this safeguard; strike must notice it."),
            .toggle(
                "keep", environment: .none, help: "Keep the private Postgres and the workers' logs, and say where."),
        ],
        examples: [
            Example("millrace load checkins", "10,000 over a minute"),
            Example("millrace load checkins --campaign 100000", "the same beside a campaign, through a real worker"),
            Example("millrace load checkins --part race", "100,000 tries"),
            Example("millrace load checkins --part strike", "72 faults, about a quarter of an hour"),
            Example("millrace load checkins --part strike --step handed --fault kill", "one of them"),
            Example("millrace load checkins --part failover --mode asynchronous", "what is lost with a primary"),
            Example("millrace load checkins --part million", "a thousand check-ins a second (400 MB)"),
        ]
    ) { invocation in
        let scenario = CheckInScenario(invocation: invocation)
        return switch invocation.parsed.string("part") {
        case "instant": try await scenario.expire(over: .zero, name: "instant")
        case "million": try await scenario.million()
        case "strike": try await StrikeScenario(invocation: invocation).run()
        case "failover": try await FailoverScenario(invocation: invocation).run()
        case "race": try await RaceScenario(invocation: invocation).run()
        default:
            invocation.parsed.integer("campaign") != nil
                ? try await CampaignScenario(invocation: invocation).run()
                : try await scenario.expire(over: invocation.parsed.duration("for") ?? .seconds(60), name: "even")
        }
    }
}

struct CheckInScenario: Sendable {
    let invocation: Invocation

    /// When each notice was first seen by another connection, counted from the expiry.
    private struct Seen: Sendable {
        var written = Histogram()
        /// Of the last.
        var lastSeconds: Double = 0
        var ids: Set<Int64> = []
        var high: Int64 = 0
    }

    func expire(over span: Duration, name: String) async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Self.open(options)
        let count = invocation.parsed.integer("watches") ?? 10_000
        let lead = Duration.seconds(max(5, Double(count) / 5000))
        try await Self.fill(count, from: lead, over: span, on: connection)
        let service = CheckInService(
            CheckInService.Options(database: options, name: "load"), log: invocation.settings.log)
        let watching = Task { await service.run() }
        defer { watching.cancel() }
        let limit = ContinuousClock.now + lead + span + .seconds(120)
        var seen = Seen()
        let live = invocation.console.live()
        var tenths = Tenths()
        while seen.ids.count < count, ContinuousClock.now < limit {
            try await look(&seen, on: connection)
            if tenths.pass(seen.ids.count, of: count) {
                live.update(["raised \(Humane.count(seen.ids.count)) of \(Humane.count(count))"])
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        live.update([])
        let handed = try await Self.handedOver(atMost: .seconds(60), on: connection)
        watching.cancel()
        await watching.value
        await connection.close()
        var bars = [
            Bar.atLeast("watches whose contact is told", Double(count), measured: Double(seen.ids.count), unit: "")
        ]
        if span > .zero {
            bars += [
                .atMost("expiry → notice seen, p50", 100, measured: seen.written.milliseconds(at: 0.5), unit: "ms"),
                .atMost("expiry → notice seen, p99", 1000, measured: seen.written.milliseconds(at: 0.99), unit: "ms"),
            ]
        } else {
            bars.append(.atMost("expiry → the last notice seen", 60, measured: seen.lastSeconds, unit: "s"))
        }
        if let handed {
            bars.append(
                span > .zero
                    ? .atMost("expiry → handed over, p99", 1000, measured: handed.milliseconds(at: 0.99), unit: "ms")
                    : .atMost("expiry → the last handed over", 60, measured: handed.mostMilliseconds / 1000, unit: "s"))
        }
        return invocation.report(
            "checkins-\(name)", bars,
            figures: [
                ("watches", .int(count)), ("seen", seen.written.json), ("handed_over", handed?.json ?? .null),
            ])
    }

    static func open(_ options: ConnectionOptions) async throws -> Connection {
        let connection = try await Connection.open(options, name: "load")
        try await SchemaCheck.check(on: connection)
        guard try await !connection.truth("select exists (select from millrace.check_ins)") else {
            throw Failure(.conflict, "there are watches in this database", hint: "use a database of its own")
        }
        return connection
    }

    /// Watches with a contact each that can be told by mail.
    private static func fill(
        _ count: Int, from lead: Duration, over span: Duration, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            """
            with made as (
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select 'load-' || g, '1 hour', '5 min', '{}', 'UTC', 'armed', x.due - interval '1 hour', x.due, x.due, now()
                  from generate_series(0, $1::int - 1) g,
                       lateral (select millrace.now() + make_interval(secs => $2 + $3 * g / $1) as due offset 0) x
                returning person
            ), contacts as (
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select person, person || '-c', 1, '1 hour', now() from made
            )
            insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
            select gen_random_uuid(), person, person || '-c', 'mail', person || '@load.invalid', now() from made
            """, [.int4(Int32(count)), .float8(lead / .seconds(1)), .float8(span / .seconds(1))],
            deadline: .seconds(300))
        if span == .zero {
            // One instant, and not one for each row as the clock went on.
            try await connection.execute(
                "update millrace.watch set expires_at = x.due, wake_at = x.due from (select max(expires_at) as due from millrace.watch) x",
                deadline: .seconds(300))
        }
        try await connection.execute(
            "analyze millrace.watch, millrace.watch_contact, millrace.watch_address", deadline: .seconds(300))
    }

    private func look(_ seen: inout Seen, on connection: Connection) async throws(PostgresError) {
        // Numbers may come to be seen out of their order: look back a little.
        let rows = try await connection.query(
            """
            select e.id, extract(epoch from millrace.now() - a.expired_at)::float8
              from millrace.alarm_event e join millrace.alarm a on a.id = e.alarm where e.id > $1 and e.what = 'told'
            """, [.int8(max(0, seen.high - 3000))], deadline: .seconds(60)
        ) { row throws(PostgresError) in (id: try row.int(0), seconds: try row.double(1)) }
        for (id, seconds) in rows where seen.ids.insert(id).inserted {
            seen.high = max(seen.high, id)
            seen.written.record(.seconds(seconds))
            seen.lastSeconds = max(seen.lastSeconds, seconds)
        }
    }

    /// nil when no worker sends notices.
    private static func handedOver(
        atMost limit: Duration, on connection: Connection
    ) async throws -> Histogram? {
        let until = ContinuousClock.now + limit
        var open = -1
        while true {
            let counts = try await connection.query(
                """
                select count(*) filter (where n.status = 'accepted'), count(*) filter (where n.status in ('pending', 'attempting'))
                  from millrace.notice n where n.kind = 'alarm.raised'
                """, deadline: .seconds(60)
            ) { row throws(PostgresError) in (accepted: Int(try row.int(0)), open: Int(try row.int(1))) }.first
            guard let counts, counts.accepted > 0 || counts.open != open || open < 0 else { return nil }
            open = counts.open
            if counts.open == 0 || ContinuousClock.now > until { break }
            try await Task.sleep(for: .seconds(1))
        }
        var handed = Histogram()
        let seconds = try await connection.query(
            """
            select extract(epoch from n.accepted_at - a.expired_at)::float8
              from millrace.alarm_event e join millrace.alarm a on a.id = e.alarm join millrace.notice n on n.id = e.notice
             where e.what = 'told' and n.status = 'accepted'
            """, deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.double(0) }
        guard !seconds.isEmpty else { return nil }
        for one in seconds { handed.record(.seconds(one)) }
        return handed
    }

    // MARK: a million

    func million() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Self.open(options)
        let count = invocation.parsed.integer("watches") ?? 1_000_000
        let span = invocation.parsed.duration("for") ?? .seconds(60)
        let rate = invocation.count("rate")
        let expiring = 1000
        try await fillMillion(count, on: connection)
        try await Self.fill(expiring, from: .seconds(5), over: span, on: connection)
        let service = CheckInService(
            CheckInService.Options(database: options, name: "load"), log: invocation.settings.log)
        let watching = Task { await service.run() }
        defer { watching.cancel() }
        let before = try await Self.written(on: connection)
        let pacer = try await Pacer.open(options, callers: 12)
        let calls = Int(Double(rate) * (span / .seconds(1)))
        let began = PracticeMarks.now() + 1_000_000_000
        async let offered = pacer.run(
            Cadence(began: began, perSecond: Double(rate), calls: calls)
        ) {
            call, caller in
            // A prime apart, so that they lie all over the table.
            let person = "many-\((call &* 7919) % count)"
            try await caller.execute("select millrace.check_in($1, actor => $1)", [.text(person)])
        }
        var seen = Seen()
        let limit = ContinuousClock.now + span + .seconds(120)
        while seen.ids.count < expiring, ContinuousClock.now < limit {
            try await look(&seen, on: connection)
            try await Task.sleep(for: .milliseconds(10))
        }
        let outcome = try await offered
        // Counts reach the others when their sessions end or a second has passed.
        try await Task.sleep(for: .seconds(2))
        let after = try await Self.written(on: connection)
        watching.cancel()
        await watching.value
        await connection.close()
        let updates = Double(after.updates - before.updates)
        let hot = updates > 0 ? Double(after.hot - before.hot) / updates : 1
        let achieved = Double(outcome.calls) / (Double(max(1, outcome.ended - began)) / 1e9)
        return invocation.report(
            "checkins-million",
            [
                .atLeast("check-ins a second", Double(rate) * 0.95, measured: achieved, unit: "/s"),
                .atMost("rows written to the queue", 0, measured: Double(after.queue - before.queue), unit: "rows"),
                .atMost("check_in, p99", 100, measured: outcome.answered.milliseconds(at: 0.99), unit: "ms"),
                .atLeast("alarms raised meanwhile", Double(expiring), measured: Double(seen.ids.count), unit: ""),
                .atMost("expiry → notice seen, p50", 100, measured: seen.written.milliseconds(at: 0.5), unit: "ms"),
                .atMost("expiry → notice seen, p99", 1000, measured: seen.written.milliseconds(at: 0.99), unit: "ms"),
                .atLeast("updates of watches that touch no index", 0.7, measured: hot, unit: ""),
            ],
            figures: [
                ("watches", .int(count)), ("check_in", outcome.answered.json), ("seen", seen.written.json),
                ("calls", .int(outcome.calls)), ("updates", .int(Int(updates))), ("hot_share", .double(hot)),
            ])
    }

    /// Armed long ago: each person has checked in since their timer was set, so 280 timers a second come up and are set again.
    private func fillMillion(_ count: Int, on connection: Connection) async throws(PostgresError) {
        let live = invocation.console.live()
        var tenths = Tenths()
        let chunk = 100_000
        for start in stride(from: 0, to: count, by: chunk) {
            let end = min(start + chunk, count)
            try await connection.execute(
                """
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select 'many-' || g, '1 hour', '5 min', '{10 min}', 'UTC', 'armed', x.t - interval '10 min', x.t + interval '50 min' + x.part, x.t + x.part, x.t
                  from generate_series($1::int, $2::int) g, lateral (select millrace.now() as t, random() * interval '1 hour' as part offset 0) x
                """, [.int4(Int32(start)), .int4(Int32(end - 1))], deadline: .seconds(300))
            if tenths.pass(end, of: count) { live.update(["armed \(Humane.count(end)) of \(Humane.count(count))"]) }
        }
        live.update([])
        try await connection.execute("vacuum (analyze) millrace.watch", deadline: .seconds(600))
    }

    /// How many rows of the queue and of the watches were written so far.
    private static func written(
        on connection: Connection
    ) async throws(PostgresError) -> (queue: Int, updates: Int, hot: Int) {
        let found = try await connection.query(
            """
            select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del) filter (where relname ~ '^(job|ready|timer|lease|history|unique_key)'), 0)::bigint,
                   coalesce(sum(n_tup_upd) filter (where relname = 'watch'), 0)::bigint,
                   coalesce(sum(n_tup_hot_upd) filter (where relname = 'watch'), 0)::bigint
              from pg_stat_all_tables where schemaname = 'millrace'
            """, deadline: .seconds(60)
        ) { row throws(PostgresError) in
            (queue: Int(try row.int(0)), updates: Int(try row.int(1)), hot: Int(try row.int(2)))
        }.first
        return (found?.queue ?? 0, found?.updates ?? 0, found?.hot ?? 0)
    }
}
