import CommandKit
import LoadKit
import Postgres
import Synchronization

/// The primary crashes in the middle of check-ins, armings and alarms, and its standby takes over.
struct FailoverScenario: Sendable {
    let invocation: Invocation

    /// The answers that callers got, with the database's values.
    private struct Answers: Sendable {
        /// By person, the expiries.
        var checkIns: [String: [Double]] = [:]
        var armed: [String] = []
        /// Nobody knows whether these came through.
        var unanswered = 0
    }

    private final class Notes: Sendable {
        private let answers = Mutex(Answers())
        var all: Answers { answers.withLock { $0 } }
        func note(_ change: (inout Answers) -> Void) { answers.withLock { change(&$0) } }
    }

    private struct Losses: Sendable {
        var checkIns = 0
        var armings = 0
    }

    /// More people than calls: nobody checks in twice, because that would hide a loss.
    private static let regulars = 6000
    private static let newcomers = 5000

    func run() async throws -> ExitCode {
        let parsed = invocation.parsed
        let mode = parsed.string("mode").flatMap { Failover.Mode(rawValue: $0) } ?? .synchronous
        var plan = StrikeWorld.Plan()
        plan.failover = mode
        plan.lease = parsed.duration("lease") ?? plan.lease
        let world = try StrikeWorld(invocation, plan)
        if parsed.isOn("keep") { Scratch.keep(world.directory, invocation) }
        try await world.open()
        world.startWorkers()
        let (judge, answers, losses) = try await play(in: world)
        let problems = try await world.stopWorkers()
        return report(mode, judge, answers, losses, problems)
    }

