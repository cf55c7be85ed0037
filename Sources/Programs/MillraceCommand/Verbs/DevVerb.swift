import Clusters
import Documents
import Glibc
import Mail
import MillraceQueues
import Postgres
import RoomSchemas
import Schema
import Threads
import Workers

extension Command {
    static func dev(_ known: [RoomSchema]) -> Command {
        Command(
            ["dev"],
            summary: "Run everything on this machine: a Postgres, the schema, a worker",
            discussion: """
                Without DATABASE_URL a private Postgres runs from the system's own programs, with a directory of its own \
                and only a Unix socket; the next run finds everything as it was. The worker knows the practice kinds, and \
                is restarted when it crashes. Ctrl-C stops everything: the worker is drained, the private Postgres is \
                stopped.
                """,
            flags: [
                .toggle(
                    "tour", environment: .none, help: "Enqueue some jobs first, and follow them to their ends."),
                .toggle(
                    "once", environment: .none,
                    help: "End with exit 0 after the tour, or once everything runs if there is no tour."),
                Setting.directory.flag, Setting.slots.flag, Setting.listen.flag, Setting.token.flag,
                Setting.logLevel.flag,
            ],
            examples: [
                Example("millrace dev", "for developing against a queue"),
                Example("millrace dev --tour --once", "a look at how it works"),
            ]
        ) { invocation in
            try await Development(invocation: invocation, schemas: known).run()
        }
    }
}

/// The parts that `dev` starts and stops, in order.
struct Development: Sendable {
    let invocation: Invocation
    /// Those of the program: it installs all of them.
    let schemas: [RoomSchema]

    private var console: Console { invocation.console }

    func run() async throws -> ExitCode {
        let stop = Wakeup()
        UnixSignals.onStop { _ in stop.fire() }
        guard case .none = invocation.settings.database else {
            return try await work(on: try invocation.connectionOptions(), shown: nil, stop: stop)
        }
        let embedded = try Embedded(
            settings: invocation.settings, environment: invocation.environment,
            workingDirectory: invocation.surroundings.workingDirectory)
        console.note("starting Postgres \(embedded.cluster.binaries.major) in \(embedded.cluster.directory)")
        let stopsIt = embedded.takeOver(try await embedded.start())
        let url = embedded.cluster.url()
        let outcome: Result<ExitCode, any Error>
        do {
            outcome = .success(try await work(on: invocation.options(at: url), shown: url, stop: stop))
        } catch {
            outcome = .failure(error)
        }
        if !stopsIt {
            console.note("Postgres stays up: another millrace dev runs it")
        } else {
            console.note("stopping Postgres; its data stay in \(embedded.cluster.directory)")
            do {
                try await embedded.cluster.stop(.fast, deadline: .seconds(60))
            } catch {
                throw Failure(error.description)
            }
        }
        return try outcome.get()
    }

    private func work(on options: ConnectionOptions, shown url: String?, stop: Wakeup) async throws -> ExitCode {
        let connection: Connection
        do {
            connection = try await Connection.open(options, name: "dev")
            let report = try await migrate(connection)
            console.note(
                report.applied.isEmpty
                    ? "the schema is up to date (version \(report.version))"
                    : "made the schema (version \(report.version))")
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
        let missing = invocation.workshop.missing
        if !missing.isEmpty {
            console.warning("documents cannot be read: missing are \(missing.joined(separator: ", "))")
        }
        let (losses, lost) = AsyncStream.makeStream(of: pid_t.self)
        let worker = workerProcess(url: options.location) { lost.yield($0) }
        let tours = invocation.parsed.isOn("tour")
        return try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask { await worker.run() }
            group.addTask {
                for await pid in losses { await rescue(after: pid, on: connection) }
                return nil
            }
            var code = ExitCode.done
            do {
                if tours {
                    code = try await tour(on: connection)
                    advise(url: url)
                }
            } catch let error as PostgresError {
                worker.stop()
                throw DatabaseFailure(error)
            }
            if !tours {
                console.note(url.map { "export DATABASE_URL='\($0)'" } ?? "")
                sayConsole()
            }
            if !invocation.parsed.isOn("once") {
                console.note("the worker stays up; Ctrl-C stops it")
                group.addTask {
                    await stop.wait()
                    return nil
                }
                if case .some(let ended?) = try await group.next() {
                    // the worker ended on its own: it has said why
                    group.cancelAll()
                    return ended == 0 ? code : .failed
                }
                console.note("stopping the worker")
                group.addTask {
                    await stop.wait()
                    if !Task.isCancelled { worker.stop() }
                    return nil
                }
            }
            worker.stop()
            while let ended = try await group.next() {
                guard let ended else { continue }
                group.cancelAll()
                if ended != 0 { code = .failed }
            }
            await connection.close()
            return code
        }
    }

