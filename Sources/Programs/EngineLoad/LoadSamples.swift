package import CommandKit
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    package static let loadSamples = scenario(
        "samples",
        summary: "Measure what samples of the fleet take: bytes for 14 days, and time of a drain",
        discussion: """
            Writes the samples of 50 queues that have jobs at all times, as fast as it can, and packs them: queue k ends 50/k runs a \
            second, of one kind, by one version. From the bytes of one packed chunk of each step follow those of 14 days. Then a \
            worker drains jobs in turns, with and without samples, while 50 other queues hold jobs; samples are taken ten times as \
            often as they are, and a tenth of what that costs is their cost.
            """,
        flags: [
            .count("queues", 1...2000, 50, "Queues that have jobs."),
            .count("hours", 1...300, 30, "Hours of samples to write; 30 fill one chunk of every step."),
            .count("jobs", 1...100_000_000, 500_000, "Jobs to drain in each turn."),
            .count("rounds", 1...25, 5, "Turns of each way."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [Example("millrace load samples", "both, in about five minutes")]
    ) { invocation in
        let connection = try await invocation.connect()
        let code = try await SamplesScenario(invocation: invocation, connection: connection).run()
        await connection.close()
        return code
    }
}

private struct SamplesScenario: Sendable {
    let invocation: Invocation
    let connection: Connection

    private static let queue = "load.samples"
    /// How much oftener than usual samples are taken.
    private static let haste = 10.0

    func run() async throws -> ExitCode {
        let queues = invocation.count("queues")
        let space = try await measureSpace(queues: queues)
        try await connection.execute(Self.afresh)
        let time = try await measureTime(queues: queues)
        return invocation.report(
            "samples",
            [
                .atMost(
                    "14 days of \(queues) queues", 30, measured: space.reduce(0) { $0 + $1.kept } / 1e6, unit: "MB"),
                .atMost(
                    "share of a drain, \(Int(Self.haste)) times as many samples, a tenth of it", 0.02,
                    measured: time.share, unit: "×"),
                .atMost("one sample, \(queues) queues with jobs, median", 200, measured: time.take, unit: "ms"),
            ],
            figures: [
                ("queues", .init(queues)),
                (
                    "steps",
                    .array(
                        space.map {
                            [
                                "what": .string($0.what), "step_seconds": .init($0.step), "rows": .init($0.rows),
                                "bytes": .init($0.bytes), "bytes_14_days": .double($0.kept),
                            ]
                        })
                ),
                ("with", .array(time.with.map(\.json))),
                ("without", .array(time.without.map(\.json))),
            ])
    }

    // MARK: Space

    private struct Step: Sendable {
        var what: String
        var step, rows, bytes: Int
        /// Bytes of all that is kept of it, with the rows' and the index's share.
        var kept: Double
    }

    private func measureSpace(queues: Int) async throws -> [Step] {
        let hours = invocation.count("hours")
        let live = invocation.console.live()
        try await connection.execute(Self.maker)
        for hour in 0..<hours {
            live.update(["wrote samples of \(hour) of \(hours) hours"])
            try await connection.execute(
                "select pg_temp.make_samples($1, $2, $3)",
                [.int4(Int32(queues)), .int4(Int32(hour)), .int4(Int32(hours))])
        }
        live.update(["packing"])
        func steps(_ sql: SQL) async throws(PostgresError) -> [Step] {
            try await connection.query(sql, deadline: .seconds(60)) { row throws(PostgresError) in
                Step(
                    what: try row.string(0), step: Int(try row.int(1)), rows: Int(try row.int(2)),
                    bytes: Int(try row.int(3)), kept: try row.double(4))
            }
        }
        let fresh = try await steps(Self.freshSizes)
        try await connection.execute(Self.packing, deadline: .seconds(1800))
        live.update([])
        return fresh + (try await steps(Self.sizes))
    }

    /// Samples of one hour, of the last `hours` before the newest border of a chunk of the coarsest step: counts around their means, and
    /// columns that change as those of a busy fleet do.
    private static let maker: SQL = """
        create function pg_temp.make_samples(queues int, hour int, hours int) returns void language plpgsql as $$
        declare
            origin timestamptz := date_bin(make_interval(secs => 600 * millrace.sample_slots()), now(), '2000-01-01 00:00+00') - make_interval(hours => hours);
            at timestamptz;
        begin
            insert into millrace.sample_done (what, step, upto)
            select r.what, s, origin from millrace.sample_rules() r cross join unnest(array[10, 60, 600]) s where r.what <> 6 or s > 10
                on conflict do nothing;
            for i in 0 .. 359 loop
                at := origin + make_interval(hours => hour, secs => i * 10);
                with drawn as materialized (
                    select k, greatest(0, round(500.0 / k + (random() - 0.5) * 3.4 * sqrt(500.0 / k)))::bigint as done, random() as a, random() as b
                      from generate_series(1, queues) k
                ), ends as materialized (
                    select d.k, d.done, (random() < 0.1)::int::bigint as failed, (d.done * (40 + d.a * 20))::bigint as ms,
                           (d.done * (100 + d.b * 200))::bigint as wait, (random() * (1 + d.done))::bigint as ready, (d.a * d.done / 20)::bigint as running, d.b from drawn d
                ), said as (
                    select 1::smallint as what, e.k + 1 as key, array[0, e.ready, 0, 40 + (random() * 3)::int, e.running, 0, (e.b * 30)::int]::bigint[] as v from ends e
                    union all select 1, 1, array[1, sum(e.ready), 0, 42 * queues, sum(e.running), 0, 30]::bigint[] from ends e
                    union all select 2, e.k + 100001, array[e.done, e.failed, 0, 0, 0, e.ms, e.wait, 0]::bigint[] from ends e
                    union all select 2, 100001, array[sum(e.done), sum(e.failed), 0, 0, 0, sum(e.ms), sum(e.wait), 0]::bigint[] from ends e
                    union all select 6, e.k + 200001, array_fill(0::bigint, array[9]) || array[e.done * 0.1, e.done * 0.3, e.done * 0.4, e.done * 0.1 + e.b * 2, e.b * 2]::bigint[]
                        || array_fill(0::bigint, array[32]) from ends e
                    union all select 6, 200001, array_fill(0::bigint, array[9]) || array[sum(e.done) * 0.1, sum(e.done) * 0.3, sum(e.done) * 0.4, sum(e.done) * 0.1, 1]::bigint[]
                        || array_fill(0::bigint, array[32]) from ends e
                    -- Four workers, three providers, and the tables.
                    union all select 3, 300001 + w, array[1, 1, (random() * 50)::int, (random() * 5)::int, 0, 50, 0]::bigint[] from generate_series(0, 4) w
                    union all select 4, 400001 + p, array[1, 1, (random() * 500)::int, (random() * 3)::int, 0, 0, 0, (random() * 100)::int, (random() * 1000)::int]::bigint[] from generate_series(1, 3) p
                    union all select 5, 500001 + s, array[1, 100000 + (random() * 10)::int, (random() * 5000)::int, 1, 50, 4, 30000, 0]::bigint[] from generate_series(1, 11) s where i % 6 = 0
                )
                insert into millrace.sample_fresh (what, at, keys, vals)
                select s.what, at, array_agg(s.key order by s.key), (select array_agg(u.v order by x.key, u.i) from said x cross join lateral unnest(x.v) with ordinality u(v, i) where x.what = s.what)
                  from said s group by s.what;
            end loop;
        end $$
        """

    private static let packing: SQL = """
        do $$
        begin
            while millrace.sample_fold() loop end loop;
        end $$
        """

    /// A chunk's bytes with 70 for each row and its entry in the index, times the chunks that are kept.
    private static let sizes: SQL = """
        select (array['queues', 'ends', 'workers', 'providers', 'storage', 'times'])[p.what], p.step, count(*), sum(length(p.body))::bigint,
               (sum(pg_column_size(p.*) + 70)::float8 / count(distinct p.at)
                   * (case p.step when 10 then 86400 + 1800 when 60 then case p.what when 6 then 86400 else 14 * 86400 end + 10800 else 14 * 86400 + 108000 end)
                   / (p.step * millrace.sample_slots()))::float8
          from millrace.sample_pack p group by p.what, p.step order by p.what, p.step
        """

    /// What is not packed yet: half an hour of most, three hours of times; and once more for rows that wait to be vacuumed.
    private static let freshSizes: SQL = """
        select (array['queues', 'ends', 'workers', 'providers', 'storage', 'times'])[f.what], 0, count(*), sum(pg_column_size(f.*))::bigint,
               (2 * avg(pg_column_size(f.*) + 50) * case f.what when 6 then 1080 when 5 then 30 else 180 end)::float8
          from millrace.sample_fresh f group by f.what order by f.what
        """

    private static let afresh: SQL = """
        truncate millrace.sample_fresh, millrace.sample_pack, millrace.sample_done, millrace.sample_key
        """

    // MARK: Time

    private struct Time: Sendable {
        var with: [Costs] = []
        var without: [Costs] = []
        var takes: [Double] = []

        /// What samples cost of a drain, if they are taken as often as they are.
        var share: Double {
            max(0, 1 - median(zip(with, without).map { $0.perSecond / $1.perSecond })) / SamplesScenario.haste
        }
        var take: Double { median(takes) }
    }

    private func measureTime(queues: Int) async throws -> Time {
        for number in 0..<queues {
            _ = try await Queue.enqueueBulk(
                kind: "load.nobody", args: (0..<500).map { _ in Array("{}".utf8) }, queue: "load.other.\(number)",
                on: connection, deadline: .seconds(60))
        }
        let draining = Draining(
            invocation: invocation, connection: connection, jobs: invocation.count("jobs"))
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        var time = Time()
        for round in 1...(invocation.count("rounds")) {
            // Each way goes first in turn, because what one leaves to be vacuumed slows the next.
            for isWith in round.isMultiple(of: 2) ? [false, true] : [true, false] {
                let label = "round \(round), \(isWith ? "with" : "without") samples:"
                try await connection.execute(isWith ? Self.on : Self.off)
                let taking = isWith ? Task { try await takeOften() } : nil
                let costs: Costs
                do {
                    costs = try await draining.turn(of: Self.queue, by: workers, label: label)
                } catch {
                    taking?.cancel()
                    throw error
                }
                taking?.cancel()
                time.takes += (try await taking?.value) ?? []
                if isWith { time.with.append(costs) } else { time.without.append(costs) }
                invocation.console.note("\(label) \(costs.summary)")
            }
        }
        try await workers.stop()
        return time
    }

    /// Takes samples ten times as often as they are due, until cancelled; how long each took, in milliseconds.
    private func takeOften() async throws -> [Double] {
        let connection = try await invocation.connect("load-samples")
        var times: [Double] = []
        while !Task.isCancelled {
            do {
                try await connection.execute("delete from millrace.sample_fresh where at > now() - interval '20 s'")
                let began = ContinuousClock.now
                _ = try await Queue.takeSample(on: connection)
                times.append(began.duration(to: .now) / .milliseconds(1))
            } catch {
                // The turn is over: what was cut off counts for nothing.
                guard Task.isCancelled else { throw error }
            }
            try? await Task.sleep(for: .seconds(10 / Self.haste))
        }
        await connection.close()
        return times
    }

    private static let off: SQL = """
        insert into millrace.setting (name, value) values ('samples', 'off') on conflict (name) do update set value = 'off'
        """
    private static let on: SQL = "delete from millrace.setting where name = 'samples'"
}