    private func play(in world: StrikeWorld) async throws -> (StrikeJudge, Answers, Losses) {
        guard let failover = world.failover else { throw Failure("there is no standby") }
        let people = invocation.parsed.integer("people") ?? 200
        let wave = StrikeWave(number: 1, people: people, wait: 4)
        let office = try await world.connect()
        try await world.settle(on: office)
        try await fill(on: office)
        var judge = StrikeJudge()
        judge.missed = wave.missed
        // Over twenty seconds; the primary goes in their middle.
        judge.due = try await wave.fill(lead: 3, spread: 20 / Double(people), on: office)
        let (due, addresses) = (judge.due, try await wave.answering(on: office))
        await office.close()
        let notes = Notes()
        async let seen = wave.checkIn(due, in: world)
        let answering = Task { try await wave.answer(addresses, in: world) }
        defer { answering.cancel() }
        let until = MachineClock.now() + 30
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<3 {
                group.addTask {
                    try await call(in: world, until: until) { connection, turn throws(PostgresError) in
                        let person = "regular-\((turn * 3 + caller) % Self.regulars)"
                        let expiry = try await Self.number(
                            "select extract(epoch from millrace.check_in($1, actor => $1))::float8", person, connection)
                        notes.note { $0.checkIns[person, default: []].append(expiry) }
                    } failed: {
                        notes.note { $0.unanswered += 1 }
                    }
                }
            }
            group.addTask {
                try await call(in: world, until: until) { connection, turn throws(PostgresError) in
                    guard turn < Self.newcomers else { return }
                    let person = "newcomer-\(turn)"
                    _ = try await Self.number(
                        "select extract(epoch from millrace.check_in_arm($1, warnings => '{}', actor => $1))::float8",
                        person, connection)
                    notes.note { $0.armed.append(person) }
                } failed: {
                    notes.note { $0.unanswered += 1 }
                }
            }
            group.addTask {
                try await Task.sleep(for: .seconds(13))
                _ = try await failover.strike()
            }
            try await group.waitForAll()
        }
        judge.seen = try await seen
        judge.tablesRemember = failover.mode == .synchronous
        let after = try await world.connect()
        // What an asynchronous primary has lost, for instance an answer, cannot come back.
        let patience = Duration.seconds(failover.mode == .synchronous ? 180 : 45)
        _ = try await Patience.waited(patience, every: .milliseconds(100)) { try await wave.isAtRest(on: after) }
        try await judge.read(wave.stem, on: after)
        let given = notes.all
        let losses = try await count(given, on: after)
        await after.close()
        judge.entries = world.provider.entries.filter { judge.places[$0.to] != nil }
        return (judge, given, losses)
    }

    /// The people who check in all the time, and those who are armed for the first time.
    private func fill(on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            with people as (
                select 'regular-' || g as person from generate_series(0, $1::int - 1) g union all
                select 'newcomer-' || g from generate_series(0, $2::int - 1) g
            ), watches as (
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select person, '1 hour', '5 min', '{}', 'UTC', 'armed', now(), now() + interval '1 hour', now() + interval '1 hour', now()
                  from people where person like 'regular-%'
            ), contacts as (
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select person, person || '-one', 1, '1 hour', now() from people
            )
            insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
            select gen_random_uuid(), person, person || '-one', 'mail', person || '@load.invalid', now() from people
            """, [.int4(Int32(Self.regulars)), .int4(Int32(Self.newcomers))], deadline: .seconds(120))
    }

    private static func number(
        _ sql: SQL, _ person: String, _ connection: Connection
    ) async throws(PostgresError) -> Double {
        try await connection.double(sql, [.text(person)], deadline: .seconds(10))
    }

    /// Fifty a second, with a new connection whenever the last one is lost.
    private func call(
        in world: StrikeWorld, until end: Double,
        _ body: @escaping @Sendable (Connection, Int) async throws(PostgresError) -> Void,
        failed: @escaping @Sendable () -> Void
    ) async throws {
        var connection = try await world.connect("strike-caller")
        var turn = 0
        while MachineClock.now() < end {
            do throws(PostgresError) {
                try await body(connection, turn)
            } catch {
                failed()
                await connection.close()
                connection = try await world.connect("strike-caller")
            }
            turn += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        await connection.close()
    }

    /// Counts what was answered and is gone now.
    private func count(_ answers: Answers, on connection: Connection) async throws(PostgresError) -> Losses {
        let kept = try await connection.query(
            "select person, extract(epoch from expires_at)::float8 from millrace.watch where person like 'regular-%' or person like 'newcomer-%'",
            deadline: .seconds(60)
        ) { row throws(PostgresError) in (try row.string(0), try row.double(1)) }
        let expiries = Dictionary(kept) { first, _ in first }
        var losses = Losses()
        for (person, given) in answers.checkIns {
            // Microseconds, as far as a double holds them.
            losses.checkIns += given.count { $0 > (expiries[person] ?? 0) + 0.00001 }
        }
        losses.armings = answers.armed.count { expiries[$0] == nil }
        return losses
    }

    private func report(
        _ mode: Failover.Mode, _ judge: StrikeJudge, _ answers: Answers, _ losses: Losses, _ problems: [String]
    ) -> ExitCode {
        let verdict = judge.check()
        var findings = verdict.findings + problems.map { .init(rule: "workers end well", detail: $0) }
        if losses.checkIns > 0 {
            findings.append(.init(rule: "a check-in that was answered is kept", detail: "\(losses.checkIns) are not"))
        }
        if losses.armings > 0 {
            findings.append(.init(rule: "an arming that was answered is kept", detail: "\(losses.armings) are not"))
        }
        // A person who was armed before and missed a check-in must be alarmed about, whatever was lost.
        let never: Set<String> = [
            "every missed check-in raises an alarm", "every contact of a step is told", "no alarm before its time",
            "workers end well",
        ]
        let violated = findings.filter { mode == .synchronous || never.contains($0.rule) }
        let lost = findings.filter { mode == .asynchronous && !never.contains($0.rule) }
        let calls = answers.checkIns.values.reduce(0) { $0 + $1.count }
        let console = invocation.console
        func list(_ findings: [StrikeJudge.Finding]) -> JSONValue {
            .array(findings.prefix(1000).map { ["rule": .string($0.rule), "detail": .string($0.detail)] })
        }
        console.show([
            "scenario": "checkins-failover", "mode": .string(mode.rawValue), "alarms": .int(verdict.alarms),
            "notices": .int(verdict.notices), "duplicates": .int(verdict.duplicates),
            "latest_s": .double(verdict.latest), "check_ins_answered": .int(calls),
            "check_ins_lost": .int(losses.checkIns), "armings_answered": .int(answers.armed.count),
            "armings_lost": .int(losses.armings), "without_answer": .int(answers.unanswered),
            "violated": list(violated),
            "lost": list(lost),
        ]) {
            console.print(
                "\(Humane.count(verdict.alarms)) alarms, \(Humane.count(verdict.notices)) notices taken by the provider, \(Humane.count(verdict.duplicates)) of them duplicates, the latest first one \(Humane.decimal(verdict.latest, places: 2)) s after its expiry"
            )
            console.print(
                "\(Humane.count(calls)) check-ins answered, \(Humane.count(losses.checkIns)) lost; \(Humane.count(answers.armed.count)) armings answered, \(Humane.count(losses.armings)) lost; \(Humane.count(answers.unanswered)) calls without an answer"
            )
            for (title, found) in [("VIOLATED", violated), ("lost with the asynchronous primary", lost)] {
                for (rule, all) in Dictionary(grouping: found, by: \.rule).sorted(by: { $0.key < $1.key }) {
                    console.print("\(title), \(Humane.count(all.count, "time")): \(rule)")
                    for one in all.prefix(3) { console.print("    \(one.detail)") }
                }
            }
            console.print(
                violated.isEmpty ? "every promise is kept" : "\(Humane.count(violated.count, "promise")) violated")
        }
        return violated.isEmpty ? .done : .failed
    }
}
