import MillraceQueues
import Postgres

extension Command {
    static let moveTenant = Command(
        ["move", "tenant"],
        summary: "Move the waiting jobs of a tenant from one database to another",
        discussion: moving,
        arguments: [Argument("tenant", .one, help: "the tenant")],
        flags: [.from, .to, .holds, .batch],
        examples: [
            Example("millrace move tenant acme --from eu --to us", "take them there, and go on after a crash"),
            Example(
                "millrace move tenant acme --from eu --to us --hold", "all but the decision: it can still be undone"),
        ]
    ) { invocation in try await invocation.move(invocation.parsed.string("tenant") ?? "") }

    static let movePerson = Command(
        ["move", "person"],
        summary: "Move the waiting jobs of a person from one database to another",
        discussion: moving + " A person's jobs are those of the tenant person:NAME.",
        arguments: [Argument("person", .one, help: "the person")],
        flags: [.from, .to, .holds, .batch],
        examples: [Example("millrace move person ada --from eu --to us", "what Ada has waiting")]
    ) { invocation in try await invocation.move("person:" + (invocation.parsed.string("person") ?? "")) }

    static let moveUndo = Command(
        ["move", "undo"],
        summary: "Put the jobs of a move back, as long as it is not decided",
        discussion: """
            The jobs are where they were, at the end of their lines. The database that they were to go to need not be reachable; \
            run it again later to clean up there.
            """,
        arguments: [Argument("tenant", .one, help: "the tenant; person:NAME for a person")],
        flags: [.from, .to, .batch],
        examples: [Example("millrace move undo acme --from eu --to us", "as if nothing had been")]
    ) { invocation in try await invocation.undoMove() }

    static let moveList = Command(
        ["move", "list"],
        summary: "List moves, newest first, where the jobs leave",
        flags: [.toggle("open", environment: .none, help: "Only those that have not ended.")],
        examples: [Example("millrace move list --open", "what is on its way")]
    ) { invocation in try await invocation.listMoves() }

    private static let moving = """
        Each job moves exactly once, and gets a new number there. None of them runs while it is on its way. Jobs stay, and run where \
        they are, that have begun, wait for something, are waited for, hold a unique key, or are for what a room keeps, \
        such as a mail or a document. Send new jobs of the tenant to the \
        other database first: MILLRACE_ROUTES. A move that was cut off goes on when it is called again; until it is decided, millrace \
        move undo takes it back. It needs the logins that millrace migrate uses, and MILLRACE_DATABASES with both names.
        """
}

extension CommandFlag {
    fileprivate static let from = CommandFlag.single(
        "from", "NAME", environment: .none, help: "The database that the jobs leave, of MILLRACE_DATABASES.")
    fileprivate static let to = CommandFlag.single(
        "to", "NAME", environment: .none, help: "The database that they go to.")
    fileprivate static let holds = CommandFlag.toggle(
        "hold", environment: .none, help: "Stop before the decision; the next call without it decides.")
    fileprivate static let batch = CommandFlag.single(
        "batch", "N", .integer(1...5000), environment: .none, fallback: "500", help: "How many jobs a step takes.")
}

extension Invocation {
    fileprivate func move(_ tenant: String) async throws -> ExitCode {
        let (source, target) = try ends()
        let holds = parsed.isOn("hold")
        return try await between(source, target) { from, to in
            var move = JobMove(tenant: tenant, source: source.name, target: target.name, from: from, to: to)
            move.batch = parsed.integer("batch") ?? 500
            let report = try await said { try await move.run(holds: holds) }
            show(report, tenant, source.name, target.name)
            return .done
        }
    }

    fileprivate func undoMove() async throws -> ExitCode {
        let (source, target) = try ends()
        let tenant = parsed.string("tenant") ?? ""
        return try await SchemaCheck.withSchema(options(at: source.url)) { from in
            var there: Connection?
            do throws(PostgresError) {
                there = try await Connection.open(options(at: target.url), name: "millrace")
            } catch {
                console.warning("\(target.name) cannot be reached; run this again later to clean up there")
            }
            var move = JobMove(
                tenant: tenant, source: source.name, target: target.name, from: from, to: there ?? from)
            move.batch = parsed.integer("batch") ?? 500
            let reaches = there != nil
            let report = try await said { try await move.undo(reachesTarget: reaches) }
            await there?.close()
            show(report, tenant, source.name, target.name)
            return .done
        }
    }

