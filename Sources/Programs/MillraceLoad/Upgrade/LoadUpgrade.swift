import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import RoomSchemas
import Schema
import Synchronization

extension Command {
    static let loadUpgrade = scenario(
        "upgrade",
        summary: "Rehearse an upgrade: old and new workers on one schema, under load",
        discussion: """
            Starts a Postgres of its own with the schema of an older millrace and two of its workers, and enqueues from then on. \
            Then this program migrates while they work, and two of its own workers join them; in turn one of the four is killed \
            with -9 and started again. At the end every job whose enqueue was answered must have ended once. An older program whose \
            rooms had no lines of their own puts rows into each room; the migration must leave them as they are. Exit 1 if not. \
            No room is added: a later program's database has the core alone, or what --rooms says. \
            Jobs with a limit come only after the migration: an older program may not know limits.
            """,
        flags: [
            .single("old", "PATH", environment: .none, help: "The older millrace program."),
            .single(
                "seconds", "N", .integer(4...3600), environment: .none, fallback: "30",
                help: "How long to enqueue, a third of it before the migration."),
            .toggle(
                "keep", environment: .none, help: "Keep the private Postgres and the workers' logs, and say where."),
            .single("rate", "N", .integer(1...2000), environment: .none, fallback: "300", help: "Jobs a second."),
            .single(
                "rooms", "LIST", environment: .none,
                help: "The rooms that the older program installs: names with commas, or all."),
        ],
        hasBars: false,
        examples: [Example("millrace load upgrade --old ./millrace-of-last-week", "half a minute")]
    ) { invocation in
        guard let old = invocation.parsed.string("old") else {
            throw Failure(.misused, "which older program?", hint: "pass --old with the path of a millrace")
        }
        guard access(old, X_OK) == 0 else {
            throw Failure(.misused, "--old: there is no program that can be run at \(old)")
        }
        return try await UpgradeScenario(invocation: invocation, old: old).run()
    }
}

/// The producer's answers, and the workers that were seen.
private final class UpgradeTally: Sendable {
    struct State {
        var ids: Set<Int64> = []
        var refused: [String: Int] = [:]
        var names: [Int64: String] = [:]
        var migrated: Double?
        var newHaveEnded = false
        var rooms = RoomRows.Comparison()
    }

    private let state = Mutex(State())

    var newHaveEnded: Bool { state.withLock { $0.newHaveEnded } }

    func withLock<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state)
            return value
        }
    }
}

private struct UpgradeScenario: Sendable {
    let invocation: Invocation
    let old: String

