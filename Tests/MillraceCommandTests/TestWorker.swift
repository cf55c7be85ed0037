import Encryption
import Postgres
import Telemetry
import Workers

/// A worker for the practice kinds while the body runs.
func withWorker(at url: String, keys: Keyring = .empty, _ body: () async throws -> Void) async throws {
    var options = JobWorker.Options(database: ConnectionOptions(location: url), name: "test")
    options.keys = keys
    let worker = JobWorker(
        options: options, handlers: Practice.handlers,
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
