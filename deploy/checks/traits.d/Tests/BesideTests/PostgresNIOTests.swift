#if PostgresNIO
    import Foundation
    import Logging
    import Millrace
    import MillracePostgresNIO
    import PostgresNIO
    import Testing

    private struct Thrown: Error {}

    @Suite struct PostgresNIOTests {
        private let logger = Logger(label: "nio") { _ in SwiftLogNoOpLogHandler() }

        @Test func `a job stands and falls with the transaction of PostgresNIO`() async throws {
            try await withQueue("nio") { database, client in
                let place = ProcessInfo.processInfo.environment["BESIDE_SOCKET"] ?? ""
                let postgres = PostgresClient(
                    configuration: .init(
                        unixSocketPath: "\(place)/.s.PGSQL.5432", username: "postgres", password: nil,
                        database: "nio"), backgroundLogger: logger)
                let running = Task { await postgres.run() }
                defer { running.cancel() }

                // Thrown: nothing has happened.
                await #expect(throws: (any Error).self) {
                    try await postgres.withTransaction(logger: logger) { connection in
                        try await Receipt(order: 1).enqueue(on: connection, logger: logger)
                        throw Thrown()
                    }
                }
                // Committed, with everything that options can say.
                let note = #"a "note" with \ and { and ü, 你"#
                let options = EnqueueOptions(
                    delay: .seconds(1), uniqueKey: note, uniqueFor: .seconds(60), queue: "mail", priority: 2,
                    tenant: "t", maxAttempts: 3, tags: [note, ""], metadata: ["a": note])
                let (first, second) = try await postgres.withTransaction(logger: logger) { connection in
                    let first = try await Receipt(order: 2, note: note)
                        .enqueue(on: connection, options: options, logger: logger)
                    let second = try await Receipt(order: 3).enqueue(on: connection, options: options, logger: logger)
                    return (first, second)
                }
                #expect(first == second)

                let worker = Worker(database: database, log: .silent)
                worker.handle(Receipt.self) { receipt, context in
                    let metadata = try context.metadata(as: [String: String].self)
                    guard receipt.order == 2, receipt.note == note, metadata?["a"] == note, context.queue == "mail",
                        context.tags == [note, ""], context.maxAttempts == 3
                    else { return .discard("it is not as it was enqueued") }
                    return .done
                }
                async let report = worker.run(handlesSignals: false)
                #expect(try await client.end(of: first) == .succeeded)
                worker.drain()
                #expect(try await report.finished == 1)
            }
        }
    }
#endif
