import Composition
import Documents
import Postgres
import Supervision
import Telemetry
import Threads
import Workers

extension Command {
    static let worker = Command(
        ["worker"],
        summary: "Run jobs until stopped",
        discussion: """
            The first TERM or Ctrl-C stops claiming, hands back jobs that have not started, and lets the others finish \
            until the drain timeout; a second one stops at once. Neither uses up an attempt. The last line says how \
            many jobs finished, were handed back, were abandoned; exit 0 when none was abandoned.
            """,
        flags: [
            Setting.queues.flag, Setting.slots.flag, Setting.build.flag, Setting.drainTimeout.flag, Setting.poll.flag,
            Setting.practice.flag, Setting.questsOn.flag, Setting.checkInsOn.flag, Setting.noticesOn.flag,
            Setting.webhooksOn.flag, Setting.listen.flag, Setting.token.flag,
            Setting.encryptionKeys.flag, Setting.directURL.flag, Setting.logLevel.flag, Setting.logFormat.flag,
            .single(
                "name", "NAME", environment: .named("MILLRACE_WORKER_NAME"),
                help: "The worker's name; host and process number if not given."),
            .single(
                "marks", "FILE", environment: .none, hidden: true,
                help: "The file in which practice.mark notes its start."),
            .single("ledger", "URL", environment: .none, hidden: true, help: "Run the jobs of `load ledger`."),
            .single("break", "NAME", environment: .none, hidden: true, help: "Run without this safeguard."),
            .single(
                "alarm-lease", "DURATION", .duration(.seconds(2) ... .seconds(60)), environment: .none, hidden: true,
                help: "How long a worker that took an alarm may keep it."),
            .single(
                "parent", "PID", .integer(0...Int(Int32.max)), environment: .none, hidden: true,
                help: "End when this process ends."),
        ],
        examples: [
            Example("millrace worker --practice", "a worker for the practice kinds, on all queues"),
            Example(
                "millrace worker --queue mail:20 --queue default",
                "two queues, one of them with at most 20 jobs at once"),
            Example(
                "millrace worker --practice --listen 127.0.0.1:8471",
                "a second worker on this machine, with its own /readyz"),
        ]
    ) { invocation in
        invocation.dieWithParent(invocation.parsed.integer("parent") ?? 0)
        let settings = invocation.settings
        var composer = try invocation.composer()
        composer.alarmLease = invocation.parsed.duration("alarm-lease")
        let pool = Pool(composer.database, size: 4)
        let marker = Practice.marker(invocation.parsed.string("marks").flatMap { PracticeMarks(path: $0) })
        let broken = invocation.parsed.string("break").flatMap { LedgerBreak(rawValue: $0) }
        var handlers = settings.practice ? Practice.handlers + [marker, Practice.recorder(pool)] : []
        if let ledger = invocation.parsed.string("ledger") {
            handlers += LedgerHandlers(pool: Pool(invocation.options(at: ledger), size: 8), broken: broken).all
        }
        let worker = try await composer.worker(handlers, name: invocation.parsed.string("name"), pool: pool) {
            options in
            if broken == .earlyRescue {
                // So that some look more often than others beat.
                options.beat = .milliseconds(Int.random(in: 300...4000))
                options.watch.silent = .milliseconds(600)
                options.watch.lockFree = .milliseconds(600)
                options.watch.lockNeverHeld = .milliseconds(600)
            }
            // So that a minute sees enough of them come back.
            if broken == .noTokenCheck { options.watch.silent = .seconds(5) }
            options.sweeps = broken != .noSweep
        }
        Signals.onStop { _ in worker.engine.drain() }
        return try await invocation.exitCode { try await worker.run() }
    }
}

extension Invocation {
    /// Puts rooms together from the settings of this command.
    func composer() throws(Failure) -> Composer {
        Composer(
            settings: settings, surroundings: surroundings, database: try connectionOptions(), direct: directOptions)
    }

    /// The supervisor through which a single verb calls providers.
    func supervisor(name: String) throws(Failure) -> Supervisor { try composer().supervisor(name: name) }

    /// The programs that read documents.
    var workshop: DocumentPrograms { settings.workshop(beside: Composer.ownPath) }

    /// Passed on to a worker of ours: an address that was set here counts as set there.
    var listenArguments: [String] { settings.isListenAsked ? ["--listen", settings.string(.listen)] : [] }

    /// How a worker ended, as an exit code.
    func exitCode(of run: () async throws -> JobWorker.Report) async throws -> ExitCode {
        do {
            let report = try await run()
            console.note(
                "\(report.finished) finished, \(report.handedBack) handed back, \(report.refused) refused, \(report.abandoned) abandoned"
                    + (report.unrecorded > 0 ? ", \(report.unrecorded) unrecorded" : ""))
            return report.abandoned + report.unrecorded == 0 ? .done : .failed
        } catch let failure as JobWorker.Failure {
            switch failure {
            case .schema: throw Failure(.schemaMismatch, failure.description)
            case .database(let error): throw DatabaseFailure(error)
            case .noHandlers: throw Failure(.misused, failure.description)
            }
        }
    }
}
