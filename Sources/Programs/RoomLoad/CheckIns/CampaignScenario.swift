import CommandKit
import Composition
import LoadKit
import Mail
import Postgres
import Telemetry

/// Watches that expire evenly over a minute, and a campaign by SMTP at full speed beside them, both through one real worker.
struct CampaignScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let sink = try invocation.parsed.string("smtp") == nil ? MailSink() : nil
        defer { sink?.stop() }
        var plan = StrikeWorld.Plan()
        plan.workers = 1
        plan.slots = 100
        plan.lease = .seconds(30)
        plan.smtp = invocation.parsed.string("smtp") ?? sink.map { "127.0.0.1:\($0.port)" }
        if let smtp = plan.smtp, SMTPAddress("smtp://\(smtp)?tls=none") == nil {
            throw Failure(.misused, "--smtp takes HOST:PORT, not \(Secrets.quoted(smtp))")
        }
        let world = try StrikeWorld(invocation, plan)
        if invocation.parsed.isOn("keep") { Scratch.keep(world.directory, invocation) }
        return try await play(in: world)
    }

    private func play(in world: StrikeWorld) async throws -> ExitCode {
        let count = invocation.parsed.integer("watches") ?? 10_000
        let span = invocation.parsed.duration("for") ?? .seconds(60)
        let mails = invocation.parsed.integer("campaign") ?? 100_000
        let live = invocation.console.live()
        try await world.open()
        let connection = try await world.connect()
        var tenths = Tenths()
        try await MailLoad.campaign(mails, on: connection) { made in
            if tenths.pass(made, of: mails) {
                live.update(["handed in \(Humane.count(made)) of \(Humane.count(mails)) mails"])
            }
        }
        try await connection.execute("analyze millrace.mail, millrace.job, millrace.ready", deadline: .seconds(300))
        world.startWorkers()
        try await world.settle(on: connection)
        let due = try await fill(count, over: span, on: connection)
        // From the first expiry until the last contact is told.
        let begin = due.values.min() ?? MachineClock.now()
        try await Task.sleep(for: .seconds(max(0, begin - MachineClock.now())))
        let before = try await sent(on: connection)
        let began = MachineClock.now()
        let limit = ContinuousClock.now + span + .seconds(120)
        while Set(world.provider.entries.map(\.to)).count < count, ContinuousClock.now < limit {
            live.update(["told \(Humane.count(world.provider.count)) of \(Humane.count(count))"])
            try await Task.sleep(for: .milliseconds(500))
        }
        let ended = MachineClock.now()
        let after = try await sent(on: connection)
        live.update([])
        await connection.close()
        _ = try await world.stopWorkers()
        var waits = Histogram()
        var told: Set<String> = []
        var early = 0
        for entry in world.provider.entries where told.insert(entry.to).inserted {
            guard let end = due[entry.to] else { continue }
            early += entry.at < end ? 1 : 0
            waits.record(.seconds(max(0, entry.at - end)))
        }
        let perSecond = Double(after - before) / max(0.001, ended - began)
        let left = mails - after
        return invocation.report(
            "checkins-campaign",
            [
                .atLeast("watches whose contact is told", Double(count), measured: Double(told.count), unit: ""),
                .atMost("told before the expiry", 0, measured: Double(early), unit: ""),
                .atMost("expiry → first notice accepted, p50", 100, measured: waits.milliseconds(at: 0.5), unit: "ms"),
                .atMost(
                    "expiry → first notice accepted, p99", 1000, measured: waits.milliseconds(at: 0.99), unit: "ms"),
                .atLeast(
                    "mails of the campaign beside it (\(Humane.count(max(0, left))) were left at its end)", 1,
                    measured: perSecond, unit: "/s"),
            ],
            figures: [
                ("watches", .int(count)), ("campaign", .int(mails)), ("accepted", waits.json),
                ("campaign_per_second", .double(perSecond)), ("campaign_left", .int(left)),
                ("duplicates", .int(world.provider.count - told.count)),
            ])
    }

    private func sent(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int(
            "select count(*) from millrace.mail where status = 'accepted' and purpose <> 'alarm'",
            deadline: .seconds(120)
        )
    }

    /// Returns when each address is to be told of something, in seconds since 1970.
    private func fill(
        _ count: Int, over span: Duration, on connection: Connection
    ) async throws(PostgresError) -> [String: Double] {
        let rows = try await connection.query(
            """
            with base as materialized (select millrace.now() + make_interval(secs => greatest(5, $1 / 1000)) as t), people as (
                select 'load-' || g as person, '+4915' || lpad(g::text, 10, '0') as address, b.t + make_interval(secs => $2 * g / $1) as due
                  from generate_series(0, $1::int - 1) g, base b
            ), made as (
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select person, '1 hour', '5 min', '{}', 'UTC', 'armed', due - interval '1 hour', due, due, now() from people
            ), contacts as (
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select person, person || '-c', 1, '1 hour', now() from people
            ), addresses as (
                insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
                select gen_random_uuid(), person, person || '-c', 'sms', address, now() from people
            )
            select address, extract(epoch from due)::float8 from people
            """, [.int4(Int32(count)), .float8(span / .seconds(1))], deadline: .seconds(300)
        ) { row throws(PostgresError) in (try row.string(0), try row.double(1)) }
        return Dictionary(rows) { first, _ in first }
    }
}
