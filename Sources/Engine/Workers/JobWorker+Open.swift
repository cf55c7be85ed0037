import Glibc
import Postgres
import Queues
import Synchronization
import Telemetry
import Threads

extension JobWorker {
    /// Connects, checks the schema, makes itself known. Waits for a database that is away; anything else is an error. nil: a stop
    /// was asked for meanwhile. True: it hears notifications and holds its session lock.
    func open() async throws -> Bool? {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        var told = false
        while stops.count == 0 {
            do throws(PostgresError) {
                return try await introduceUnlessStopped()
            } catch {
                // Workers that each keep a part of what they need, where connections are few, would wait for each other.
                await closeLinks()
                if let mismatch { throw mismatch }
                if stops.count > 0 { return nil }
                if error.sqlState == "3F000" || error.sqlState == "42883" || error.sqlState == "42P01" {
                    throw Failure.schema(found: nil, needed: Self.schemaVersion, oldest: nil)
                }
                guard error.isOutage || error.isSlowness || error.isCollision, !error.isRejection else {
                    throw Failure.database(error)
                }
                if error.isCollision { continue }
                refusal.withLock { $0 = error.description }
                tellWaiting()
                if case .server = error, !told {
                    told = true
                    log.warning("the database does not take a worker yet; trying again", [("error", error.description)])
                }
                await stops.pause(backoff.next(using: &random))
            }
        }
        return nil
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
                await self.stops.firstRequest()
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

    private var mismatch: Failure? {
        misfit.withLock { $0 }
    }

    private func introduce() async throws(PostgresError) -> Bool {
        let known = try await houseLink.use { connection throws(PostgresError) in
            let state = try await Queue.schemaState(on: connection)
            if state.version < Self.schemaVersion || state.oldestWorker > Self.schemaVersion {
                misfit.withLock {
                    $0 = .schema(found: state.version, needed: Self.schemaVersion, oldest: state.oldestWorker)
                }
                throw .misconfigured(reason: "the schema does not fit")
            }
            let kinds = try await register(on: connection)
            for schedule in options.schedules { _ = try await Queue.setSchedule(schedule, on: connection) }
            return kinds
        }
        let worked = handlers.map { WorkedKind(handler: $0, gatherer: gatherers[$0.kind]) }
        kinds.withLock { $0 = Dictionary(zip(known, worked), uniquingKeysWith: { first, _ in first }) }
        try await refreshQueues()
        let direct = try await hears()
        // Before the first claim: a worker that could not open these would hold jobs that it cannot end.
        for link in [flushLink, claimLink, readLink, sweepLink] { _ = try await link.connection() }
        try await openSession(direct: direct)
        return direct
    }

    func closeLinks() async {
        for link in [
            claimLink, flushLink, beatLink, readLink, contentsLink, houseLink, sweepLink, listenLink, clockLink,
        ] {
            await link.close()
        }
    }

    /// Makes names known one by one: who held some and waited for others could meet a caller who names them the other way round, and that one would fail.
    private func register(on connection: Connection) async throws(PostgresError) -> [Int32] {
        for queue in Set(options.queues.map(\.name) + handlers.compactMap(\.queue) + ["default"]).sorted() {
            try await Queue.registerQueues(on: connection, [queue])
        }
        var kinds: [Int32] = []
        for handler in handlers {
            kinds += try await Queue.registerKinds(on: connection, [(handler.kind, handler.queue)])
        }
        return kinds
    }

    /// Whether notifications reach us: through a transaction pooler they do not.
    private func hears() async throws(PostgresError) -> Bool {
        let connection = try await listenLink.connection()
        if await connection.isPooled {
            await listenLink.close()
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
        opened.withLock { _ = $0.insert(session) }
        if direct {
            try await listenLink.use { connection throws(PostgresError) in
                try await connection.execute("select pg_advisory_unlock_all()")
                try await connection.execute("select pg_advisory_lock($1)", [.int8(session)])
                try await hearing.begin(on: connection)
            }
        }
        let ids = kinds.withLock { Array($0.keys) }
        try await beatLink.use { connection throws(PostgresError) in
            try await Queue.openSession(
                on: connection,
                SessionCard(
                    id: session, name: options.name, host: Options.host, pid: getpid(), version: options.versionText,
                    queues: options.queues.isEmpty ? nil : options.queues.map(\.name), kinds: ids,
                    slots: Int32(options.slots), direct: direct, rooms: options.rooms))
        }
        desk.begin(session: session)
    }

    func refreshQueues() async throws(PostgresError) {
        let infos = try await houseLink.use { connection throws(PostgresError) in try await Queue.queues(on: connection)
        }
        let bounds = Dictionary(options.queues.map { ($0.name, $0.slots) }, uniquingKeysWith: { first, _ in first })
        var table = KnownQueues()
        for info in infos {
            table.names[info.id] = info.name
            table.lines[info.id] = FairShares.Line(main: info.main, weight: info.weight)
            if info.limited { table.limited.insert(info.id) }
            if info.retention == 0 { table.short.append(info.id) }
            if info.retention == 2 { table.long.append(info.id) }
            guard bounds.isEmpty || bounds[info.name] != nil else { continue }
            if !info.paused { table.open.append(info.id) }
            if let bound = (bounds[info.name] ?? nil) ?? options.bounds[info.name] {
                desk.setBound(bound, line: info.id, of: info.main)
            }
        }
        if !bounds.isEmpty {
            table.serves = Set(infos.filter { bounds[$0.name] != nil }.map(\.id))
        }
        let before = queues.withLock { queues in
            defer { queues = table }
            return queues
        }
        doorman.serve(queues: table.serves.map { Array($0) })
        if Set(before.open) != Set(table.open) { wakeups.lookEverywhere() }
    }
}
