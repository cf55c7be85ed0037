import Health
import Listeners
import Postgres
import Synchronization
import Telemetry
import Threads
import Workers

/// The worker of one of several databases. What keeps it from its database is its own affair: it tries again, and the others go on.
final class DatabaseWorker: Sendable {
    private struct State {
        var worker: ComposedWorker?
        /// Why it has not begun.
        var refusal: String?
        var stopRequests = 0
    }

    let name: String
    private let compose: @Sendable () async throws -> ComposedWorker
    private let log: Log
    private let state = Mutex(State())
    private let stopping = Wakeup()

    init(_ name: String, log: Log, compose: @escaping @Sendable () async throws -> ComposedWorker) {
        (self.name, self.log, self.compose) = (name, log, compose)
    }

    /// What it brings to the listener, in its own part: `/eu/…`.
    var routes: [Route] { state.withLock { $0.worker }.map { $0.routes.map { $0.below(name) } } ?? [] }

    var health: DatabaseHealth {
        let (worker, refusal) = state.withLock { ($0.worker, $0.refusal) }
        return DatabaseHealth(
            name: name, health: worker?.engine.health, refusal: refusal,
            metrics: { await worker?.metrics(nil) ?? "" })
    }

    /// A second call stops at once.
    func drain() {
        let engine = state.withLock { state in
            state.stopRequests += 1
            return state.worker?.engine
        }
        engine?.drain()
        stopping.fire()
    }

    private var isStopping: Bool { state.withLock { $0.stopRequests > 0 } }

    /// Until it is drained. Throws what no other try would change.
    func run() async throws -> JobWorker.Report {
        var backoff = Backoff(first: .milliseconds(250), cap: .seconds(5))
        while !isStopping {
            do {
                guard let worker = try await composed() else { break }
                return try await worker.run()
            } catch {
                if Self.isForGood(error) { throw error }
                let sentence = Self.sentence(error)
                let isNews = state.withLock { state in
                    defer { (state.worker, state.refusal) = (nil, sentence) }
                    return state.refusal != sentence
                }
                if isNews { log.warning("this database cannot be served now; trying again", [("error", sentence)]) }
            }
            await stopping.wait(for: backoff.next())
        }
        return .nothing
    }

    /// nil: a stop came first. A database that does not answer holds no stop up.
    private func composed() async throws -> ComposedWorker? {
        let worker = try await withThrowingTaskGroup(of: ComposedWorker?.self) { group in
            group.addTask { try await self.compose() }
            group.addTask {
                while !self.isStopping, !Task.isCancelled { await self.stopping.wait(for: .milliseconds(500)) }
                return nil
            }
            let first = try await group.next() ?? nil
            group.cancelAll()
            return first
        }
        guard let worker else { return nil }
        let requests = state.withLock { state in
            (state.worker, state.refusal) = (worker, nil)
            return state.stopRequests
        }
        for _ in 0..<requests { worker.engine.drain() }
        return worker
    }

    /// The settings are wrong, and not the database.
    private static func isForGood(_ error: any Error) -> Bool {
        if let failure = error as? JobWorker.Failure {
            switch failure {
            case .noHandlers: return true
            case .schema, .database: return false
            }
        }
        return (error as? any CommandFailure)?.exitCode == .misused
    }

    private static func sentence(_ error: any Error) -> String {
        switch error {
        case let failure as any CommandFailure: failure.sentence + (failure.hint.map { "; \($0)" } ?? "")
        case let failure as JobWorker.Failure: failure.description
        default: "\(type(of: error))"
        }
    }
}
