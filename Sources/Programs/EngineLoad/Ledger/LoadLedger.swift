package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization

extension Command {
    package static let loadLedger = scenario(
        "ledger",
        summary: "Prove that nothing is lost and nothing stale is accepted",
        discussion: """
            Starts a Postgres, a proxy, a pooler and four workers of its own and enqueues jobs of every shape: \
            plain, delayed, failing, snoozing, with steps, unique, limited, in flows, fanned out, cancelled, rolled \
            back, committed late, from a schedule; jobs that sleep, wait for signals, answers and children, and orders \
            that are undone. Meanwhile it kills and freezes workers, cuts and stalls \
            connections, drops their traffic, ends back ends, uses up all connections, holds locks and snapshots, \
            fills the disk and stops Postgres. Each run of a job writes what it does into a separate table. At the \
            end a checker compares that table, the producers' own record and history. Exit 1 if it finds a \
            difference. The seed repeats the choices, but not their timing. Needs up to 2 GB in /tmp for WAL, and \
            room for the tables.
            """,
        flags: [
            .count("minutes", 1...1440, 2, "How long to enqueue."),
            .count("faults", 0...100_000, "How many faults; 17 a minute if not given."),
            .repeated(
                "only", "FAULT", .choice(LedgerChaos.Kind.drawn.map(\.rawValue)), environment: .none,
                help: "Cause this fault only; may be given several times."),
            .count("rate", 1...5000, 600, "Jobs to enqueue a second."),
            .count("seed", 0...Int.max, "Repeats the choices of the run that printed this seed."),
            .single(
                "break", "NAME", .choice(LedgerBreak.allCases.map(\.rawValue)), environment: .none,
                help: "Remove this safeguard; the checker must notice it."),
            .single(
                "failover", "MODE", .choice(Failover.Mode.allCases.map(\.rawValue)), environment: .none,
                help:
                    "Instead of other faults: the primary of two Postgres servers crashes, and its standby is promoted."
            ),
            .toggle(
                "keep", environment: .none, help: "Keep the private Postgres and the workers' logs, and say where."),
        ],
        hasBars: false,
        examples: [
            Example("millrace load ledger", "two minutes"),
            Example("millrace load ledger --minutes 30 --faults 510", "half an hour, a million jobs"),
            Example("millrace load ledger --only disk --faults 5", "nothing but a full disk"),
            Example("millrace load ledger --break no-token-check", "see it fail"),
            Example("millrace load ledger --failover synchronous", "a standby takes over in the middle"),
        ]
    ) { invocation in
        try await LedgerScenario(invocation: invocation).run()
    }
}