    private func migrate(_ connection: Connection) async throws -> Migrator.Report {
        do {
            let migrator = Migrator(
                rooms: schemas, adoption: RoomSchemas.adoption, adding: schemas.map(\.name))
            return try await migrator.migrate(on: connection)
        } catch {
            throw Failure(error.description)
        }
    }

    /// We have seen the process end, so nobody needs to wait until its session has been silent for long enough.
    private func rescue(after pid: pid_t, on connection: Connection) async {
        do {
            try await connection.execute(
                "select millrace.rescue(s.id, null, 'killed') from millrace.session s where s.pid = $1 and s.host = $2",
                [.int4(pid), .text(JobWorker.Options.host)])
        } catch {
            console.detail("the next worker will find its jobs: \(error)")
        }
    }

    private func workerProcess(url: String, lost: @escaping @Sendable (pid_t) -> Void) -> WorkerProcess {
        var environment = invocation.environment
        environment["DATABASE_URL"] = url.isEmpty ? nil : url
        if let token = invocation.settings.text(.token) {
            environment["MILLRACE_TOKEN"] = token
            environment["MILLRACE_TOKEN_FILE"] = nil
        }
        // A developer wants mail in files, and no warning about it.
        if invocation.settings.lacksMailService { environment["EMAIL_SERVICE_PROVIDER"] = "outbox" }
        let tours = invocation.parsed.isOn("tour")
        return WorkerProcess(
            arguments: [
                "worker", "--practice", "--quests", "--checkins", "--console", "--parent", "\(getpid())", "--slots",
                "\(invocation.settings.slots)",
                "--log-level",
                tours ? "warning" : invocation.settings.logLevel, "--quiet",
            ] + invocation.listenArguments, environment: environment,
            say: { [console] text in console.warning(text) }, lost: lost)
    }

    private func tour(on connection: Connection) async throws -> ExitCode {
        console.print("")
        let ended = try await Tour(console: console, connection: connection).run()
        console.print("")
        let rooms = try await tourOfRooms(on: connection)
        console.print("")
        console.print("millrace status", .bold)
        let report = try await StatusReport.read(on: connection, cap: QueueDepth.cap, patience: .seconds(2))
        for line in StatusView(report, failIf: nil).lines(width: console.output.columns, colors: console.colorsOutput) {
            console.output.write(line + "\n")
        }
        return ended && rooms ? .done : .failed
    }

    private func tourOfRooms(on connection: Connection) async throws -> Bool {
        let missing = invocation.workshop.missing
        let pool = Pool(connection.options, size: 2)
        let tour = RoomsTour(
            console: console, connection: connection, store: invocation.settings.blobStore(pool: pool),
            lacksReaders: missing.isEmpty ? nil : "missing are \(missing.joined(separator: ", "))")
        let ended: Result<Bool, any Error>
        do {
            ended = .success(try await tour.run())
        } catch {
            ended = .failure(error)
        }
        await tour.cleanUp()
        await pool.close()
        return try ended.get()
    }

    /// Where the worker shows the console; nil: it listens nowhere, or an earlier worker has its address.
    private var consoleAddress: String? {
        invocation.settings.listenAddress.map { "http://\($0)/console" }
    }

    /// With commands to copy: the program as it was called here; it finds the embedded Postgres from this directory.
    private func advise(url: String?) {
        let program = CommandLine.arguments.first ?? "millrace"
        var lines = ["", "What to try next, in another terminal:"]
        lines += [
            "  \(program) enqueue practice.sleep '{\"ms\": 3000}' --wait",
            "  \(program) enqueue practice.fail '{\"times\": 3}' --in 5s",
            "  \(program) enqueue practice.steps '{\"steps\": 5, \"ms\": 1000, \"crash_after\": 2}' --wait     # continues after step 2",
            "  \(program) status --watch",
            "  \(program) jobs list",
            "  \(program) enqueue practice.crash     # kills the worker again and again, until it is quarantined",
            "  \(program) --help",
        ]
        if let url {
            lines += [
                "  export DATABASE_URL='\(url)'",
                "  psql \"$DATABASE_URL\" -c \"select millrace.enqueue('practice.echo', '{\\\"hi\\\": 1}')\"",
            ]
        }
        for line in lines { console.print(line) }
        sayConsole()
    }

    private func sayConsole() {
        guard let consoleAddress else { return }
        console.print("")
        console.print("The console: \(consoleAddress)", .bold)
    }
}
