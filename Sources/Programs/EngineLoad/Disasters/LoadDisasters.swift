import Clusters
package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceQueues
import Postgres

extension Command {
    package static let loadDisasters = scenario(
        "disasters",
        summary: "Make each disaster of a Postgres around a queue, and see who names it",
        discussion: """
            On Postgres servers of its own, with two workers and jobs at a steady rate: makes what goes wrong around queues, one thing \
            after the other, and asks status and doctor until one of them names who or what it is. Measures how soon jobs begin before \
            and meanwhile, takes it back, and looks whether each job that was answered has begun. The disk is filled where this process \
            may mount one, and the clock moved where libfaketime is; else that line is left out, and said.
            """,
        flags: [
            .count("jobs", 10...10_000, 200, "For each pick-up that is measured."),
            .count("rate", 1...500, 40, "Jobs a second."),
            .toggle("short", environment: .none, help: "Fewer committers."),
            .single(
                "only", "LIST", environment: .none,
                help: "These disasters, separated by commas: \(Disaster.allCases.map(\.word).joined(separator: ", "))."),
        ],
        examples: [
            Example("millrace load disasters --strict", "all of them"),
            Example("millrace load disasters --only rows,migration --jobs 20", "two of them, shortly"),
        ]
    ) { invocation in
        try await DisasterScenario(invocation: invocation).run()
    }
}

struct DisasterScenario: Sendable {
    let invocation: Invocation

    private var jobs: Int { invocation.count("jobs") }
    private var rate: Double { Double(invocation.count("rate")) }
    private var isLong: Bool { !invocation.parsed.isOn("short") }

    private func chosen() throws -> [Disaster] {
        guard let list = invocation.parsed.string("only") else { return Disaster.allCases }
        return try list.split(separator: ",").map { word in
            guard let one = Disaster.allCases.first(where: { $0.word == word }) else {
                throw Failure(
                    .misused, "--only: there is no disaster \(word)",
                    hint: "they are: \(Disaster.allCases.map(\.word).joined(separator: ", "))")
            }
            return one
        }
    }

    func run() async throws -> ExitCode {
        let chosen = try chosen()
        let (directory, cluster) = try await Scratch.postgres(
            "disasters", invocation, settings: DisasterWorld.settings)
        let office = try await Connection.open(ConnectionOptions(location: cluster.url()), name: "load")
        let numbers = try await office.int("select mxid_age('1')")
        var outcomes: [DisasterOutcome] = []
        let inPlace = chosen.filter { ![.clock, .disk, .restored].contains($0) }
        if !inPlace.isEmpty {
            let world = try await DisasterWorld(invocation, directory: directory, cluster: cluster, isLong: isLong)
            for disaster in inPlace { outcomes.append(try await one(disaster, in: world)) }
            try await world.stop()
        }
        let made = try await office.int("select mxid_age('1')") - numbers
        await office.close()
        outcomes += try await DisasterElsewhere(
            invocation: invocation, directory: directory, cluster: cluster, isLong: isLong
        ).all(chosen) { try await one($0, in: $1, by: $2) }
        return report(outcomes, multixacts: made)
    }

    private func one(_ disaster: Disaster, in world: DisasterWorld) async throws -> DisasterOutcome {
        try await one(disaster, in: world) { try await DisasterMaker(world: world).make(disaster) }
    }

    private func one(
        _ disaster: Disaster, in world: DisasterWorld, by make: () async throws -> MadeDisaster
    ) async throws -> DisasterOutcome {
        invocation.console.note("\(disaster.rawValue) …")
        var outcome = DisasterOutcome(disaster: disaster)
        // The first call of all knows no plan and no connection yet.
        _ = try await world.pulse.beat(jobs: 5, perSecond: rate)
        outcome.calm = try await world.pulse.beat(jobs: jobs, perSecond: rate)
        let made = try await make()
        // Workers and callers meet it first, as in life.
        async let during = world.pulse.beat(jobs: disaster.isOutage ? 5 : 10, perSecond: rate)
        let watch = DisasterWatch(
            directory: world.directory, location: world.location, environment: invocation.environment)
        let answer = try await watch.ask(made, within: .seconds(15))
        (outcome.namedBy, outcome.seconds) = (answer?.by, answer?.seconds)
        (outcome.sentence, outcome.command) = (answer?.sentence, answer?.command)
        let first = try await during
        outcome.during = disaster.isOutage ? first : try await world.pulse.beat(jobs: jobs, perSecond: rate)
        try await made.undo()
        outcome.lost = try await world.pulse.lost(within: .seconds(60))
        return outcome
    }