private struct LedgerScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let parsed = invocation.parsed
        let minutes = invocation.count("minutes")
        let count = parsed.integer("faults") ?? minutes * 17
        let seed = parsed.integer("seed").map { UInt64($0) } ?? UInt64.random(in: 0...UInt64(Int.max))
        let world = try LedgerWorld(
            invocation, broken: broken,
            failover: parsed.string("failover").flatMap { Failover.Mode(rawValue: $0) })
        let keeps = parsed.isOn("keep")
        invocation.console.note("seed \(seed); \(minutes) min, \(count) faults, in \(world.directory)")
        if keeps { Scratch.keep(world.directory, invocation) }
        if !world.hasPooler, world.failover == nil {
            invocation.console.note("pgbouncer is not installed: no pooler stands between")
        }
        if world.disk == nil, world.failover == nil {
            invocation.console.note(
                "no file can be mounted as a disk here (that takes root and mkfs.ext4): none is filled")
        }
        do {
            try await world.open()
            let (checker, problems, chaos) = try await play(world, minutes: minutes, faults: count, seed: seed)
            await world.close(keep: keeps)
            let pause = chaos.promoted.map { promoted in
                (checker.runs.map(\.started).filter { $0 > promoted }.min() ?? .infinity) - promoted
            }
            return report(
                checker.check(), problems: problems, chaos: chaos, seed: seed, pause: pause,
                mayLose: world.failover?.mode == .asynchronous)
        } catch {
            await world.close(keep: keeps)
            throw error
        }
    }

    private func play(
        _ world: LedgerWorld, minutes: Int, faults: Int, seed: UInt64
    ) async throws -> (LedgerChecker, [String], LedgerChaos) {
        let office = try await world.office()
        var schedule = Schedule("ledger.tick", "*/2 * * * * *", kind: LedgerTick.kind)
        schedule.catchUp = .all(limit: 1000)
        _ = try await Queue.setSchedule(schedule, on: office)
        await office.close()
        world.startWorkers()
        let chaos = LedgerChaos(world: world, broken: broken, only: Set(invocation.parsed.list("only")))
        let numbers = LedgerNumbers()
        let signals = LedgerSignals()
        // Ends with the scenario, cancelled below.
        let answering = Task { await LedgerAnswerer(options: world.straight).run() }
        defer { answering.cancel() }
        let end = ContinuousClock.now + .seconds(minutes * 60)
        let rate = parsed("rate", 600)
        let live = invocation.console.live()
        let watching = Task {  // ends with the scenario, cancelled below
            var last = ContinuousClock.now - .seconds(60)
            while !Task.isCancelled {
                if let connection = try? await Connection.open(world.straight, name: "sessions") {
                    while !Task.isCancelled, (try? await world.noteSessions(on: connection)) != nil {
                        try? await Task.sleep(for: .milliseconds(250))
                        if last.duration(to: .now) > .seconds(10), ContinuousClock.now < end {
                            last = .now
                            live.update([
                                "\(Humane.duration(ContinuousClock.now.duration(to: end))) left, \(Humane.count(numbers.taken)) jobs, \(chaos.faults.count) faults"
                            ])
                        }
                    }
                    await connection.close()
                }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
        defer { watching.cancel() }
        var checker = LedgerChecker()
        checker.intents = try await withThrowingTaskGroup(of: [LedgerIntent].self) { group in
            for number in 0..<3 {
                let producer = LedgerProducer(
                    options: world.straight, rate: max(1, rate / 3), numbers: numbers, signals: signals)
                group.addTask { try await producer.run(seed: seed &+ UInt64(number) &+ 1, until: end) }
            }
            group.addTask {
                if let failover = world.failover {
                    try await Task.sleep(for: .seconds(minutes * 30))
                    try await chaos.failOver(failover)
                } else {
                    try await chaos.run(seed: seed, faults: faults, until: end)
                }
                return []
            }
            var all: [LedgerIntent] = []
            for try await part in group { all += part }
            return all
        }
        live.update([])
        let office2 = try await world.office()
        try await office2.execute("select millrace.schedule_remove('ledger.tick')")
        try await settle(world, on: office2, live: live)
        let problems = try await world.stopWorkers()
        checker.faults = chaos.faults
        checker.sessions = world.sessions
        checker.signals = signals.all
        try await load(&checker, on: office2)
        await office2.close()
        return (checker, problems, chaos)
    }

    private func parsed(_ flag: String, _ fallback: Int) -> Int { invocation.parsed.integer(flag) ?? fallback }

    private var broken: LedgerBreak? { invocation.parsed.string("break").flatMap { LedgerBreak(rawValue: $0) } }

    /// Until no work is left. If the rest does not shrink for five minutes it is lost, and the checker reports it; without a safeguard that
    /// is the expected result, and a shorter time is enough.
    private func settle(_ world: LedgerWorld, on connection: Connection, live: LiveRegion) async throws {
        let patience = Duration.seconds(broken == nil ? 300 : 40)
        var fewest = Int.max
        var since = ContinuousClock.now
        while since.duration(to: .now) < patience {
            let left =
                try await connection.int(
                    """
                    select (select count(*) from millrace.ready) + (select count(*) from millrace.parked)
                         + (select count(*) from millrace.timer) + (select count(*) from millrace.blocked)
                         + (select count(*) from millrace.unique_lock where next is not null)
                         + (select coalesce(sum(n), 0) from millrace.lease)
                    """)
            if left == 0 { break }
            if left < fewest { (fewest, since) = (left, .now) }
            live.update(["waiting for the last \(Humane.count(left, "job"))"])
            try await Task.sleep(for: .milliseconds(200))
        }
        live.update([])
    }

    private func load(_ checker: inout LedgerChecker, on connection: Connection) async throws {
        let patience = Duration.seconds(300)
        checker.entries = try await connection.query(
            "select job, token, what, extract(epoch from at)::float8, leased from ledger.entry", deadline: patience
        ) { row throws(PostgresError) in
            LedgerEntry(
                job: try row.int(0), token: LedgerToken(try row.string(1)) ?? LedgerToken(session: 0, number: 0),
                what: try row.string(2), at: try row.double(3), isLeased: try row.bool(4))
        }
        checker.runs = try await connection.query(
            """
            select id, session, number, extract(epoch from started)::float8, extract(epoch from finished)::float8, outcome, attempt
              from millrace.history
            """, deadline: patience
        ) { row throws(PostgresError) in
            LedgerRun(
                job: try row.int(0), token: LedgerToken(session: try row.int(1), number: try row.int(2)),
                started: try row.double(3), finished: try row.double(4), outcome: Int(try row.int(5)),
                attempt: Int(try row.int(6)))
        }
        checker.jobs = try await connection.query(
            """
            select j.id, k.name, (j.args ->> 'n')::bigint, j.unique_key, j.limit_key,
                   coalesce((select case h.outcome when 1 then 'succeeded' when 2 then 'cancelled' when 3 then 'dead' end
                               from millrace.history h where h.id = j.id and h.outcome <= 3 order by h.finished desc limit 1),
                            'unfinished'),
                   case when k.name in ('ledger.wait', 'ledger.order') then j.args::text end, coalesce(j.options ? 'undo', false)
              from millrace.job j join millrace.kind k on k.id = j.kind
             where k.name like 'ledger.%'
            """, deadline: patience
        ) { row throws(PostgresError) in
            let kind = try row.string(1)
            let args = Data((row.optionalString(6) ?? "").utf8)
            return LedgerJob(
                id: try row.int(0), kind: kind, n: try row.optionalInt(2).map { Int($0) },
                key: row.optionalString(3), limitKey: row.optionalString(4), state: try row.string(5),
                wait: kind == LedgerWait.kind ? try? JSONDecoder().decode(LedgerWait.self, from: args) : nil,
                order: kind == LedgerOrder.kind ? try? JSONDecoder().decode(LedgerOrder.self, from: args) : nil,
                isUndo: try row.bool(7))
        }
        checker.ticks = try await connection.query(
            "select extract(epoch from f.fire_at)::float8 from millrace.schedule_fires('ledger.tick', 1000000) f where f.job is not null"
        ) { row throws(PostgresError) in try row.double(0) }
    }

    private func report(
        _ verdict: LedgerChecker.Verdict, problems: [String], chaos: LedgerChaos, seed: UInt64, pause: Double?,
        mayLose: Bool
    ) -> ExitCode {
        let findings = verdict.findings + problems.map { LedgerChecker.Finding(rule: "workers end well", detail: $0) }
        let rules = Dictionary(grouping: findings, by: \.rule)
        func members(_ counts: [(String, Int)]) -> JSONValue {
            .object(counts.map { .init(key: $0.0, value: .init($0.1)) })
        }
        invocation.console.show([
            "scenario": "ledger", "seed": .string("\(seed)"), "faults": members(chaos.counts),
            "jobs": [
                "committed": .init(verdict.committed), "rolled_back": .init(verdict.rolledBack),
                "unknown": .init(verdict.unknown), "ended": members(verdict.ended.sorted { $0.key < $1.key }),
            ],
            "runs_beyond_the_first": members(verdict.again.sorted { $0.key < $1.key }),
            "first_run_after_promotion_s": pause.map { .double($0) } ?? .null,
            "effects_of_unaccepted_runs": .init(verdict.spentEffects),
            "runs_of_undone_claims": .init(verdict.undone),
            "findings": .array(findings.prefix(1000).map { ["rule": .string($0.rule), "detail": .string($0.detail)] }),
        ]) {
            let console = invocation.console
            console.print(
                "\(Humane.count(verdict.committed)) jobs committed, \(Humane.count(verdict.rolledBack)) rolled back, \(Humane.count(verdict.unknown)) with an unknown answer"
            )
            console.print("ended: \(Self.list(verdict.ended))")
            console.print("faults: \(chaos.counts.map { "\($0.1) \($0.0)" }.joined(separator: ", "))")
            console.print("runs beyond the first: \(Self.list(verdict.again))")
            console.print("effects of runs whose end was not accepted: \(Humane.count(verdict.spentEffects))")
            console.print("runs whose claim a crash of Postgres undid: \(Humane.count(verdict.undone))")
            if let pause {
                console.print(
                    "the first run began \(Humane.decimal(pause, places: 2)) s after the promotion (bar: 5 s)")
            }
            for (rule, found) in rules.sorted(by: { $0.key < $1.key }) {
                console.print(
                    "\(mayLose ? "lost with the asynchronous primary" : "VIOLATED"), \(Humane.count(found.count, "time")): \(rule)"
                )
                for one in found.prefix(5) { console.print("    \(one.detail)") }
            }
            console.print(findings.isEmpty ? "the checker finds nothing" : "\(Humane.count(findings.count, "finding"))")
        }
        return findings.isEmpty || mayLose ? .done : .failed
    }

    private static func list(_ counts: [String: Int]) -> String {
        counts.isEmpty
            ? "none"
            : counts.sorted { $0.key < $1.key }.map { "\(Humane.count($0.value)) \($0.key)" }.joined(separator: ", ")
    }
}
