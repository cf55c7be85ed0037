import Glibc
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

extension SessionKeeping {
    /// Connects, checks the schema, makes itself known. Waits for a database that is away; anything else is an error. nil: a stop
    /// was asked for meanwhile. True: it hears notifications and holds its session lock.
    func open() async throws -> Bool? {
        var told = false
        return try await RetryingLoop.value(
            pause: { (pause) throws(JobWorker.Failure) in await shared.stops.pause(pause) },
            of: { () throws(PostgresError) in
                shared.stops.count > 0 ? nil : try await introduceUnlessStopped()
            },
            failed: { error throws(JobWorker.Failure) in
                // Workers that each keep a part of what they need, where connections are few, would wait for each other.
                await links.close()
                if let misfit { throw misfit }
                if shared.stops.count > 0 { return false }
                if error.sqlState == "3F000" || error.sqlState == "42883" || error.sqlState == "42P01" {
                    throw .schema(found: nil, needed: Self.schemaVersion, oldest: nil)
                }
                guard error.isOutage || error.isSlowness || error.isCollision, !error.isRejection else {
                    throw .database(error)
                }
                if error.isCollision { return false }
                shared.refusal.withLock { $0 = error.description }
                shared.tellWaiting()
                if case .server = error, !told {
                    told = true
                    log.warning("the database does not take a worker yet; trying again", [("error", error.description)])
                }
                return true
            })
    }

    /// A database that does not answer holds no stop up. nil: a stop came first.
    private func introduceUnlessStopped() async throws(PostgresError) -> Bool? {
        let outcome = await withTaskGroup(of: Result<Bool, PostgresError>?.self) { group in
            group.addTask {
                do throws(PostgresError) {
                    return .success(try await self.introduce())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                await self.shared.stops.firstRequest()
                return nil
            }
            var outcome: Result<Bool, PostgresError>?
            for await ended in group {
                outcome = ended ?? outcome
                group.cancelAll()
            }
            return outcome
        }
        return try outcome?.get()
    }

    static var schemaVersion: Int { Queue.schemaVersion }

    private func introduce() async throws(PostgresError) -> Bool {
        let known = try await links.house.use { connection throws(PostgresError) in
            let state = try await Queue.schemaState(on: connection)
            if state.version < Self.schemaVersion || state.oldestWorker > Self.schemaVersion {
                misfit = .schema(found: state.version, needed: Self.schemaVersion, oldest: state.oldestWorker)
                await sayMisfit(on: connection)
                throw .misconfigured(reason: "the schema does not match")
            }
            let kinds = try await register(on: connection)
            for schedule in options.schedules { _ = try await Queue.setSchedule(schedule, on: connection) }
            return kinds
        }
        self.known = known
        try await catalog.refresh()
        let direct = try await hears()
        // Before the first claim: a worker that could not open these would hold jobs that it cannot end.
        for link in [links.flush, links.claim, links.read, links.sweep] { try await link.reach() }
        try await openSession(direct: direct)
        return direct
    }

    /// A schema from before this function exists, or a role without the right, hides the reason and changes nothing else.
    private func sayMisfit(on connection: Connection) async {
        do throws(PostgresError) {
            try await Queue.refuseWorker(
                on: connection, name: options.name, host: JobWorker.Options.host, pid: getpid(),
                version: options.versionText, kinds: running.handlers.map(\.kind),
                queues: options.queues.isEmpty ? nil : options.queues.map(\.name))
        } catch {
            log.debug("the database does not note that this worker cannot start", [("error", error.description)])
        }
    }

    /// Makes names known one by one: who held some and waited for others could meet a caller who names them the other way round, and that one would fail.
    private func register(on connection: Connection) async throws(PostgresError) -> [Int32] {
        for queue in Set(options.queues.map(\.name) + running.handlers.compactMap(\.queue) + ["default"]).sorted() {
            try await Queue.registerQueues(on: connection, [queue])
        }
        var kinds: [Int32] = []
        for handler in running.handlers {
            kinds.append(
                try await Queue.registerKind(
                    on: connection, handler.kind, queue: handler.queue, searchable: handler.searchable,
                    redacted: handler.redacted))
            kinds += try await Queue.registerLines(on: connection, of: handler.kind, handler.lines)
        }
        return kinds
    }

    /// Whether notifications reach us: through a transaction pooler they do not.
    private func hears() async throws(PostgresError) -> Bool {
        // One that listens has its connection for itself; where there are few, a waker does it for all.
        if hub.lacksSessions { return false }
        let connection = try await links.listen.connection()
        if await connection.isPooled {
            await links.listen.close()
            if options.direct != nil {
                log.warning("MILLRACE_DIRECT_URL leads to a pooler as well; polling instead of listening")
            }
            return false
        }
        return true
    }

    /// A fresh session: its number is random and never used again. The lock comes first, so that nobody sees it free.
    func openSession(direct: Bool) async throws(PostgresError) {
        let session = Int64.random(in: 1 ... .max)
        opened.insert(session)
        if direct {
            try await links.listen.use { connection throws(PostgresError) in
                try await connection.execute("select pg_advisory_unlock_all()")
                try await connection.execute("select pg_advisory_lock($1)", [.int8(session)])
                try await hub.begin(on: connection)
            }
        }
        let ids = known
        try await links.beat.use { connection throws(PostgresError) in
            try await Queue.openSession(
                on: connection,
                SessionCard(
                    id: session, name: options.name, host: JobWorker.Options.host, pid: getpid(),
                    version: options.versionText,
                    queues: options.queues.isEmpty ? nil : options.queues.map(\.name), kinds: ids,
                    slots: Int32(options.slots), direct: direct, rooms: options.rooms,
                    pin: options.isPinned ? options.buildText : nil))
        }
        try await takeKinds(of: session)
        let before = state.session
        state.begin(session: session).settle(session: before, log: log)
    }
}
