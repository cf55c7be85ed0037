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

/// The parts that `dev` starts and stops, in order.
struct Development: Sendable {
    let invocation: Invocation
    /// Those of the program: it installs all of them.
    let schemas: [RoomSchema]

    private var console: Console { invocation.console }

    func run() async throws -> ExitCode {
        sayConsole()
        let plan = try invocation.workbenchPlan()
        let replay = try await invocation.takeReplay()
        let stop = Wakeup()
        UnixSignals.onStop { _ in stop.fire() }
        for line in replay?.lines ?? [] { console.print(line) }
        if replay == nil, invocation.settings.database != .none {
            return try await work(on: try invocation.connectionOptions(), shown: nil, stop: stop, plan, replay)
        }
        let embedded = try Embedded(
            settings: invocation.settings, environment: invocation.environment,
            workingDirectory: invocation.surroundings.workingDirectory)
        console.note("starting Postgres \(embedded.cluster.binaries.major) in \(embedded.cluster.directory)")
        let stopsIt = embedded.takeOver(try await embedded.start())
        let url = embedded.cluster.url()
        let outcome: Result<ExitCode, any Error>
        do {
            outcome = .success(try await work(on: invocation.options(at: url), shown: url, stop: stop, plan, replay))
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

    private func work(
        on options: ConnectionOptions, shown url: String?, stop: Wakeup, _ plan: Workbench.Plan?, _ replay: Replay?
    ) async throws -> ExitCode {
        let connection = try await opened(options)
        let (losses, lost) = AsyncStream.makeStream(of: pid_t.self)
        let worker = workerProcess(url: options.location) { lost.yield($0) }
        let bench = plan.map { plan in
            Workbench(plan.at(options.location, replays: replay != nil), console: console) { lost.yield($0) }
        }
        let code = try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask { await worker.run() }
            group.addTask {
                for await pid in losses { await rescue(after: pid, on: connection) }
                return nil
            }
            var code: ExitCode
            do {
                code = try await first(on: connection, shown: url, stop: stop, bench, replay)
            } catch {
                worker.stop()
                throw (error as? PostgresError).map { DatabaseFailure($0) } ?? error
            }
            if !invocation.parsed.isOn("once") {
                if let bench { group.addTask { await develop(bench, replay, on: connection, options) } }
                console.note("the worker stays up; Ctrl-C stops it")
                group.addTask {
                    await stop.wait()
                    return nil
                }
                if case .some(let ended?) = try await group.next() {
                    // the worker ended on its own: it has said why
                    await bench?.stop()
                    group.cancelAll()
                    return ended == 0 ? code : .failed
                }
                console.note("stopping the worker")
                group.addTask {
                    await stop.wait()
                    if !Task.isCancelled {
                        worker.stop()
                        await bench?.stop()
                    }
                    return nil
                }
            }
            worker.stop()
            await bench?.stop()
            while let ended = try await group.next() {
                guard let ended else { continue }
                group.cancelAll()
                if ended != 0 { code = .failed }
            }
            return code
        }
        await connection.close()
        return code
    }

    private func opened(_ options: ConnectionOptions) async throws -> Connection {
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
        return connection
    }

    /// What comes before everything just runs: the tour, or with --once the replay.
    private func first(
        on connection: Connection, shown url: String?, stop: Wakeup, _ bench: Workbench?, _ replay: Replay?
    ) async throws -> ExitCode {
        var code = ExitCode.done
        if invocation.parsed.isOn("tour") {
            code = try await tour(on: connection)
            advise(url: url)
        } else if let url {
            console.note("export DATABASE_URL='\(url)'")
        }
        guard invocation.parsed.isOn("once"), let bench else { return code }
        let isFine = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await bench.once {
                    guard let replay else { return true }
                    return try await replayRun(replay, bench, on: connection).run()
                }
            }
            group.addTask {
                await stop.wait()
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        return isFine ? code : .failed
    }

    /// The developer's program, until it is stopped.
    private func develop(
        _ bench: Workbench, _ replay: Replay?, on connection: Connection, _ options: ConnectionOptions
    ) async -> Int32? {
        await bench.run {
            guard let replay else { return }
            do {
                _ = try await replayRun(replay, bench, on: connection).run()
            } catch is CancellationError {
            } catch {
                if !Task.isCancelled { console.failure("\(error)") }
            }
        }
        return nil
    }

    private func replayRun(_ replay: Replay, _ bench: Workbench, on connection: Connection) -> ReplayRun {
        ReplayRun(
            replay: replay, bench: bench, invocation: invocation, connection: connection,
            waitsForDebugger: invocation.parsed.isOn("debugger"))
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
        // A worker that a debugger has stopped is not lost.
        let silence = invocation.parsed.isOn("debugger") ? ["--silence", "1d"] : []
        return WorkerProcess(
            arguments: [
                "worker", "--practice", "--quests", "--checkins", "--console", "--parent", "\(getpid())", "--slots",
                "\(invocation.settings.slots)",
                "--log-level",
                tours ? "warning" : invocation.settings.logLevel, "--quiet",
            ] + silence + invocation.listenArguments, environment: environment,
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
        console.print("")
        sayConsole()
    }

    private func sayConsole() {
        guard let consoleAddress else { return }
        console.print("The console: \(consoleAddress)", .bold)
    }
}
