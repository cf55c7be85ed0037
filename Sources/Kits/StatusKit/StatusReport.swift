package import JSON
package import MillraceQueues
package import Postgres
package import Supervision

/// The result of a section of the status, or why there is none.
package enum Section<Value: Sendable>: Sendable {
    case known(Value)
    case unavailable(String)

    package var value: Value? {
        guard case .known(let value) = self else { return nil }
        return value
    }

    package var reason: String? {
        guard case .unavailable(let reason) = self else { return nil }
        return reason
    }
}

/// Everything `status` shows, read a section at a time, so that one slow or forbidden answer hides no other.
package struct StatusReport: Sendable {
    package var schema: Section<SchemaState>
    package var queues: Section<[QueueDepth]>
    package var rates: Section<[RateRow]>
    package var workers: Section<[WorkerRow]>
    /// Those that need attention and those that come next; the list may be long.
    package var schedules: Section<[ScheduleRow]>
    package var providers: Section<[ProviderRow]>
    package var orphans: Section<[Orphan]>
    package var deadLastHour: Section<Int>
    package var deadLastDay: Section<Int>
    package var blocked: Section<Int>
    package var limits: Section<[LimitRow]>
    package var parked: Section<Int>
    package var sealed: Section<[SealedKey]>
    package var pins: Section<[PinRow]>
    package var sizes: Section<[SizeRow]>
    package var partitions: Section<Partitions>
    /// What the rooms say of themselves.
    package var parts: [RoomPart] = []
    /// How many more workers can open.
    package var connections: Section<ConnectionsLeft> = .known(ConnectionsLeft(left: .max, limit: .server))
    /// What may slow the queue down or stop it from outside.
    package var dangers: Section<[DangerRow]> = .known([])
    /// Kinds that go wrong.
    package var troubles: Section<[TroubleRow]> = .known([])
    /// Runs and jobs that take a worker's slots or its life.
    package var runTroubles: Section<[RunTrouble]> = .known([])
    /// What rooms have the core call, and fails.
    package var hooks: Section<[HookTrouble]> = .known([])
    /// Builds of pinned workers.
    package var builds: Section<[BuildRow]> = .known([])
    /// How many jobs wait for another attempt.
    package var retries: Section<[RetryRow]> = .known([])
    package var rooms: Section<[RoomRow]> = .known([])
    /// What waits in the rooms whose work is no jobs.
    package var lanes: Section<[LaneRow]> = .known([])
    /// What the queues wait for that do not move, by their names, from `millrace.why_queue`.
    package var whys: [String: JSONValue] = [:]
    /// Why the job died that died last, where any did in the last hour, from `millrace.why`.
    package var latestDead: DeadJob?
    /// Why the database takes no writes, where a worker is silent; nil: it takes them, or was not asked.
    package var writeRefusal: String?
    /// nil: everything was counted.
    package var cap: Int?

    package static let mostSchedules = 20
    /// The queues that have waited longest are asked why.
    package static let mostWhys = 10
    /// Those that it opens before its first claim, and the one that wakes it.
    package static let connectionsOfWorker = 8

    package struct DeadJob: Sendable {
        package let job: Int64
        package let sentence: String
        package let command: String?
    }

    package struct Orphan: Sendable {
        package let kind: String
        package let waiting: Int
    }

    /// With a small cap everything is read up to a small bound: the console asks every few seconds.
    private static func bounds(_ cap: Int?) -> (orphans: Int, retries: Int) {
        (cap ?? .max) < 10_000 ? (10_000, 1_000) : (2_000_000, 10_000)
    }

    /// - Parameter patience: the deadline of each section.
    package static func read(
        of rooms: [Room], on connection: Connection, cap: Int?, patience: Duration
    ) async throws -> StatusReport {
        let bounds = Self.bounds(cap)
        let (dangers, queues, patience) = try await first(on: connection, cap: cap, patience: patience)
        let schema = await section { () throws(PostgresError) in try await Queue.schemaState(on: connection) }
        var report = StatusReport(
            schema: schema,
            queues: queues,
            rates: await section { () throws(PostgresError) in
                try await Queue.rates(on: connection, deadline: patience)
            },
            workers: await section { () throws(PostgresError) in
                try await Queue.workers(on: connection, deadline: patience)
            },
            schedules: await section { () throws(PostgresError) in
                try await Queue.schedules(limit: mostSchedules + 1, on: connection, deadline: patience)
            },
            providers: await section { () throws(PostgresError) in
                try await Providers.list(on: connection, deadline: patience)
            },
            orphans: await section { () throws(PostgresError) in
                try await Queue.orphans(span: bounds.orphans, on: connection, deadline: patience).map {
                    Orphan(kind: $0.kind, waiting: $0.waiting)
                }
            },
            deadLastHour: await section { () throws(PostgresError) in
                try await Queue.deadCount(seconds: 3600, on: connection, deadline: patience)
            },
            deadLastDay: await section { () throws(PostgresError) in
                try await Queue.deadCount(seconds: 86_400, on: connection, deadline: patience)
            },
            blocked: await section { () throws(PostgresError) in
                try await Queue.blockedCount(on: connection, deadline: patience)
            },
            limits: await section { () throws(PostgresError) in
                try await Queue.limits(on: connection, deadline: patience)
            },
            parked: await section { () throws(PostgresError) in
                try await Queue.parkedCount(on: connection, deadline: patience)
            },
            sealed: await section { () throws(PostgresError) in
                try await Queue.sealedKeys(cap: bounds.retries, on: connection, deadline: patience)
            },
            pins: await section { () throws(PostgresError) in
                try await Queue.pins(on: connection, deadline: patience)
            },
            sizes: await section { () throws(PostgresError) in
                try await Queue.sizes(on: connection, deadline: patience)
            },
            partitions: await section { () throws(PostgresError) in
                try await Queue.partitions(on: connection, deadline: patience)
            },
            cap: cap)
        report.dangers = dangers
        await report.estimate(on: connection, patience: patience)
        await report.readTroubles(on: connection, patience: patience)
        await report.readParts(of: rooms, on: connection, patience: patience)
        await report.readWhys(on: connection, patience: patience)
        await report.readLatestDead(on: connection, patience: patience)
        if report.workers.value?.contains(where: \.isSilent) == true {
            report.writeRefusal = await writeRefusal(on: connection, patience: patience)
        }
        return report
    }

    /// Workers fall silent when their beats cannot be written, and then nothing is the matter with them.
    private static func writeRefusal(on connection: Connection, patience: Duration) async -> String? {
        do throws(PostgresError) {
            try await Queue.tryWriting(on: connection, deadline: patience)
            return nil
        } catch {
            return error.saysNothingIsWritten ? DatabaseFailure(error).sentence : nil
        }
    }

    /// Where counting stopped, what the console shows; without an answer, "more than" is said.
    private mutating func estimate(on connection: Connection, patience: Duration) async {
        guard let cap, var found = queues.value, found.contains(where: { $0.ready >= cap }) else { return }
        let estimates = await Self.section { () throws(PostgresError) in
            try await Queue.readyEstimates(on: connection, deadline: patience)
        }
        guard let estimates = estimates.value else { return }
        for index in found.indices where found[index].ready >= cap {
            found[index].estimated = estimates[found[index].name]
        }
        queues = .known(found)
    }

    /// Without an answer the verdict says that a queue does not move, and not why.
    private mutating func readWhys(on connection: Connection, patience: Duration) async {
        let stalled = (queues.value ?? []).filter { $0.isLate || ($0.pausedAt != nil && $0.ready > 0) }
        for queue in stalled.sorted(by: { ($0.oldestAge ?? 0) > ($1.oldestAge ?? 0) }).prefix(Self.mostWhys) {
            let answer = await Self.section { () throws(PostgresError) in
                try await Queue.why(queue: queue.name, on: connection, deadline: patience)
            }
            if let bytes = answer.value ?? nil { whys[queue.name] = try? JSONValue.read(bytes) }
        }
    }

    /// Without an answer the verdict says how many died, and not of what.
    private mutating func readLatestDead(on connection: Connection, patience: Duration) async {
        guard let dead = deadLastHour.value, dead > 0 else { return }
        let lately = DeadFilter(since: .ago(.seconds(3600)))
        let ids = await Self.section { () throws(PostgresError) in
            try await Queue.deadIDs(lately, after: nil, limit: 1, on: connection, deadline: patience)
        }
        guard let job = ids.value?.first else { return }
        let answer = await Self.section { () throws(PostgresError) in
            try await Queue.why(job, on: connection, deadline: patience)
        }
        guard let bytes = answer.value ?? nil, let why = try? JSONValue.read(bytes),
            let sentence = why["sentence"]?.text
        else { return }
        latestDead = DeadJob(job: job, sentence: sentence, command: why["command"]?.text)
    }

    /// What stands beside the queues, and what goes wrong.
    private mutating func readTroubles(on connection: Connection, patience: Duration) async {
        let cap = cap
        let bounds = Self.bounds(cap)
        connections = await Self.section { () throws(PostgresError) in
            try await Queue.connectionsLeft(on: connection, deadline: patience)
        }
        troubles = await Self.section { () throws(PostgresError) in
            try await Queue.troubles(cap: bounds.retries, on: connection, deadline: patience)
        }
        runTroubles = await Self.section { () throws(PostgresError) in
            try await Queue.runTroubles(on: connection, deadline: patience)
        }
        hooks = await Self.section { () throws(PostgresError) in
            try await Queue.hookTroubles(on: connection, deadline: patience)
        }
        retries = await Self.section { () throws(PostgresError) in
            try await Queue.retries(cap: bounds.retries, on: connection, deadline: patience)
        }
        builds = await Self.section { () throws(PostgresError) in
            try await Queue.builds(on: connection, deadline: patience)
        }
        rooms = await Self.section { () throws(PostgresError) in
            try await Queue.rooms(on: connection, deadline: patience)
        }
        lanes = await Self.section { () throws(PostgresError) in
            try await Queue.roomLanes(cap: cap, on: connection, deadline: patience)
        }
    }

    /// What holds the database up, the queues, and how long each other section may take: what waits behind somebody's lock is not waited
    /// for, because who holds it is the answer.
    private static func first(
        on connection: Connection, cap: Int?, patience: Duration
    ) async throws(PostgresError) -> (Section<[DangerRow]>, Section<[QueueDepth]>, Duration) {
        let short = min(patience, .milliseconds(100))
        let before = await dangers(on: connection, patience: patience)
        let left = isHeldUp(before) ? short : patience
        let queues = try await queues(on: connection, cap: cap, patience: left)
        if queues.value != nil { return (before, queues, left) }
        // Somebody may have begun a moment ago.
        let after = await dangers(on: connection, patience: patience)
        return isHeldUp(after) ? (after, queues, short) : (before, queues, left)
    }

    private static func dangers(on connection: Connection, patience: Duration) async -> Section<[DangerRow]> {
        await section { () throws(PostgresError) in try await Queue.dangers(on: connection, deadline: patience) }
    }

    private static func isHeldUp(_ dangers: Section<[DangerRow]>) -> Bool {
        dangers.value?.contains { $0.alarm == .heldUp } == true
    }

    /// A login without the right to count jobs is told that, and not that everything is in trouble.
    private static func queues(
        on connection: Connection, cap: Int?, patience: Duration
    ) async throws(PostgresError) -> Section<[QueueDepth]> {
        do throws(PostgresError) {
            return .known(try await Queue.depths(cap: cap, on: connection, deadline: patience))
        } catch {
            guard error.sqlState != "42501" else { throw error }
            return .unavailable(DatabaseFailure(error).sentence)
        }
    }

    static func section<Value: Sendable>(
        _ read: () async throws(PostgresError) -> Value
    ) async -> Section<Value> {
        do throws(PostgresError) {
            return .known(try await read())
        } catch {
            return .unavailable(DatabaseFailure(error).sentence)
        }
    }
}
