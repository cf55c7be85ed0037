package import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadHostile = scenario(
        "hostile",
        summary: "Call every door of a client with random and hostile arguments, beside another tenant's load",
        discussion: """
            A tenant's jobs come at a steady rate: first alone, then beside logins with the client's role. Between \
            the two, each parameter of each function that a client may call takes each extreme value of its type. The \
            logins call the same functions by chance, with sizes up to 60 megabytes, deep JSON, look-alike names, \
            infinite times and forged claims. The tenant's jobs must start nearly as soon as before, the worker must \
            stay small, no process of the server may end, and every error must say of what kind it is. Needs a \
            database of its own and a superuser, who creates the role of the logins and removes it.
            """,
        flags: [
            .count("minutes", 1...1440, 30, "How long to call."),
            .count("seconds", 1...86_400, "How long, instead of --minutes."),
            .count("rate", 1...5000, 100, "The tenant's jobs a second."),
            .count("callers", 1...64, 2, "Hostile logins."),
            Setting.slots.flag,
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load hostile", "half an hour"), Example("millrace load hostile --minutes 2", "a look"),
        ]
    ) { invocation in
        try await HostileScenario(invocation: invocation).run()
    }
}

private struct HostileScenario: Sendable {
    let invocation: Invocation

    private var rate: Int { invocation.count("rate") }
    private var span: Duration { invocation.span }
    private var calm: Duration { min(span, .seconds(30)) }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        let role = "hostile_\(UInt32.random(in: 1...UInt32.max))"
        try await make(role, on: connection)
        // The calls set claims, as a gateway does.
        let isNewlyTrusted = try await connection.truth("select millrace.trust_claims(session_user)")
        let result: Result<ExitCode, any Error>
        do {
            result = .success(try await play(as: role, on: connection))
        } catch {
            result = .failure(error)
        }
        if isNewlyTrusted { try await connection.execute("select millrace.distrust_claims(session_user)") }
        try await connection.execute(
            "delete from millrace.setting where name = 'role_client' and value = $1", [.text(role)])
        try await connection.execute("delete from millrace.client_grant where role = $1", [.text(role)])
        try await connection.execute(
            "select set_config('millrace.hostile', $1, false)", [.text(role)])
        try await connection.run(
            script: """
                do $$ begin
                    execute format('drop owned by %I', current_setting('millrace.hostile'));
                    execute format('drop role %I', current_setting('millrace.hostile'));
                end $$
                """)
        await connection.close()
        return try result.get()
    }

    /// A role that a migration gives the client's doors, and that speaks for people: its calls are to get as far as they can.
    private func make(_ role: String, on connection: Connection) async throws {
        try await connection.execute("select set_config('millrace.hostile', $1, false)", [.text(role)])
        try await connection.run(
            script: "do $$ begin execute format('create role %I nologin', current_setting('millrace.hostile')); end $$")
        do {
            _ = try await Migrator.ofAllRooms(roles: [("client", role)]).migrate(on: connection)
        } catch {
            throw Failure("\(error)")
        }
        try await connection.execute(
            """
            select millrace.grant_enqueue($1, 'hostile.kind'), millrace.grant_enqueue($1, 'mail.send'), millrace.grant_publish($1, 'com.example.hostile'),
                   millrace.grant_enqueue($1, 'document.receive')
            """, [.text(role)])
    }

    private func play(as role: String, on connection: Connection) async throws -> ExitCode {
        let began = try await started(connection)
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        let calm = rate * Int(calm / .seconds(1))
        let hostile = rate * Int(span / .seconds(1))
        let starts = try Starts(path: workers.marksPath, jobs: calm + hostile)
        let pickUp = PickUp(
            invocation, starts: starts, perSecond: rate,
            by: "select millrace.enqueue('practice.mark', $1, queue => 'load.calm', tenant => 'calm')")
        let before = try await pickUp.p99(jobs: calm)
        invocation.console.note(
            "the tenant alone: p99 \(Humane.decimal(before, places: 2)) ms")
        let options = try invocation.connectionOptions()
        var tally = try await HostileCaller(options: options, role: role, seed: 0).callEach()
        invocation.console.note("each extreme of each parameter: \(tally.calls) calls; now by chance")
        let end = ContinuousClock.now + span
        let callers = invocation.count("callers")
        let during = try await withThrowingTaskGroup(of: HostileCaller.Tally.self) { group in
            for n in 0..<callers {
                group.addTask {
                    try await HostileCaller(options: options, role: role, seed: Double(n + 1) / 100).call(
                        until: end)
                }
            }
            let during = try await pickUp.p99(jobs: hostile, from: calm)
            for try await one in group { tally.add(one) }
            return during
        }
        let resident = workers.usage().mostResident
        let restarted = try await started(connection) != began
        try await workers.stop()
        return report(before, during, resident, restarted: restarted, tally)
    }

    private func started(_ connection: Connection) async throws(PostgresError) -> String {
        try await connection.text("select pg_postmaster_start_time()::text")
    }

    private func report(
        _ before: Double, _ during: Double, _ resident: Double, restarted: Bool, _ tally: HostileCaller.Tally
    ) -> ExitCode {
        for (what, fault) in tally.unclassified.sorted(by: { $0.value.count > $1.value.count }).prefix(20) {
            invocation.console.note("unclassified: \(what), \(fault.count) times, for example \(fault.example)")
        }
        return invocation.report(
            "hostile",
            [
                .atMost("the other tenant's p99 start", 3, measured: during / before, unit: "× calm"),
                .atMost("the worker's memory", 300, measured: resident, unit: "MB"),
                .atMost(
                    "processes of the server that ended", 0, measured: Double(tally.crashes + (restarted ? 1 : 0)),
                    unit: ""),
                .atMost(
                    "errors that do not say their kind", 0,
                    measured: Double(tally.unclassified.values.reduce(0) { $0 + $1.count }), unit: ""),
            ],
            figures: [
                ("calls", .int(tally.calls)), ("answered", .int(tally.answered)), ("timed_out", .int(tally.timedOut)),
                ("calm_p99_ms", .double(before)), ("hostile_p99_ms", .double(during)),
            ])
    }
}
