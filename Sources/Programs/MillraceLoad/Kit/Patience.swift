import CommandKit

/// Waits for what must come about.
enum Patience {
    /// Looks again after each pause, and fails with the complaint when the time is over.
    static func wait(
        _ limit: Duration, every pause: Duration = .milliseconds(50), else complaint: @autoclosure () -> String,
        until condition: () async throws -> Bool
    ) async throws {
        guard try await waited(limit, every: pause, until: condition) else { throw Failure(complaint()) }
    }

    /// Whether it came about in time.
    static func waited(
        _ limit: Duration, every pause: Duration = .milliseconds(50), until condition: () async throws -> Bool
    ) async throws -> Bool {
        let deadline = ContinuousClock.now + limit
        while try await !condition() {
            guard ContinuousClock.now < deadline else { return false }
            try await Task.sleep(for: pause)
        }
        return true
    }
}
