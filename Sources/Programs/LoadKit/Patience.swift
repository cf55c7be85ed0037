import CommandKit

/// Waits for what must come about.
package enum Patience {
    /// Looks again after each pause, and fails with the complaint when the time is over.
    package static func wait(
        _ limit: Duration, every pause: Duration = .milliseconds(50), else complaint: @autoclosure () -> String,
        until condition: () async throws -> Bool
    ) async throws {
        guard try await waited(limit, every: pause, until: condition) else { throw Failure(complaint()) }
    }

    /// How long it took; nil if it did not come about in time.
    package static func time(
        _ limit: Duration, every pause: Duration = .milliseconds(5), until condition: () async throws -> Bool
    ) async throws -> Duration? {
        let began = ContinuousClock.now
        return try await waited(limit, every: pause, until: condition) ? began.duration(to: .now) : nil
    }

    /// Whether it came about in time.
    package static func waited(
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
