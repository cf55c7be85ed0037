import Foundation
import Jobs
import JobsPostgres
import Logging
import PostgresMigrations
import PostgresNIO
import ServiceLifecycle

struct Noted: JobParameters {
    static let jobName = "nothing"
    var note: Note
}

/// swift-jobs on swift-jobs-postgres. A worker's lock lasts ten seconds instead of 450, and orphans are looked for every minute instead of every five.
struct SwiftJobs: Peer {
    private let postgres: PostgresClient
    private let migrations = DatabaseMigrations()
    private let jobs: JobService<PostgresJobQueue>
    private let logger: Logger

    init(_ place: Place, handle: @escaping @Sendable (Note) async throws -> Void) async throws {
        var logger = Logger(label: "peer")
        logger.logLevel = .error
        self.logger = logger
        postgres = PostgresClient(
            configuration: .init(
                unixSocketPath: "\(place.folder)/.s.PGSQL.5432", username: "postgres", password: nil,
                database: place.database), backgroundLogger: logger)
        jobs = JobService(
            await .postgres(client: postgres, migrations: migrations, logger: logger), logger: logger,
            options: .init(
                processor: .init(
                    numWorkers: place.slots, workerActiveLock: .acquire(every: .seconds(5), for: .seconds(10))),
                cleanup: .init(orphaned: .init(schedule: .everyMinute()))))
        jobs.registerJob(parameters: Noted.self) { noted, _ in try await handle(noted.note) }
    }

    func prepare() async throws {
        try await migrations.apply(client: postgres, groups: [.jobQueue], logger: logger, dryRun: false)
    }

    func enqueue(_ note: Note) async throws {
        try await jobs.push(Noted(note: note))
    }

    /// It takes one job in a call; so many calls at once as the pool has connections.
    func enqueue(many: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for n in 0..<many {
                if n >= 20 { try await group.next() }
                group.addTask { try await enqueue(Note()) }
            }
            try await group.waitForAll()
        }
    }

    func work() async throws {
        let group = ServiceGroup(
            services: [postgres, Ready(peer: self), jobs], gracefulShutdownSignals: [.sigterm], logger: logger)
        try await group.run()
    }

    func connected(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let running = Task { await postgres.run() }
        defer { running.cancel() }
        try await body()
    }

    /// A worker waits until the migrations were applied in its process.
    private struct Ready: Service {
        let peer: SwiftJobs

        func run() async throws {
            try await peer.prepare()
            try? await gracefulShutdown()
        }
    }
}

try await PeerProgram<SwiftJobs>().run()
