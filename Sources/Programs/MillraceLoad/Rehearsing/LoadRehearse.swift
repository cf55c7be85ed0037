import Encryption
import FoundationEssentials
import JSON
import LoadKit
import MillraceCommand
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    static let loadRehearse = scenario(
        "rehearse",
        summary: "Change handlers at random, and count which changes a rehearsal finds",
        discussion: """
            Ten handlers run jobs on the database, until each waits, is to be tried again, or has ended. Then their code is changed: \
            steps renamed, reordered, removed, added, other types, branches, arguments and waits, and on the other side changes that \
            jobs under way can bear. For each change a program with the changed handler is started and rehearsed on what is on \
            record. All changes of the first sort must be found, and none of the second named.
            """,
        flags: [
            .count("changes", 1...100_000, 500, "How many changes of each side."),
            .count("seed", 0...Int.max, 1, "Repeats a run."),
        ],
        examples: [Example("millrace load rehearse --strict", "500 changes of each side")]
    ) { invocation in
        try await RehearseScenario(invocation: invocation).run()
    }
}

private struct RehearseScenario: Sendable {
    let invocation: Invocation

    /// What came of the changes of one sort.
    private struct Tally {
        var made = 0
        var named = 0
    }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        try await RecordedJobs(invocation: invocation, connection: connection).make()
        var cases: [String: [RehearsalCase]] = [:]
        for handler in DescribedHandler.ten {
            let ids = try await connection.query(
                "select j.id from millrace.job j join millrace.kind k on k.id = j.kind where k.name = $1 order by 1",
                [.text(handler.kind)]
            ) { row throws(PostgresError) in try row.int(0) }
            cases[handler.kind] = try await Queue.rehearsalRows(ids, on: connection).map {
                try RehearsalCase($0, keys: .empty)
            }
        }
        await connection.close()
        let name = "rehearse-\(UInt64.random(in: 0 ... .max)).json"
        let path = FileManager.default.temporaryDirectory.appending(path: name)
        defer { try? FileManager.default.removeItem(at: path) }

        for handler in DescribedHandler.ten {
            let findings = try await findings(of: handler, cases[handler.kind] ?? [], path)
            if let first = findings.first {
                throw Failure("\(handler.kind) is named though nothing was changed: \(first.sentence)")
            }
        }
        invocation.console.note("recorded \(cases.values.reduce(0) { $0 + $1.count }) jobs; unchanged, none is named")

        var random = SeededChoices(seed: UInt64(invocation.count("seed")))
        var generators = DescribedHandler.ten.map { Self.generator($0, cases[$0.kind] ?? []) }
        var tallies: [HandlerChange.Sort: Tally] = [:]
        var wrong: [String] = []
        let wanted = invocation.count("changes")
        for sorts in [HandlerChange.Sort.incompatible, HandlerChange.Sort.harmless] {
            var made = 0
            var turn = 0
            while made < wanted {
                let sort = sorts[turn % sorts.count]
                turn += 1
                let index = Int.random(in: generators.indices, using: &random)
                guard let change = generators[index].change(sort, using: &random) else { continue }
                made += 1
                let findings = try await findings(of: change.handler, cases[change.handler.kind] ?? [], path)
                tallies[sort, default: Tally()].made += 1
                if !findings.isEmpty { tallies[sort, default: Tally()].named += 1 }
                if findings.isEmpty != sort.isHarmless {
                    let said = findings.first.map { ": \($0.sentence)" } ?? ""
                    wrong.append("\(sort.rawValue) in \(change.handler.kind)\(said)")
                }
                if made.isMultiple(of: 100) { invocation.console.note("\(made) of \(wanted) changes") }
            }
        }
        return report(tallies, wrong)
    }

    private static func generator(_ handler: DescribedHandler, _ cases: [RehearsalCase]) -> ChangeGenerator {
        var awaited: Set<String> = []
        for one in cases {
            if case .waits(let wait) = one.job.place { awaited.insert(wait.step) }
        }
        return ChangeGenerator(handler, recorded: Set(cases.flatMap { $0.job.steps.map(\.name) }), awaited: awaited)
    }

    /// What the first job that is named shows, of a program with this handler in place of its kind's.
    private func findings(
        of handler: DescribedHandler, _ cases: [RehearsalCase], _ path: URL
    ) async throws -> [RehearsalFinding] {
        let all = DescribedHandler.ten.map { $0.kind == handler.kind ? handler : $0 }
        try JSONEncoder().encode(all).write(to: path)
        let build = RehearsedBuild(
            RehearsedBuild.Start(program: "/proc/self/exe", environment: [DescribedWorker.variable: path.path]))
        for one in cases {
            let found = try await build.rehearse(one) ?? []
            if !found.isEmpty {
                await build.close()
                return found
            }
        }
        await build.close()
        return []
    }

    private func report(_ tallies: [HandlerChange.Sort: Tally], _ wrong: [String]) -> ExitCode {
        func sum(_ sorts: [HandlerChange.Sort]) -> (made: Int, named: Int) {
            sorts.reduce(into: (0, 0)) { sum, sort in
                sum.0 += tallies[sort]?.made ?? 0
                sum.1 += tallies[sort]?.named ?? 0
            }
        }
        let bad = sum(HandlerChange.Sort.incompatible)
        let good = sum(HandlerChange.Sort.harmless)
        var table = Table([.init("change"), .init("made", .trailing), .init("named", .trailing)])
        for sort in HandlerChange.Sort.allCases {
            guard let tally = tallies[sort] else { continue }
            table.add([.init(sort.rawValue), .init("\(tally.made)"), .init("\(tally.named)")])
        }
        if invocation.console.format == .human { invocation.console.print(table) }
        for line in wrong.prefix(20) { invocation.console.warning(line) }
        let share = 100 * Double(bad.named) / Double(max(1, bad.made))
        return invocation.report(
            "rehearse",
            [
                .atLeast("incompatible changes found", 99, measured: share, unit: "%"),
                .atMost("harmless changes named", 0, measured: Double(good.named), unit: ""),
            ],
            figures: HandlerChange.Sort.allCases.compactMap { sort in
                tallies[sort].map { (sort.rawValue, ["made": .int($0.made), "named": .int($0.named)]) }
            })
    }
}

