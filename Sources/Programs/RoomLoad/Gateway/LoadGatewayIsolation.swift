package import CommandKit
import LoadKit
import Postgres
import Synchronization

extension Command {
    package static let loadGatewayIsolation = scenario(
        "gateway-isolation",
        summary: "Let many people call a gateway at random, and look for what is another's in every answer",
        discussion: """
            Plants documents, jobs, moods, hobbies, contacts, alarms, profiles, notices, letters and devices of people in families and \
            tenants. Everything planted carries its owner's mark, or has an id that is known, so a search of an answer's bytes finds \
            whose it is. Then each person calls functions, reads feeds and streams, sends offline batches, with ids, names and tenants \
            of others, with forged tokens, and with names of all functions of the schema and of Postgres that are not for apps. A model \
            says what each may see.
            """,
        flags: [
            .count("users", 20...9000, 200, "People, ten to a group."),
            .count("calls", 1...1_000_000, 2000, "Calls of each."),
            .count("seed", 0...1_000_000_000, 1, "Of the marks and of the choices."),
            .count("doors", 0...1_000_000, 1_000_000, "The most names to try that are not doors."),
            .single(
                "break", "NAME", .choice(IsolationBreak.allCases.map(\.rawValue)), environment: .none,
                help: "Remove this safeguard in the scenario's database; the search must notice it."),
        ],
        examples: [
            Example("millrace load gateway-isolation --strict", "200 people, 400,000 calls"),
            Example("millrace load gateway-isolation --users 40 --calls 100 --seed 7", "a look"),
        ]
    ) { invocation in
        try await GatewayIsolationScenario(invocation: invocation).run()
    }
}

struct GatewayIsolationScenario: Sendable {
    let invocation: Invocation

    func run() async throws -> ExitCode {
        let users = invocation.count("users")
        let calls = invocation.count("calls")
        let seed = invocation.count("seed")
        let connection = try await invocation.connect()
        let ground = try await GatewayGround.make(invocation, on: connection)
        if let name = invocation.parsed.string("break"), let broken = IsolationBreak(rawValue: name) {
            try await connection.run(script: broken.script)
        }
        let gateway = try await GatewayProcess.start(ground, environment: UnlimitedGateway.environment)
        var world = IsolationWorld(IsolationPeople(count: users, seed: UInt64(seed)), ground, port: gateway.port)
        invocation.console.note("seed \(seed); planting for \(Humane.count(users)) people")
        try await world.plant(on: connection)
        await connection.close()
        invocation.console.note("there are \(Humane.count(world.closed.count)) names that are not doors for apps")
        let doors = await world.tryDoors(most: invocation.count("doors"))
        let (began, console) = (ContinuousClock.now, invocation.console)
        let progress = Mutex((done: 0, tenths: Tenths()))
        let played = await world.play(calls: calls) { some in
            let done: Int? = progress.withLock { at in
                at.done += some
                return at.tenths.pass(at.done, of: users * calls) ? at.done : nil
            }
            if let done { console.note("\(Humane.count(done)) of \(Humane.count(users * calls)) calls") }
        }
        let seconds = began.duration(to: .now) / .seconds(1)
        guard gateway.isAlive else { throw Failure("the gateway ended: \(gateway.said)") }
        try await gateway.stop()
        return report(doors, played, seconds: seconds, seed: seed)
    }

    private func report(
        _ doors: IsolationJudge.Tally, _ played: IsolationJudge.Tally, seconds: Double, seed: Int
    ) -> ExitCode {
        var all = doors
        all.add(played)
        for fault in all.faults { invocation.console.note(fault) }
        func none(_ what: String, _ kinds: String...) -> Bar {
            .atMost(what, 0, measured: Double(kinds.reduce(0) { $0 + (all.byKind[$1] ?? 0) }), unit: "")
        }
        return invocation.report(
            "gateway-isolation",
            [
                none("answers with what is another tenant's or person's", "leak"),
                none("calls on strangers that were answered", "acted"),
                none("names of \(Humane.count(doors.calls)) that are not doors and were not 404", "door"),
                none("forged tokens that were taken", "token"),
                none("internal errors and lost answers", "internal", "lost"),
                .atLeast(
                    "share of answers with the caller's own: the search finds what is there", 0.1,
                    measured: Double(played.own) / Double(max(1, played.calls)), unit: ""),
            ],
            figures: [
                ("seed", .int(seed)), ("calls", .int(played.calls)), ("answered", .int(played.good)),
                ("refused", .int(played.refused)), ("own", .int(played.own)), ("shared", .int(played.shared)),
                ("doors", .int(doors.calls)), ("per_second", .double(Double(played.calls) / max(seconds, 0.001))),
                (
                    "by_call",
                    .object(played.byWhat.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .int($0.value)) })
                ), ("faults", JSONValue(all.faults)),
            ])
    }
}

/// A right without which answers hold what is another's.
enum IsolationBreak: String, CaseIterable {
    case documents, jobs, people

    var script: SQL {
        switch self {
        case .documents:
            """
            create or replace function millrace.document_sees(d millrace.document, me text, caller name) returns boolean language sql stable as 'select true'
            """
        case .jobs:
            """
            create or replace function millrace.may_see(the_owner text, the_tenant text, caller name) returns boolean language sql stable as 'select true'
            """
        case .people:
            """
            create or replace function millrace.acts_as_person(actor text, person text, caller name) returns void language sql as 'select null::void'
            """
        }
    }
}
