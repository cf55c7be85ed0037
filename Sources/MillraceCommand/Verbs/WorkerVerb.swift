import Listeners
import Postgres
import Threads
import Workers

extension Command {
    static let worker = Command(
        ["worker"],
        summary: "Run jobs until told to stop",
        discussion: """
            The first TERM or Ctrl-C stops claiming, hands back what has not started and lets the rest finish until the drain \
            timeout; a second one stops at once. Either way no attempt is used up. The last line says how many jobs \
            finished, were handed back, were abandoned; exit 0 when none was.
            """,
        flags: [
            Setting.queues.flag, Setting.slots.flag, Setting.drainTimeout.flag, Setting.poll.flag,
            Setting.practice.flag, Setting.listen.flag, Setting.token.flag,
            Setting.encryptionKeys.flag, Setting.directURL.flag, Setting.logLevel.flag, Setting.logFormat.flag,
            .single(
                "name", "NAME", environment: .named("MILLRACE_WORKER_NAME"),
                help: "What to call this worker; host and process number if not given."),
            .single(
                "marks", "FILE", environment: .none, hidden: true, help: "Where practice.mark notes when it began."),
            .single("ledger", "URL", environment: .none, hidden: true, help: "Run the jobs of `load ledger`."),
            .single("break", "NAME", environment: .none, hidden: true, help: "Without this safeguard."),
            .single(
                "parent", "PID", .integer(0...Int(Int32.max)), environment: .none, hidden: true,
                help: "End with this process."),
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
        let pool = Pool(try invocation.connectionOptions(), size: 4)
        let marker = Practice.marker(invocation.parsed.string("marks").flatMap { Marks(path: $0) })
        let broken = invocation.parsed.string("break").flatMap { LedgerBreak(rawValue: $0) }
        var handlers = settings.practice ? Practice.handlers + [marker, Practice.recorder(pool)] : []
        if let ledger = invocation.parsed.string("ledger") {
            handlers += LedgerHandlers(pool: Pool(invocation.options(at: ledger), size: 8), broken: broken).all
        }
        guard !handlers.isEmpty else {
            throw Failure(
                .misused, "this worker knows no kinds of jobs",
                hint: "pass --practice for the practice kinds, or build a worker of your own with the Millrace library")
        }
        var options = Worker.Options(
            database: try invocation.connectionOptions(), name: invocation.parsed.string("name"))
        options.direct = invocation.directOptions
        options.queues = settings.queues.map { (name: $0.queue, slots: $0.slots) }
        options.slots = settings.slots
        options.drainDeadline = settings.drainTimeout
        options.poll = settings.poll
        options.keys = settings.keys
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
        options.service = ServiceSocket(environment: invocation.surroundings.environment)
        let worker = Worker(options: options, handlers: handlers, log: settings.log)
        let listener = try invocation.listener(for: worker)
        Signals.onStop { _ in worker.drain() }
        return try await invocation.run(worker, beside: listener)
    }
}

extension Invocation {
    /// Runs a worker to its end, and turns how it ended into an exit code. The listener answers until the worker has ended: while it drains, others want to know.
    func run(_ worker: Worker, beside listener: Listener?) async throws -> ExitCode {
        async let answering: Void? = listener?.run()
        let outcome: Result<ExitCode, any Error>
        do {
            outcome = .success(try await run(worker))
        } catch {
            outcome = .failure(error)
        }
        listener?.stop()
        try? await answering  // that it did not start has been said
        return try outcome.get()
    }

    private func run(_ worker: Worker) async throws -> ExitCode {
        do {
            let report = try await worker.run()
            console.note(
                "\(report.finished) finished, \(report.handedBack) handed back, \(report.refused) refused, \(report.abandoned) abandoned"
                    + (report.unrecorded > 0 ? ", \(report.unrecorded) unrecorded" : ""))
            return report.abandoned + report.unrecorded == 0 ? .done : .failed
        } catch let failure as Worker.Failure {
            switch failure {
            case .schema: throw Failure(.schemaMismatch, failure.description)
            case .database(let error): throw DatabaseFailure(error)
            case .noHandlers: throw Failure(.misused, failure.description)
            }
        }
    }
}
