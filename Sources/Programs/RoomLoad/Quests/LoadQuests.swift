package import CommandKit
import LoadKit
import Postgres
import Quests
import Telemetry

extension Command {
    package static let loadQuests = scenario(
        "quests",
        summary: "Measure a wave of midnights among many families, and what an app's calls take meanwhile",
        discussion: """
            Fills a database of its own with families in all time zone offsets that are in use now, with three \
            members each. For one part of the families, the wave, midnight has just passed; one worker rolls them \
            over while members of other families complete their quests. Also calls every function a few hundred \
            times. One family in the wave is broken on purpose.
            """,
        flags: [
            .count("families", 1000...10_000_000, 1_000_000, "Families in all."),
            .count("wave", 100...1_000_000, 100_000, "How many of them are due at once."),
            .count("calls", 10...10_000, 200, "Calls of each function."),
            .count("batch", 1...500, QuestService.usualBatch, "Families in each transaction of the wave."),
        ],
        examples: [
            Example("millrace load quests", "a million families, a hundred thousand of them at midnight"),
            Example("millrace load quests --families 10000 --wave 5000", "what a family costs where there are few"),
        ]
    ) { invocation in
        try await QuestScenario(invocation: invocation).run()
    }
}

private struct QuestScenario: Sendable {
    let invocation: Invocation

    private var families: Int { invocation.count("families") }
    private var wave: Int { min(families, invocation.count("wave")) }
    private var calls: Int { invocation.count("calls") }

    func run() async throws -> ExitCode {
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        try await SchemaCheck.check(on: connection)
        guard try await number("select count(*) from (select from millrace.family limit 1) f", on: connection) == 0
        else {
            throw Failure(.conflict, "there are families in this database", hint: "use a database of its own")
        }
        let filling = ContinuousClock.now
        let (first, offsets) = try await fill(on: connection)
        let filled = filling.duration(to: .now)
        let bytes = try await number(
            """
            select sum(pg_total_relation_size(c))::bigint from unnest(array['millrace.family', 'millrace.quest_family', 'millrace.quest', 'millrace.family_member']::regclass[]) c
            """, on: connection)
        invocation.console.note(
            "\(Humane.count(families)) families over \(offsets) offsets in \(Humane.duration(filled)), \(bytes / 1_048_576) MB"
        )

        // Others go on completing their quests: at the pace of a busy evening.
        let others = try await Connection.open(options, name: "load-calls")
        let calm = try await complete(seconds: 3, from: first, on: others)
        async let meanwhile = completeUntilDone(from: first + 10_000, on: others)
        let began = ContinuousClock.now
        let pool = Pool(options, size: 1)
        let tally = try await QuestService(
            pool: pool, batch: invocation.count("batch")
        ).run()
        let took = began.duration(to: .now)
        done.fire()
        let busy = try await meanwhile
        await pool.close()

        let functions = try await QuestFunctions(calls: calls, families: families, wave: wave).measure(on: connection)
        let slowest = functions.max { $0.median < $1.median }
        for one in functions {
            invocation.console.detail("\(one.name): median \(Humane.decimal(one.median, places: 2)) ms")
        }
        let behind = try await number("select due from millrace.quest_state()", on: connection)
        await others.close()
        await connection.close()
        let seconds = took / .seconds(1)
        invocation.console.note("completions without the wave: \(calm.summary)")
        invocation.console.note("completions beside it: \(busy.summary)")
        return invocation.report(
            "quests",
            [
                .atMost(
                    "the wave of \(Humane.count(wave)) families", 60 * Double(wave) / 100_000, measured: seconds,
                    unit: "s"),
                .atMost(
                    "families left behind (one is broken on purpose)", 1, measured: Double(behind + tally.failed),
                    unit: ""),
                .atMost("quest_complete meanwhile, p99", 50, measured: busy.milliseconds(at: 0.99), unit: "ms"),
                .atMost(
                    "the slowest function, median (\(slowest?.name ?? "?"))", 5, measured: slowest?.median ?? .nan,
                    unit: "ms"),
            ],
            figures: [
                ("families", .int(families)), ("wave", .int(wave)), ("offsets", .int(offsets)),
                ("fill_seconds", .double(filled / .seconds(1))), ("bytes", .int(bytes)), ("days", .int(tally.days)),
                ("failed", .int(tally.failed)),
                ("microseconds_per_family", .double(seconds * 1e6 / Double(max(1, tally.days)))),
                ("complete_calm_p99_ms", .double(calm.milliseconds(at: 0.99))),
                ("complete_p50_ms", .double(busy.milliseconds(at: 0.5))),
                ("complete_p99_ms", .double(busy.milliseconds(at: 0.99))),
                ("functions_ms", .object(functions.map { .init(key: $0.name, value: .double($0.median)) })),
            ])
    }