    private func report(_ outcomes: [DisasterOutcome], multixacts: Int) -> ExitCode {
        let all = outcomes.filter { $0.skipped == nil }
        if invocation.console.format == .human {
            invocation.console.print(Self.table(outcomes))
            invocation.console.print()
            for one in outcomes {
                invocation.console.print(
                    "\(one.disaster.rawValue): " + (one.skipped ?? one.sentence ?? "nobody named it"))
                if let command = one.command { invocation.console.print("    \(command)") }
            }
            invocation.console.print()
        }
        let quick = all.filter { !$0.isQuick }.map(\.disaster.word)
        let unnamed = all.filter { !$0.isNamed }.map(\.disaster.word)
        func list(_ words: [String]) -> String { words.isEmpty ? "none" : words.joined(separator: ", ") }
        return invocation.report(
            "disasters",
            [
                Bar(
                    what: "disasters whose cause is not named within 10 s", bar: "none", measured: list(unnamed),
                    met: unnamed.isEmpty),
                .atMost(
                    "jobs that were answered and lost", 0, measured: Double(all.reduce(0) { $0 + $1.lost }), unit: ""),
                Bar(
                    what: "disasters beside outages, with a median pick-up above twice the calm one", bar: "none",
                    measured: list(quick), met: quick.isEmpty),
                .atMost("MultiXacts that all jobs together have made", 0, measured: Double(multixacts), unit: ""),
            ],
            figures: [
                ("multixacts", .int(multixacts)),
                ("disasters", .array(outcomes.map(\.json))),
            ])
    }

    private static func table(_ outcomes: [DisasterOutcome]) -> Table {
        var table = Table([
            .init("disaster", shrinks: true), .init("named by"), .init("after", .trailing),
            .init("calm p50/p99 ms", .trailing),
            .init("meanwhile", .trailing), .init("refused", .trailing), .init("lost", .trailing), .init(""),
        ])
        func times(_ result: DisasterPulse.Result?) -> String {
            guard let result, !result.waits.isEmpty else { return "" }
            return "\(Humane.decimal(result.p50, places: 1))/\(Humane.decimal(result.p99, places: 1))"
        }
        for one in outcomes {
            let verdict: Table.Cell =
                one.skipped != nil ? .init("not made", .dim) : one.isMet ? .init("met", .green) : .init("missed", .red)
            table.add([
                .init(one.disaster.rawValue), .init(one.namedBy ?? ""),
                .init(one.seconds.map { "\(Humane.decimal($0, places: 1)) s" } ?? ""), .init(times(one.calm)),
                .init(one.disaster.isOutage ? "outage" : times(one.during)), .init("\(one.during?.refused ?? 0)"),
                .init("\(one.lost)"), verdict,
            ])
        }
        return table
    }
}

extension DisasterOutcome {
    var json: JSONValue {
        func times(_ result: DisasterPulse.Result?) -> JSONValue {
            guard let result else { return .null }
            return [
                "offered": .int(result.offered), "refused": .int(result.refused), "p50_ms": .double(result.p50),
                "p99_ms": .double(result.p99),
            ]
        }
        return [
            "disaster": .string(disaster.word), "skipped": JSONValue(skipped), "named_by": JSONValue(namedBy),
            "seconds": seconds.map(JSONValue.double) ?? .null, "sentence": JSONValue(sentence),
            "command": JSONValue(command), "calm": times(calm), "meanwhile": times(during), "lost": .int(lost),
            "met": .bool(isMet),
        ]
    }
}
