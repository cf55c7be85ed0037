import Postgres
import Telemetry
import Workers

/// A worker for the practice kinds while the body runs.
func withWorker(at url: String, _ body: () async throws -> Void) async throws {
    let worker = Worker(
        options: Worker.Options(database: ConnectionOptions(location: url), name: "test"), handlers: Practice.handlers,
        log: .standardError(threshold: .error, format: .text))
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { _ = try await worker.run() }
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        worker.drain()
        try await group.waitForAll()
        try outcome.get()
    }
}
