import Composition
import Encryption
public import Millrace
public import PageKit
public import RoomKit
public import Schema

extension Room {
    /// A room of your own. The guide `deploy/guides/writing-a-room.md` walks through one.
    ///
    /// ```swift
    /// extension Room {
    ///     static let shelf = Room(shelfSchema, verbs: [listBooks]) { worker, database in
    ///         worker.handle(Remind.self, queue: "shelf") { job, context in
    ///             try await database.rows("select millrace.shelf_reminded($1::bigint)", "\(job.loan)")
    ///             return .done
    ///         }
    ///     }
    /// }
    /// ```
    /// - Parameters:
    ///   - schema: Its tables, functions, hooks and doors; also its name.
    ///   - settings: Its environment variables.
    ///   - nouns: A line of help for each noun of its verbs.
    ///   - verbs: Its commands.
    ///   - pages: Its pages of the console.
    ///   - checks: What `doctor` looks at.
    ///   - status: What it says in `status`.
    ///   - jobs: Registers its handlers and schedules.
    ///   - service: Runs beside the jobs until it is cancelled. The worker cancels it when the last job has ended.
    public init(
        _ schema: RoomSchema, settings: [RoomSetting] = [], nouns: [String: String] = [:], verbs: [RoomVerb] = [],
        pages: [RoomPage] = [], checks: [RoomCheck] = [], status: RoomStatus? = nil,
        jobs: @escaping @Sendable (Worker, RoomDatabase) throws -> Void = { _, _ in },
        service: (@Sendable (RoomDatabase) async -> Void)? = nil
    ) {
        self.init(
            schema, settings: settings.map(\.setting), nouns: nouns, verbs: verbs.map(\.command), pages: pages,
            checks: checks, status: status,
            parts: { context in
                guard let service else { return RoomParts() }
                return RoomParts(run: { await service(RoomDatabase(context.pool, settings: context.settings)) })
            },
            jobs: { database, keys in
                let worker = Worker(keys: .none, log: .silent)
                try jobs(worker, database)
                let registered = try worker.registry(keys: keys)
                guard registered.middleware.isEmpty else {
                    throw QueueError(
                        .misconfigured,
                        "The room \(schema.name) wraps every run, also those of others; do it in its handlers.")
                }
                return RoomJobs(handlers: registered.handlers, schedules: registered.schedules)
            })
    }
}
