import CheckIns
import Documents
import Mail
import Notices
import Postgres
import Quests
import Queues
import Supervision
import Webhooks

/// The result of a section of the status, or why there is none.
enum Section<Value: Sendable>: Sendable {
    case known(Value)
    case unavailable(String)

    var value: Value? {
        guard case .known(let value) = self else { return nil }
        return value
    }

    var reason: String? {
        guard case .unavailable(let reason) = self else { return nil }
        return reason
    }
}

/// Everything `status` shows, read a section at a time, so that one slow or forbidden answer hides no other.
struct StatusReport: Sendable {
    var schema: Section<SchemaState>
    var queues: Section<[QueueDepth]>
    var rates: Section<[RateRow]>
    var workers: Section<[WorkerRow]>
    /// Those that need attention and those that come next; the list may be long.
    var schedules: Section<[ScheduleRow]>
    var providers: Section<[ProviderRow]>
    /// nil: the schema knows no mail.
    var mail: Section<MailAdmin.State?>
    var orphans: Section<[Orphan]>
    var deadLastHour: Section<Int>
    var deadLastDay: Section<Int>
    var blocked: Section<Int>
    var limits: Section<[LimitRow]>
    var parked: Section<Int>
    var sealed: Section<[SealedKey]>
    var pins: Section<[PinRow]>
    var sizes: Section<[SizeRow]>
    var partitions: Section<Partitions>
    var quests: Section<QuestAdmin.State> = .known(.init())
    var documents: Section<DocumentAdmin.State?> = .known(nil)
    var checkIns: Section<CheckInAdmin.State> = .known(.init())
    var notices: Section<NoticeAdmin.State> = .known(.init())
    var webhooks: Section<WebhookAdmin.State> = .known(.init())
    /// How many more workers can open.
    var connections: Section<ConnectionsLeft> = .known(ConnectionsLeft(left: .max, limit: .server))
    /// Kinds that go wrong.
    var troubles: Section<[TroubleRow]> = .known([])
    /// How many jobs wait for another attempt.
    var retries: Section<[RetryRow]> = .known([])
    var rooms: Section<[RoomRow]> = .known([])
    /// What waits in the rooms whose work is no jobs.
    var lanes: Section<[LaneRow]> = .known([])
    /// nil: everything was counted.
    var cap: Int?

    static let mostSchedules = 20
    /// Those that it opens before its first claim, and the one that wakes it.
    static let connectionsOfWorker = 8

    struct Orphan: Sendable {
        let kind: String
        let waiting: Int
    }

    /// - Parameter patience: the deadline of each section.
    static func read(on connection: Connection, cap: Int?, patience: Duration) async throws -> StatusReport {
        let schema = await section { () throws(PostgresError) in try await Queue.schemaState(on: connection) }
        var report = StatusReport(
            schema: schema,
            queues: try await queues(on: connection, cap: cap, patience: patience),
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
            mail: await section { () throws(PostgresError) in
                try await MailAdmin.state(on: connection, deadline: patience)
            },
            orphans: await section { () throws(PostgresError) in
                try await Queue.orphans(on: connection, deadline: patience).map {
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
                try await Queue.sealedKeys(cap: 10_000, on: connection, deadline: patience)
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
        await report.readRooms(on: connection, patience: patience)
        return report
    }

    /// What stands beside the queues: the rooms, and what goes wrong.
    private mutating func readRooms(on connection: Connection, patience: Duration) async {
        let cap = cap
        quests = await Self.section { () throws(PostgresError) in
            try await QuestAdmin.state(on: connection, deadline: patience)
        }
        documents = await Self.section { () throws(PostgresError) in
            try await DocumentAdmin.state(on: connection, deadline: patience)
        }
        checkIns = await Self.section { () throws(PostgresError) in
            try await CheckInAdmin.state(on: connection, deadline: patience)
        }
        notices = await Self.section { () throws(PostgresError) in
            try await NoticeAdmin.state(on: connection, deadline: patience)
        }
        webhooks = await Self.section { () throws(PostgresError) in
            try await WebhookAdmin.state(on: connection, deadline: patience)
        }
        connections = await Self.section { () throws(PostgresError) in
            try await Queue.connectionsLeft(on: connection, deadline: patience)
        }
        troubles = await Self.section { () throws(PostgresError) in
            try await Queue.troubles(on: connection, deadline: patience)
        }
        retries = await Self.section { () throws(PostgresError) in
            try await Queue.retries(on: connection, deadline: patience)
        }
        rooms = await Self.section { () throws(PostgresError) in
            try await Queue.rooms(on: connection, deadline: patience)
        }
        lanes = await Self.section { () throws(PostgresError) in
            try await Queue.roomLanes(cap: cap, on: connection, deadline: patience)
        }
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

    private static func section<Value: Sendable>(
        _ read: () async throws(PostgresError) -> Value
    ) async -> Section<Value> {
        do throws(PostgresError) {
            return .known(try await read())
        } catch {
            return .unavailable(DatabaseFailure(error).sentence)
        }
    }
}
