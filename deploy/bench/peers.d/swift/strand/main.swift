import Foundation
import Logging
import PostgresNIO
import ServiceLifecycle
import Strand

struct Nothing: Activity {
    let handle: @Sendable (Note) async throws -> Void

    func run(input: Note, context: ActivityContext) async throws -> StrandVoid {
        try await handle(input)
        return .done
    }
}

/// Strand, with activities that are enqueued by themselves. Its leases keep their usual 60 seconds.
struct StrandPeer: Peer {
    private let postgres: PostgresClient
    private let strand: StrandService
    private let logger: Logger

    init(_ place: Place, handle: @escaping @Sendable (Note) async throws -> Void) async throws {
        var logger = Logger(label: "peer")
        logger.logLevel = .error
        self.logger = logger
        postgres = PostgresClient(
            configuration: .init(
                unixSocketPath: "\(place.folder)/.s.PGSQL.5432", username: "postgres", password: nil,
                database: place.database), backgroundLogger: logger)
        strand = StrandService(
            postgres: postgres,
            options: .init(
                queues: [
                    .init(
                        name: "default", activities: [Nothing(handle: handle)], activityConcurrency: place.slots)
                ], logger: logger))
    }

    /// The tables are made by strand.sql.
    func prepare() async throws {
        try await strand.client().registerNamespace()
        try await strand.client().createQueue("default")
    }

    func enqueue(_ note: Note) async throws {
        _ = try await strand.client().enqueueActivity(Nothing.self, input: note)
    }

    func enqueue(many: Int) async throws {
        var left = many
        while left > 0 {
            let count = min(left, 1000)
            // The keys that it makes itself have a millisecond and 16 random bits: a thousand in one call collide.
            try await strand.client().enqueueActivities(
                Nothing.self, inputs: Array(repeating: Note(), count: count),
                idempotencyKeys: (0..<count).map { _ in UUID().uuidString })
            left -= count
        }
    }

    func work() async throws {
        let group = ServiceGroup(
            services: [postgres, strand], gracefulShutdownSignals: [.sigterm], logger: logger)
        try await group.run()
    }

    func connected(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let running = Task { await postgres.run() }
        defer { running.cancel() }
        try await body()
    }
}

try await PeerProgram<StrandPeer>().run()
