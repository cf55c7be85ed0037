import MillraceApp

/// What a stream of the app has brought so far. It goes on behind the last change when the gateway was away.
package actor Heard<Value: Sendable> {
    private var all: [Value] = []
    private var failure: (any Error)?

    package init() {}

    /// What the stream brings from now on.
    package static func of(_ stream: AsyncThrowingStream<Value, any Error>) async -> Heard<Value> {
        let heard = Heard<Value>()
        await heard.follow(stream)
        return heard
    }

    private func follow(_ stream: AsyncThrowingStream<Value, any Error>) {
        Task {
            do {
                for try await value in stream { all.append(value) }
            } catch {
                failure = error
            }
        }
    }

    /// What was brought so far, the oldest first.
    package func values() throws -> [Value] {
        if let failure { throw failure }
        return all
    }

    /// Waits for the first one of which this holds.
    @discardableResult
    package func first(_ what: String, where holds: @Sendable (Value) -> Bool) async throws -> Value {
        let end = ContinuousClock.now.advanced(by: patience)
        while ContinuousClock.now < end {
            if let found = try values().first(where: holds) { return found }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw Wrong("this has not come: \(what); the newest is \(all.last.map { "\($0)" } ?? "nothing")")
    }

    /// Waits until this holds of the newest one.
    @discardableResult
    package func newest(_ what: String, where holds: @Sendable (Value) -> Bool) async throws -> Value {
        let end = ContinuousClock.now.advanced(by: patience)
        while ContinuousClock.now < end {
            if let last = try values().last, holds(last) { return last }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw Wrong("this has not come: \(what); the newest is \(all.last.map { "\($0)" } ?? "nothing")")
    }
}