/// Jobs of the ten handlers, each brought to a place of its own on a real database.
private struct RecordedJobs: Sendable {
    let invocation: Invocation
    let connection: Connection

    private static let each = 8
    private static let rounds = 3

    func make() async throws {
        try await connection.execute(
            """
            select count(millrace.enqueue(k.kind, jsonb_build_object('order', 1000 * k.place + n, 'who', 'w' || k.place || n, 'other', 50000 + n, 'flag', n % 2 = 0)))
              from unnest($1) with ordinality k(kind, place) cross join generate_series(0, $2 - 1) n
            """, [.texts(DescribedHandler.ten.map(\.kind)), .int4(Int32(Self.each))])
        var options = JobWorker.Options(database: try invocation.connectionOptions(), name: "rehearse")
        options.slots = 20
        let child = Handler(kind: "rehearsed.child") { _, context in
            try context.result(5)
            return .done
        }
        let worker = JobWorker(options: options, handlers: DescribedWorker.handlers + [child], log: .silent)
        let running = Task { try await worker.run() }  // awaited below
        await worker.hasStarted()
        do {
            for round in 1...Self.rounds {
                try await settle()
                try await tell(round)
            }
            try await settle()
        } catch {
            worker.drain()
            _ = await running.result
            throw error
        }
        worker.drain()
        _ = try await running.value
    }

    /// Until nothing runs, and nothing is about to.
    private func settle() async throws {
        var quiet = 0
        let deadline = ContinuousClock.now + .seconds(120)
        while quiet < 5 {
            guard ContinuousClock.now < deadline else { throw Failure("the jobs to rehearse did not come to rest") }
            let busy = try await connection.int(
                """
                select (select count(*) from millrace.ready r join millrace.kind k on k.id = r.kind where k.name <> 'rehearsed.stuck')
                     + (select count(*) from millrace.lease) + (select count(*) from millrace.ending)
                     + (select count(*) from millrace.signal where state = 0)
                     + (select count(*) from millrace.timer where due < now() + interval '1 minute')
                """)
            quiet = busy == 0 ? quiet + 1 : 0
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Some of the waiting jobs hear what they wait for; one in four never does.
    private func tell(_ round: Int) async throws {
        let waits = try await connection.query(
            """
            select w.job, w.step, w.what, w.name, w.key, k.name from millrace.wait w join millrace.job j on j.id = w.job join millrace.kind k on k.id = j.kind
             where (j.args ->> 'order')::int % 4 >= $1
            """, [.int4(Int32(round))]
        ) { row throws(PostgresError) in
            (
                job: try row.int(0), step: try row.string(1), what: try row.int(2), name: row.optionalString(3),
                key: row.optionalString(4), kind: try row.string(5)
            )
        }
        for wait in waits {
            switch wait.what {
            case 2:
                let handler = DescribedHandler.ten.first { $0.kind == wait.kind }
                let part = ChangeGenerator.all(handler?.body ?? []).first { $0.name == wait.step }
                _ = try await Queue.signal(
                    wait.name ?? "", key: wait.key ?? "", payload: Array(Self.payload(part?.type ?? .int).utf8),
                    on: connection)
            case 4: _ = try await Queue.answer(wait.key ?? "", approved: true, by: nil, comment: nil, on: connection)
            case 1:
                _ = try await Queue.setStep(
                    wait.step, of: wait.job, to: Array("null".utf8), adds: false, on: connection)
            default: break
            }
        }
    }

    private static func payload(_ type: DescribedHandler.ValueType) -> String {
        switch type {
        case .int: "7"
        case .double: "7.5"
        case .text: "\"seven\""
        case .list: "[7, 8]"
        case .pair, .widerPair: "{\"a\": 7, \"b\": \"b\"}"
        case .needyPair: "{\"a\": 7, \"b\": \"b\", \"c\": 1}"
        }
    }
}
