import Documents
import Listeners
import Mail
import MillraceMail
import Notices
import Postgres
import Supervision
import Telemetry
import Threads
import Webhooks
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
            Setting.practice.flag, Setting.questsOn.flag, Setting.checkInsOn.flag, Setting.noticesOn.flag,
            Setting.webhooksOn.flag, Setting.listen.flag, Setting.token.flag,
            Setting.encryptionKeys.flag, Setting.directURL.flag, Setting.logLevel.flag, Setting.logFormat.flag,
            .single(
                "name", "NAME", environment: .named("MILLRACE_WORKER_NAME"),
                help: "What to call this worker; host and process number if not given."),
            .single(
                "marks", "FILE", environment: .none, hidden: true, help: "Where practice.mark notes when it began."),
            .single("ledger", "URL", environment: .none, hidden: true, help: "Run the jobs of `load ledger`."),
            .single("break", "NAME", environment: .none, hidden: true, help: "Without this safeguard."),
            .single(
                "alarm-lease", "DURATION", .duration(.seconds(2) ... .seconds(60)), environment: .none, hidden: true,
                help: "How long an alarm is left to whoever took it."),
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
        let database = try invocation.connectionOptions()
        let pool = Pool(database, size: 4)
        let marker = Practice.marker(invocation.parsed.string("marks").flatMap { Marks(path: $0) })
        let broken = invocation.parsed.string("break").flatMap { LedgerBreak(rawValue: $0) }
        var handlers = settings.practice ? Practice.handlers + [marker, Practice.recorder(pool)] : []
        if let ledger = invocation.parsed.string("ledger") {
            handlers += LedgerHandlers(pool: Pool(invocation.options(at: ledger), size: 8), broken: broken).all
        }
        let name = invocation.parsed.string("name") ?? Worker.Options(database: database).name
        let hearing = Hearing(invocation.directOptions ?? database)
        let supervisor = try invocation.supervisor(name: name, hearing: hearing)
        let mail = try invocation.mail(pool: Pool(database, size: 8), hearing: hearing, supervisor: supervisor)
        handlers += MailHandlers.of(mail.post, slots: settings.slots)
        let documents = invocation.documents(
            pool: Pool(database, size: DocumentWiring.cores * 2 + 2), supervisor: supervisor)
        handlers += documents?.handlers ?? []
        if settings.runsQuests {
            handlers.append(invocation.questHandler(pool))
            try await invocation.applyQuestRules()
        }
        try await invocation.applyCheckInRules()
        var options = Worker.Options(database: database, name: name)
        options.direct = invocation.directOptions
        options.hearing = hearing
        options.queues = settings.queues.map { (name: $0.queue, slots: $0.slots) }
        options.slots = settings.slots
        options.bounds = MailHandlers.bounds(slots: settings.slots)
            .merging(DocumentWiring.bounds(slots: settings.slots)) { first, _ in first }
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
        let blobs = invocation.blobs(pool: pool)
        let routes = try MailRoutes(pool: pool, settings: settings)
        let checkIns = try invocation.checkIns(database, pool: pool, name: name, supervisor: supervisor)
        let notices = try invocation.notices(pool: pool, hearing: hearing, supervisor: supervisor)
        let webhooks = invocation.webhooks(pool: Pool(database, size: 4), hearing: hearing, supervisor: supervisor)
        let listener = try invocation.listener(
            for: worker, supervisor, more: routes.all + checkIns.routes + blobs.routes,
            rooms: {
                mail.post.tally.gauges + checkIns.gauges + (notices?.standing.gauges ?? [])
                    + (webhooks?.tally.gauges ?? [])
            })
        Signals.onStop { _ in worker.drain() }
        if settings.mailChoice.provider == "outbox" {
            settings.log.info(
                "no service for mail is configured: messages become files",
                [("mail.outbox", settings.outboxDirectory)])
        }
        async let _: Void = mail.run()  // cancelled and awaited when we leave
        async let _: Void? = documents?.room.watch()  // and so is this
        async let _: Void = checkIns.run()  // as well: it watches until the last job has ended
        async let _: Void? = notices?.run()  // so is this, and what it is about to send is sent
        async let _: Void? = webhooks?.run()
        async let _: Void = blobs.run()
        return try await invocation.run(worker, beside: listener, supervisor)
    }
}

extension Invocation {
    /// What the handlers of a worker call providers through.
    func supervisor(name: String, hearing: Hearing? = nil) throws -> Supervisor {
        var options = settings.supervision
        options.database = try connectionOptions()
        options.hearing = hearing ?? directOptions.map { Hearing($0) }
        options.name = name
        return Supervisor(options, log: settings.log)
    }

    /// Runs a worker to its end, and turns how it ended into an exit code. The listener answers until the worker has ended: while it
    /// drains, others want to know; and its handlers call providers until then.
    func run(_ worker: Worker, beside listener: Listener?, _ supervisor: Supervisor) async throws -> ExitCode {
        async let _: Void = supervisor.run()  // cancelled and awaited when we leave
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
