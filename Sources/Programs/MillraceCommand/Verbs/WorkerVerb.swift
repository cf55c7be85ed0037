import CheckIns
import Console
import Gateway
import Notices
import Postgres
import Quests
import Telemetry
import Threads
import Webhooks
package import Workers

extension Command {
    package static let worker: Command = worker(of: Rooms.all)

    package static func worker(of rooms: [Room]) -> Command {
        Command(
            ["worker"],
            summary: "Run jobs until stopped",
            discussion: """
                The first TERM or Ctrl-C stops claiming, hands back jobs that have not started, and lets the others finish \
                until the drain timeout; a second one stops at once. Neither uses up an attempt. The last line says how \
                many jobs finished, were handed back, were abandoned; exit 0 when none was abandoned.

                With MILLRACE_DATABASES one process serves several databases, and its slots go where the jobs are: each \
                database gets the same when all are busy, and an idle one leaves its slots to the others. While a database is \
                away, the work of the others goes on.
                """,
            flags: [
                Setting.queues.flag, Setting.slots.flag, Setting.build.flag, Setting.onlyBuild.flag,
                Setting.drainTimeout.flag,
                Setting.poll.flag, Setting.connections.flag, Setting.waker.flag,
                Setting.practice.flag, Setting.questsOn.flag, Setting.checkInsOn.flag, Setting.noticesOn.flag,
                Setting.webhooksOn.flag, Setting.consoleOn.flag, Setting.gatewayOn.flag, Setting.listen.flag,
                Setting.token.flag,
                Setting.encryptionKeys.flag, Setting.databases.flag, Setting.directURL.flag, Setting.logLevel.flag,
                Setting.logFormat.flag,
                .single(
                    "name", "NAME", environment: .named("MILLRACE_WORKER_NAME"),
                    help: "The worker's name; host and process number if not given."),
                .single(
                    "marks", "FILE", environment: .none, hidden: true, help: "Where practice.mark notes when it began."),
                .single(
                    "alarm-lease", "DURATION", .duration(.seconds(2) ... .seconds(60)), environment: .none,
                    hidden: true,
                    help: "How long a worker that took an alarm may keep it."),
                .single(
                    "silence", "DURATION", .duration(.seconds(1) ... .seconds(604_800)), environment: .none,
                    hidden: true,
                    help: "After how long another worker without a sign of life is lost."),
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
                Example(
                    "MILLRACE_DATABASES='eu=postgres://…, us=postgres://…' millrace worker --practice",
                    "one process for two databases"),
            ]
        ) { invocation in try await invocation.work(rooms) }
    }
}

extension Invocation {
    /// Runs a worker until it is told to stop.
    /// - Parameters:
    ///   - rooms: those of the program.
    ///   - more: handlers beside those of the rooms.
    ///   - adjust: what is otherwise than the settings say.
    package func work(
        _ rooms: [Room] = Rooms.all, more: [Handler] = [],
        adjust: @escaping @Sendable (inout JobWorker.Options) -> Void = { _ in }
    ) async throws -> ExitCode {
        dieWithParent(parsed.integer("parent") ?? 0)
        let several = settings.databases.count > 1
        var composer = try several ? severalComposer(rooms) : composer(rooms).sharingConnections()
        composer.alarmLease = parsed.duration("alarm-lease")
        let marks = parsed.string("marks").flatMap { PracticeMarks(path: $0) }
        let (silence, name, hasPractice) = (
            parsed.duration("silence"), parsed.string("name"), settings.practice
        )
        /// One, of a process or of one of its databases.
        @Sendable func worker(_ composer: Composer, _ share: SlotShare?) async throws -> ComposedWorker {
            let pool = Pool(composer.database, size: 4)
            let noting = [
                Practice.marker(marks), Practice.waiter(marks), Practice.recorder(pool), Practice.taker(pool),
                Practice.orders(pool), Practice.versioned(marks),
            ]
            let practice = hasPractice ? Practice.handlers + noting : []
            do {
                return try await composer.worker(practice + more, name: name, pool: pool) { options in
                    if let silence { options.watch.silent = silence }
                    options.share = share
                    adjust(&options)
                }
            } catch {
                await pool.close()
                throw error
            }
        }
        if several {
            let workers = try SeveralWorkers(composer) { try await worker($0, $1) }
            UnixSignals.onStop { _ in workers.drain() }
            return try await exitCode { try await workers.run() }
        }
        let one = try await worker(composer, nil)
        UnixSignals.onStop { _ in one.engine.drain() }
        return try await exitCode { try await one.run() }
    }

    /// Given on to a worker of ours: asked for there if it was asked for here.
    package var listenArguments: [String] { settings.isListenAsked ? ["--listen", settings.string(.listen)] : [] }

    /// How a worker ended, as an exit code.
    package func exitCode(of run: () async throws -> JobWorker.Report) async throws -> ExitCode {
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