    private let done = Signalled()

    private func number(_ sql: SQL, on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int(sql, deadline: .seconds(600))
    }

    /// The first `wave` families are a day behind. Returns the number of the first that is not, and how many offsets there are.
    private func fill(on connection: Connection) async throws(PostgresError) -> (first: Int, offsets: Int) {
        try await connection.execute(
            """
            create temp table place as
            select (row_number() over (order by utc_offset))::int - 1 as n, min(name) as zone from pg_timezone_names
             where name ~ '^(Africa|America|Asia|Atlantic|Australia|Europe|Indian|Pacific)/' group by utc_offset
            """, deadline: .seconds(60))
        try await connection.execute("select millrace.valid_zone(zone) from place", deadline: .seconds(60))
        let offsets = try await number("select count(*) from place", on: connection)
        let live = invocation.console.live()
        var tenths = Tenths()
        let chunk = 50_000
        for start in stride(from: 0, to: families, by: chunk) {
            let end = min(start + chunk, families)
            try await connection.execute(
                """
                with clock as materialized (
                    select p.n, p.zone, w.wave, millrace.day_at(millrace.now(), p.zone) - w.wave as today
                      from place p, (values (0), (1)) w(wave)
                ), clocks as materialized (
                    select c.*, millrace.day_start(c.today, c.zone) as opened, millrace.day_start(c.today + 1, c.zone) as ends from clock c
                ), made as (
                    select 'load-' || g as family, g = 0 as is_broken, c.* from generate_series($1::int, $2::int) g
                      join clocks c on c.n = g % $3::int and c.wave = case when g < $4::int then 1 else 0 end
                ), families as (
                    insert into millrace.family (family, zone, created_at) select m.family, m.zone, millrace.now() from made m
                ), their_clocks as (
                    insert into millrace.quest_family (family, zone, today, opened_at, next_rollover_at, due_at)
                    select m.family, case when m.is_broken then 'No/Where' else m.zone end, m.today, m.opened, m.ends, m.ends from made m
                ), opened as (
                    insert into millrace.quest (family, day, item, state)
                    select m.family, m.today, millrace.quest_item_of(m.family, m.today, r.rotation), 'open' from made m, millrace.quest_rule r
                )
                insert into millrace.family_member (person, family, role, joined_at)
                select m.family || p.suffix, m.family, p.role, millrace.now()
                  from made m, (values ('-a', 'parent'), ('-b', 'teen'), ('-c', 'teen')) p(suffix, role)
                """,
                [.int4(Int32(start)), .int4(Int32(end - 1)), .int4(Int32(offsets)), .int4(Int32(wave))],
                deadline: .seconds(300))
            if tenths.pass(end, of: families) {
                live.update(["made \(Humane.count(end)) of \(Humane.count(families)) families"])
            }
        }
        live.update([])
        // So that what filling has left to do is done, and not measured.
        try await connection.execute(
            "vacuum (analyze) millrace.family, millrace.quest_family, millrace.quest, millrace.family_member",
            deadline: .seconds(600))
        let isSuperuser = try await connection.query("select current_setting('is_superuser') = 'on'") {
            row throws(PostgresError) in try row.bool(0)
        }.first
        if isSuperuser == true { try await connection.execute("checkpoint", deadline: .seconds(600)) }
        return (wave, offsets)
    }

    private func complete(seconds: Int, from first: Int, on connection: Connection) async throws -> Histogram {
        var times = Histogram()
        let end = ContinuousClock.now + .seconds(seconds)
        var n = first
        while ContinuousClock.now < end { try await completeOne(&n, &times, on: connection) }
        return times
    }

    private func completeUntilDone(from first: Int, on connection: Connection) async throws -> Histogram {
        var times = Histogram()
        var n = first
        while !done.isFired { try await completeOne(&n, &times, on: connection) }
        return times
    }

    private func completeOne(_ n: inout Int, _ times: inout Histogram, on connection: Connection) async throws {
        // Families outside the wave, each in its turn; a prime apart, so that they are spread over the whole table.
        let outside = max(1, families - wave)
        let family = "load-\(wave + (n &* 7919) % outside)"
        n += 1
        guard wave < families else { return try await Task.sleep(for: .milliseconds(10)) }
        let began = ContinuousClock.now
        try await connection.execute(
            "select millrace.quest_complete($1, $1 || '-b', actor => $1 || '-b')", [.text(family)])
        times.record(began.duration(to: .now))
        try await Task.sleep(for: .milliseconds(5))
    }
}
