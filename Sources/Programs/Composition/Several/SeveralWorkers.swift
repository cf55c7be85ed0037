import Console
import Gateway
import Health
import Listeners
import Postgres
import Telemetry
import Threads
package import Workers

/// One process that serves several databases: a complete worker for each, with slots that they share, and one listener.
package struct SeveralWorkers: Sendable {
    private let members: [DatabaseWorker]
    private let listener: Listener?
    private let service: ServiceSocket?

    /// - Parameters:
    ///   - several: with settings that name several databases.
    ///   - make: a worker of one of them, by the composer for it.
    package init(
        _ several: Composer,
        make: @escaping @Sendable (Composer, SlotShare) async throws -> ComposedWorker
    ) throws {
        let settings = several.settings
        let databases = settings.databases
        guard settings.slots >= databases.count else {
            throw Failure(
                .misused,
                "MILLRACE_SLOTS is \(settings.slots), and MILLRACE_DATABASES names \(databases.count) databases",
                hint: "each database needs a slot: set MILLRACE_SLOTS to \(databases.count) or more")
        }
        if settings.showsConsole {
            throw Failure(
                .misused, "a worker of several databases does not serve the console",
                hint: "run it beside the worker, for all of them: millrace console")
        }
        if settings.servesApps {
            throw Failure(
                .misused, "a worker of several databases does not serve the gateway",
                hint: "run it for each database: millrace gateway --database NAME, one of \(settings.databaseNames)")
        }
        let budget = SlotBudget(slots: settings.slots, members: databases.count)
        let members = databases.enumerated().map { place, database in
            let composer = several.of(database).sharingConnections()
            return DatabaseWorker(database.name, log: composer.log) { try await make(composer, budget.share(place)) }
        }
        self.members = members
        service = ServiceSocket(environment: several.surroundings.environment)
        listener = try several.listener(lately: { members.flatMap(\.routes) }) { held in
            SeveralHealth.routes({ members.map(\.health) }, counts: { held.counts })
        }
    }

    /// Stops claiming everywhere, and lets what runs finish. A second call stops at once.
    package func drain() {
        for member in members { member.drain() }
    }

    /// Until it is drained, or none of the databases can be served for good. The sum of what the workers report.
    package func run() async throws -> JobWorker.Report {
        try await withTaskCancellationHandler {
            try await uncancelled {
                async let answering: Void? = listener?.run()
                async let _: Void = tellService()
                let outcome: Result<JobWorker.Report, any Error>
                do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
                listener?.stop()
                try? await answering  // that it did not start has been said
                return try outcome.get()
            }
        } onCancel: {
            drain()
        }
    }

    private func work() async throws -> JobWorker.Report {
        try await withThrowingTaskGroup(of: JobWorker.Report.self) { group in
            for member in members { group.addTask { try await member.run() } }
            var sum = JobWorker.Report.nothing
            var failure: (any Error)?
            while let ended = await group.nextResult() {
                switch ended {
                case .success(let report): sum.add(report)
                case .failure(let error):
                    failure = failure ?? error
                    drain()
                }
            }
            if let failure { throw failure }
            return sum
        }
    }

    /// What a service manager hears: ready with the first database, alive as long as no beat hangs in a database that answers.
    private func tellService() async {
        guard let service else { return }
        var hasBegun = false
        while !Task.isCancelled {
            let all = members.map(\.health)
            let ready = all.filter(\.readiness.isReady).count
            var lines = ["STATUS=\(ready) of \(all.count) databases served"]
            if !hasBegun, ready > 0 {
                hasBegun = true
                lines.append("READY=1")
            } else if !hasBegun {
                lines.append("EXTEND_TIMEOUT_USEC=60000000")
            }
            let hangs = all.contains { $0.health?.cutOff == nil && $0.health?.stall?.activity == .beating }
            if service.watchdog != nil, !hangs { lines.append("WATCHDOG=1") }
            if all.contains(where: { $0.health?.isDraining == true }) { lines.append("STOPPING=1") }
            service.send(lines)
            try? await Task.sleep(for: .seconds(1))
        }
    }
}

extension Composer {
    /// The same for one of its databases.
    func of(_ database: NamedDatabase) -> Composer {
        let settings = settings.chosen(database)
        func options(_ url: String) -> ConnectionOptions {
            settings.options(at: url, environment: surroundings.environment)
        }
        var composer = Composer(
            settings: settings, surroundings: surroundings, database: options(database.url),
            direct: database.direct.map(options), known: known)
        composer.log = log.with("database", database.name)
        composer.alarmLease = alarmLease
        composer.spans = spans
        composer.isOneOfSeveral = true
        return composer
    }
}

extension JobWorker.Report {
    fileprivate mutating func add(_ other: JobWorker.Report) {
        finished += other.finished
        handedBack += other.handedBack
        refused += other.refused
        abandoned += other.abandoned
        unrecorded += other.unrecorded
    }
}
