package import CommandKit
import LoadKit
import Postgres

extension Command {
    package static let loadPeople = scenario(
        "people",
        summary: "Play random sequences of family, consent, erasure and check-in calls against a model of the rules",
        discussion: """
            Twenty people and an app's server make calls as a gateway does, each with its own claims. After every \
            call the database is compared with a model: who may do what, whose watch runs, who was asked how often. \
            Nothing is kept. Needs a database of its own, migrated with --test-clock, and a superuser, who takes on \
            the roles.
            """,
        flags: [
            .count("sequences", 1...1_000_000, 10_000, "How many sequences."),
            .count("steps", 1...1000, 60, "Calls in each sequence."),
            .count("seed", 0...1_000_000_000, 1, "The seed of the first sequence; the others follow from it."),
        ],
        examples: [
            Example("millrace load people", "10,000 sequences of 60 calls"),
            Example("millrace load people --sequences 1 --seed 4711", "one that failed, once more"),
        ]
    ) { invocation in
        try await PeopleScenario(invocation: invocation).run()
    }
}

private struct PeopleScenario {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        try await SchemaCheck.check(on: connection)
        try await checkPlace(connection)
        let seed = UInt64(invocation.count("seed"))
        let sequences = invocation.count("sequences")
        let steps = invocation.count("steps")
        let began = ContinuousClock.now
        var tally = PeopleWorld.Tally()
        let world = PeopleWorld(connection, name: "people_\(UInt32.random(in: 1...UInt32.max))")
        try await world.open()
        do {
            for n in 0..<sequences { try await world.play(seed: seed + UInt64(n), steps: steps, into: &tally) }
        } catch {
            try await world.close()
            throw error
        }
        try await world.close()
        await connection.close()
        for fault in tally.faults { invocation.console.note(fault) }
        return report(tally, began.duration(to: .now))
    }

    private func checkPlace(_ connection: Connection) async throws {
        let facts = try await connection.query(
            """
            select current_setting('is_superuser') = 'on', to_regclass('millrace.test_clock') is not null,
                   exists (select from millrace.family) or exists (select from millrace.watch) or exists (select from millrace.watch_contact)
            """
        ) { row throws(PostgresError) in (try row.bool(0), try row.bool(1), try row.bool(2)) }.first
        guard let facts, facts.0 else { throw Failure(.misused, "this needs a superuser, who takes on the roles") }
        guard facts.1 else {
            throw Failure(
                .misused, "this database has no clock that can be moved", hint: "millrace migrate --test-clock")
        }
        guard !facts.2 else {
            throw Failure(.conflict, "there are people in this database", hint: "use a database of its own")
        }
    }

    private func report(_ tally: PeopleWorld.Tally, _ took: Duration) -> ExitCode {
        func bar(_ what: String, _ kinds: [String]) -> Bar {
            .atMost(what, 0, measured: Double(kinds.reduce(0) { $0 + (tally.byWhat[$1] ?? 0) }), unit: "")
        }
        return invocation.report(
            "people",
            [
                bar("watches ended by another's act", ["watch"]),
                bar("reads of another's that were let through, or own that were refused", ["read"]),
                bar("questions beyond the limits", ["asked"]),
                bar("calls that were let through or refused against the rules", ["rule", "state"]),
                bar("told of an alarm, and not of its end, at an erasure", ["ending"]),
                bar("errors other than refusals", ["unclassified"]),
            ],
            figures: [
                ("sequences", .int(tally.sequences)), ("steps", .int(tally.steps)), ("refused", .int(tally.refused)),
                ("questions", .int(tally.asks)), ("alarms", .int(tally.alarms)), ("endings", .int(tally.endings)),
                ("seconds", .double(took / .seconds(1))),
            ])
    }
}