    func run() async throws -> ExitCode {
        let directory = try Scratch.directory("upgrade")
        let kept = KeptWorkers(directory: directory)
        // Four complete workers, each with all rooms.
        let cluster = try Scratch.cluster(directory + "/pg", invocation, settings: ["max_connections": "200"])
        if invocation.parsed.isOn("keep") { Scratch.keep(directory, invocation) }
        try await cluster.open()
        let options = ConnectionOptions(location: cluster.url(), applicationName: "upgrade")
        var environment = invocation.environment.filter { !$0.key.hasPrefix("MILLRACE_") && !$0.key.hasPrefix("PG") }
        environment["DATABASE_URL"] = cluster.url()
        environment["MILLRACE_LISTEN"] = "off"
        try await migrateOld(environment, log: directory + "/migrate.log")
        let office = try await Connection.open(options, name: "upgrade")
        let before = try await Queue.schemaState(on: office).version
        let tally = UpgradeTally()
        let hasEachRoom = before < Schema.core.migrations.first?.number ?? 0  // there was one line, with every room
        if hasEachRoom {
            let refused = try await RoomRows.fill(on: office)
            tally.withLock { $0.rooms.findings = refused }
        }
        for name in ["old-1", "old-2"] {
            kept.keep(
                name, program: old, arguments: ["worker", "--practice", "--name", name, "--slots", "20"],
                environment: environment)
        }
        let seconds = invocation.parsed.integer("seconds") ?? 30
        let start = ContinuousClock.now
        let end = start + .seconds(seconds)
        let (own, all) = (environment, ["old-1", "old-2", "new-1", "new-2"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await produce(into: tally, options, until: end) }
            group.addTask { try await watch(tally, options, until: end) }
            group.addTask {
                try await Task.sleep(until: start + .seconds(seconds) / 3, clock: .continuous)
                let connection = try await Connection.open(options, name: "upgrade")
                if hasEachRoom { try await RoomRows.keep(on: connection) }
                _ = try await Migrator(rooms: RoomSchemas.all, adoption: RoomSchemas.adoption).migrate(on: connection)
                if hasEachRoom {
                    let rooms = try await RoomRows.compare(on: connection)
                    tally.withLock { $0.rooms.add(rooms) }
                }
                try await connection.execute(#"select millrace.limit_set('key', 'upgrade.*', '{"concurrency": 2}')"#)
                let now = try await Self.now(on: connection)
                tally.withLock { $0.migrated = now }
                await connection.close()
                for name in ["new-1", "new-2"] {
                    kept.keep(
                        name, arguments: ["worker", "--practice", "--name", name, "--slots", "20"], environment: own)
                }
                var turn = 0
                while ContinuousClock.now + .seconds(2) < end {
                    try await Task.sleep(for: .seconds(2))
                    if let pid = kept.pid(of: all[turn % 4]) { kill(pid, SIGKILL) }
                    turn += 1
                }
            }
            try await group.waitForAll()
        }
        try await settle(tally, on: office)
        let problems = try await kept.stop()
        let code = try await judge(tally, before: before, problems: problems, on: office)
        await office.close()
        return code
    }

    private func migrateOld(_ environment: [String: String], log path: String) async throws {
        let rooms = invocation.parsed.string("rooms").map { ["--rooms", $0] } ?? []
        let migrate = try StartedProcess(
            old, ["migrate"] + rooms, environment: environment, log: path, program: old)
        guard await migrate.end(nil) == 0 else { throw Failure("\(old) migrate did not end well: \(migrate.said)") }
    }

    private static func now(on connection: Connection) async throws(PostgresError) -> Double {
        try await connection.double("select extract(epoch from clock_timestamp())::float8")
    }

    private static let shapes: [(kind: String, args: String)] = [
        ("practice.nothing", "{}"), ("practice.sleep", #"{"ms": 30}"#), ("practice.nothing", "{}"),
        ("practice.fail", #"{"times": 1}"#), ("practice.nothing", "{}"),
    ]

    /// Each call commits on its own: what was answered must be done, and refusals are counted and reported.
    private func produce(
        into tally: UpgradeTally, _ options: ConnectionOptions, until end: ContinuousClock.Instant
    ) async throws {
        let rate = invocation.parsed.integer("rate") ?? 300
        let connection = try await Connection.open(options, name: "upgrade-producer")
        let plain: SQL = "select millrace.enqueue($1, $2::jsonb)"
        let limited: SQL = "select millrace.enqueue($1, $2::jsonb, limit_key => 'upgrade.key')"
        let start = ContinuousClock.now
        var made = 0
        // On a busy machine longer than said: until the new workers have taken a share.
        while ContinuousClock.now < end || (!tally.newHaveEnded && ContinuousClock.now < end + .seconds(120)) {
            let ahead = Double(made) / Double(rate) - start.duration(to: .now) / .seconds(1)
            if ahead > 0 { try await Task.sleep(for: .seconds(ahead)) }
            let shape = Self.shapes[made % Self.shapes.count]
            let isLimited = made % 4 == 3 && tally.withLock { $0.migrated != nil }
            made += 1
            do throws(PostgresError) {
                let id = try await connection.query(
                    isLimited ? limited : plain,
                    [.text(shape.kind), .text(shape.args)]
                ) { row throws(PostgresError) in try row.int(0) }.first
                if let id { tally.withLock { $0.ids.formUnion([id]) } }
            } catch {
                guard case .server(let refusal) = error else { throw error }
                tally.withLock { $0.refused["\(refusal.sqlState) \(refusal.message)", default: 0] += 1 }
            }
        }
        await connection.close()
    }

    /// Which worker opened which session, because a session's row goes with its worker; and whether a new worker has ended a job.
    private func watch(
        _ tally: UpgradeTally, _ options: ConnectionOptions, until end: ContinuousClock.Instant
    ) async throws {
        let connection = try await Connection.open(options, name: "upgrade-watch")
        while ContinuousClock.now < end || (!tally.newHaveEnded && ContinuousClock.now < end + .seconds(120)) {
            let found = try await connection.query(
                """
                select s.id, s.name, exists (select from millrace.history h where h.session = s.id and h.outcome <= 3)
                  from millrace.session s
                """
            ) { row throws(PostgresError) in (try row.int(0), try row.string(1), try row.bool(2)) }
            tally.withLock { tally in
                for (id, name, hasEnded) in found {
                    tally.names[id] = name
                    if hasEnded, name.hasPrefix("new") { tally.newHaveEnded = true }
                }
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        await connection.close()
    }

    private func settle(_ tally: UpgradeTally, on connection: Connection) async throws {
        // What is left when the time is over is found by the judge.
        _ = try await Patience.waited(.seconds(120), every: .milliseconds(100)) {
            guard try await connection.int("select count(*) from millrace.timer") == 0 else { return false }
            return try await Queue.outstanding(on: connection, kinds: Array(Set(Self.shapes.map(\.kind)))) == 0
        }
    }

    private func judge(
        _ tally: UpgradeTally, before: Int, problems: [String], on connection: Connection
    ) async throws -> ExitCode {
        let runs = try await connection.query(
            "select id, session, outcome, extract(epoch from finished)::float8 from millrace.history",
            deadline: .seconds(60)
        ) { row throws(PostgresError) in
            (id: try row.int(0), session: try row.int(1), outcome: try row.int(2), finished: try row.double(3))
        }
        let after = try await Queue.schemaState(on: connection).version
        let told = tally.withLock { $0 }
        let ends = Dictionary(grouping: runs.filter { $0.outcome <= 3 && told.ids.contains($0.id) }, by: \.id)
        let lost = told.ids.filter { ends[$0]?.contains { $0.outcome == 1 } != true }
        let doubled = ends.filter { $0.value.count > 1 }
        func ended(_ prefix: String, afterwards: Bool) -> Int {
            ends.values.joined().count { run in
                told.names[run.session]?.hasPrefix(prefix) == true
                    && (run.finished > told.migrated ?? .infinity) == afterwards
            }
        }
        let shares = [
            ("by old workers before the migration", ended("old", afterwards: false)),
            ("by old workers after it", ended("old", afterwards: true)),
            ("by new workers", ended("new", afterwards: true)),
        ]
        let rescued = runs.count { $0.outcome == 7 }
        var findings = problems + told.rooms.findings
        if !lost.isEmpty {
            findings.append("\(Humane.count(lost.count, "job")) did not succeed, the first is \(lost.min() ?? 0)")
        }
        if !doubled.isEmpty { findings.append("\(Humane.count(doubled.count, "job")) ended twice") }
        for (what, count) in shares where count == 0 { findings.append("none ended \(what)") }
        invocation.console.show([
            "scenario": "upgrade", "schema": [.init(before), .init(after)], "jobs": .init(told.ids.count),
            "lost": .init(lost.count), "ended_twice": .init(doubled.count), "runs_lost_with_a_worker": .init(rescued),
            "ended": .object(shares.map { .init(key: $0.0, value: .init($0.1)) }),
            "refused": .object(
                told.refused.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .init($0.value)) }),
            "room_tables": .init(told.rooms.tables), "room_rows": .init(told.rooms.rows),
            "findings": .array(findings.map { .string($0) }),
        ]) {
            let console = invocation.console
            console.print("schema \(before) → \(after), \(Humane.count(told.ids.count)) jobs committed")
            for (what, count) in shares { console.print("ended \(what): \(Humane.count(count))") }
            console.print("runs lost with a killed worker: \(Humane.count(rescued))")
            if told.rooms.tables > 0 {
                let (rows, tables) = (Humane.count(told.rooms.rows), Humane.count(told.rooms.tables))
                console.print("rooms: \(rows) rows in \(tables) tables compared")
            }
            for (what, count) in told.refused.sorted(by: { $0.key < $1.key }) {
                console.print("refused to the app, \(Humane.count(count, "time")): \(what)")
            }
            console.print(findings.isEmpty ? "nothing lost, nothing twice" : findings.joined(separator: "\n"))
        }
        return findings.isEmpty ? .done : .failed
    }
}
