import Faults
package import Postgres
package import Supervision
import Synchronization
import Telemetry

/// One worker's view of a provider that was down for 25 seconds and is well again, on clocks that only the test moves: the worker's and its
/// database's together. The database needs its movable clock.
package final class ProviderOutage: Sendable {
    private final class Clock: Sendable {
        private let moved = Mutex(Duration.zero)

        var now: Moment { Moment.now + moved.withLock { $0 } }

        func move(_ span: Duration) { moved.withLock { $0 += span } }
    }

    package let supervisor: Supervisor
    private let clock: Clock
    private let connection: Connection

    /// The provider fails often enough that the worker stops calling it.
    package init(of provider: String, in database: TestDatabase, on connection: Connection) async throws {
        let clock = Clock()
        var options = Supervisor.Options()
        options.database = database.options
        options.name = "lone"
        options.retryShare = 1
        options.breaker.open = .seconds(25)
        options.breaker.longestOpen = .seconds(25)
        options.now = { clock.now }
        supervisor = Supervisor(options, log: .silent)
        (self.clock, self.connection) = (clock, connection)
        await supervisor.flush()
        for _ in 0..<options.breaker.failures {
            try? await supervisor.call(provider) { _ in throw Fault(.unavailable, "it is down") }
        }
        // The fleet counts votes that know its decision.
        for _ in 0..<2 { await supervisor.flush() }
        let isOpen = try await connection.bool(
            "select state = 'open' from millrace.providers where provider = '\(provider)'")
        guard isOpen else { throw NeverHappened(what: "the fleet stops calling \(provider)", within: .zero) }
    }

    /// Time goes by. As always, the worker hears of the fleet once a second.
    package func pass(_ span: Duration) async throws {
        var left = span
        while left > .zero {
            let step = min(left, .seconds(1))
            clock.move(step)
            try await connection.run("select millrace.test_clock_advance('\(step / .microseconds(1)) microseconds')")
            await supervisor.flush()
            left -= step
        }
    }

    /// Tries until it is done. `attempt` tells how long to wait before the next try; nil: done.
    /// - Returns: the waits, of which the first lasts until the worker may call again.
    package func tries(atMost most: Int = 20, _ attempt: () async throws -> Duration?) async throws -> [Duration] {
        var waits: [Duration] = []
        while let wait = try await attempt() {
            waits.append(wait)
            guard waits.count < most else { throw NeverHappened(what: "an end; it waited \(waits)", within: .zero) }
            try await pass(wait)
        }
        return waits
    }
}
