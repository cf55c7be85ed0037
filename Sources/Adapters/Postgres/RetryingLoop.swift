/// Work that is repeated although it fails now and then: after a failure comes a pause, and each is longer than the one before until the
/// work succeeds again.
package struct RetryingLoop: Sendable {
    /// What follows a failure.
    package enum Next: Sendable {
        case pause, atOnce, end
    }

    private var backoff: Backoff
    private var isOver = false

    private init(cap: Duration) {
        backoff = Backoff(cap: cap)
    }

    /// In a long turn: what it needs is there, so the next pause is the shortest. The end of a turn without an error says the same.
    package mutating func worked() {
        backoff.reset()
    }

    /// No turn follows this one.
    package mutating func end() {
        isOver = true
    }

    /// Repeats `turn` until `goesOn` says no, or a turn or a failure ends the loop.
    /// - Parameters:
    ///   - cap: the longest pause.
    ///   - pause: waits; it may end sooner.
    ///   - failed: logs the failure, cleans up after it, and says what follows.
    package static func run<Failure: Error>(
        cap: Duration = .seconds(1), isolation: isolated (any Actor)? = #isolation,
        while goesOn: () -> Bool = { !Task.isCancelled },
        pause: (Duration) async -> Void = { try? await Task.sleep(for: $0) },
        _ turn: (inout RetryingLoop) async throws(Failure) -> Void, failed: (Failure) async -> Next
    ) async {
        var loop = RetryingLoop(cap: cap)
        while goesOn(), !loop.isOver {
            do throws(Failure) {
                try await turn(&loop)
                loop.worked()
            } catch {
                switch await failed(error) {
                case .pause: await pause(loop.backoff.next())
                case .atOnce: continue
                case .end: return
                }
            }
        }
    }

    /// Repeats `work` until it succeeds.
    /// - Parameters:
    ///   - pause: waits; it may end sooner.
    ///   - failed: logs the failure and says whether a pause follows; throws what is to end the loop.
    package static func value<Value, Failure: Error, Refusal: Error>(
        cap: Duration = .seconds(1), isolation: isolated (any Actor)? = #isolation,
        pause: (Duration) async throws(Refusal) -> Void, of work: () async throws(Failure) -> Value,
        failed: (Failure) async throws(Refusal) -> Bool
    ) async throws(Refusal) -> Value {
        var backoff = Backoff(cap: cap)
        while true {
            let failure: Failure
            do throws(Failure) {
                return try await work()
            } catch {
                failure = error
            }
            if try await failed(failure) { try await pause(backoff.next()) }
        }
    }
}