    fileprivate func listMoves() async throws -> ExitCode {
        let several = settings.databases
        let places =
            several.isEmpty
            ? [(name: nil as String?, options: try connectionOptions())]
            : several.map { (name: $0.name as String?, options: options(at: $0.url)) }
        let onlyOpen = parsed.isOn("open")
        var rows: [(database: String?, move: MoveBooks.Departure)] = []
        for place in places {
            let found = try await SchemaCheck.withSchema(place.options) { connection in
                guard try await MoveBooks.exist(on: connection) else { return [MoveBooks.Departure]() }
                return try await MoveBooks.departures(of: nil, onlyOpen: onlyOpen, on: connection)
            }
            rows += found.map { (place.name, $0) }
        }
        var table = Table([
            Table.Column("from"), Table.Column("to"), Table.Column("tenant", shrinks: true), Table.Column("state"),
            Table.Column("on the way"), Table.Column("moved"),
        ])
        for (database, move) in rows {
            table.add([
                Table.Cell(database ?? "-", .plain), Table.Cell(move.target, .plain), Table.Cell(move.tenant, .bold),
                Table.Cell(move.state.rawValue, .plain), Table.Cell("\(move.taken)", .plain),
                Table.Cell("\(move.moved)", .plain),
            ])
        }
        console.list(
            "moves",
            rows.map { database, move in
                [
                    "id": .string(move.id), "from": JSONValue(database), "to": .string(move.target),
                    "tenant": .string(move.tenant), "state": .string(move.state.rawValue),
                    "on_the_way": .int(move.taken), "moved": .int(move.moved),
                ]
            }, table: table)
        return .done
    }

    private func show(_ report: JobMove.Report, _ tenant: String, _ source: String, _ target: String) {
        console.show([
            "tenant": .string(tenant), "from": .string(source), "to": .string(target),
            "state": .string(report.state.rawValue), "jobs": .int(report.jobs), "left": .int(report.left),
        ]) {
            let jobs = Humane.count(report.jobs, "job")
            switch report.state {
            case .taking, .finished, .undoing:
                console.print("\(tenant): \(jobs) taken to \(target), not decided; call again without --hold")
            case .done: console.print("\(tenant): \(jobs) moved from \(source) to \(target)")
            case .undone: console.print("\(tenant): \(jobs) put back in \(source)")
            }
            if report.left > 0 {
                console.note("\(Humane.count(report.left, "waiting job")) stay in \(source) and run there")
            }
        }
    }

    private func ends() throws -> (NamedDatabase, NamedDatabase) {
        func named(_ flag: String) throws(Failure) -> NamedDatabase {
            guard let name = parsed.string(flag) else {
                throw Failure(
                    .misused, "--\(flag) is missing", hint: "name one of MILLRACE_DATABASES: \(settings.databaseNames)")
            }
            guard let database = settings.databases.first(where: { $0.name == name }) else {
                throw Failure(
                    .misused, "there is no database \(Secrets.quoted(name)) in MILLRACE_DATABASES",
                    hint: settings.databases.isEmpty
                        ? "set it, with both databases" : "it names \(settings.databaseNames)")
            }
            return database
        }
        let (source, target) = (try named("from"), try named("to"))
        guard source != target else {
            throw Failure(.misused, "--from and --to name the same database", hint: "name two")
        }
        return (source, target)
    }

    /// Direct connections, if they are known: a move takes its time, and needs nothing of a pooler.
    private func between<Value: Sendable>(
        _ source: NamedDatabase, _ target: NamedDatabase, _ body: (Connection, Connection) async throws -> Value
    ) async throws -> Value {
        try await SchemaCheck.withSchema(options(at: source.direct ?? source.url)) { from in
            try await SchemaCheck.withSchema(options(at: target.direct ?? target.url)) { to in try await body(from, to)
            }
        }
    }

    private func said<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let failure as JobMove.Failure {
            throw Failure(.conflict, failure.sentence, hint: failure.hint)
        }
    }
}
