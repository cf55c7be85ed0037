import CommandKit
import Glibc
package import Postgres
import Synchronization
package import Telemetry
import Workers

/// Makes calls at their intended times, whatever the earlier ones do, on several connections: an open loop. A late caller makes the next
/// call at once, and latencies count from the intended time, not from when the call's turn came.
package struct Pacer: Sendable {
    package struct Outcome: Sendable {
        package var calls = 0
        /// From the intended time to the call: how late the callers were.
        package var behind = Histogram()
        /// From the intended time to the answer.
        package var answered = Histogram()
        /// When the last call was answered.
        package var ended: Int64 = 0

        package mutating func merge(_ other: Outcome) {
            calls += other.calls
            behind.merge(other.behind)
            answered.merge(other.answered)
            ended = max(ended, other.ended)
        }
    }

    private let connections: [Connection]
    private let taken = Taken()

    private final class Taken: Sendable {
        private let next = Mutex(0)

        func one(of calls: Int) -> Int? {
            next.withLock { next in
                guard next < calls else { return nil }
                defer { next += 1 }
                return next
            }
        }
    }

    /// Connects the callers. A pacer runs once.
    package static func open(_ options: ConnectionOptions, callers: Int) async throws(PostgresError) -> Pacer {
        var connections: [Connection] = []
        for number in 0..<callers {
            connections.append(try await Connection.open(options, name: "load-\(number)"))
        }
        return Pacer(connections: connections)
    }

    private init(connections: [Connection]) {
        self.connections = connections
    }

    /// Returns when the last call is answered; the first that throws ends all.
    package func run(
        _ cadence: Cadence, call: @escaping @Sendable (Int, Connection) async throws -> Void
    ) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for connection in connections {
                group.addTask { [taken] in
                    var outcome = Outcome()
                    while let number = taken.one(of: cadence.calls) {
                        let due = cadence.due(number)
                        try await connection.sleep(until: due)
                        let called = PracticeMarks.now()
                        try await call(number, connection)
                        outcome.ended = PracticeMarks.now()
                        outcome.calls += 1
                        outcome.behind.record(nanoseconds: UInt64(max(0, called - due)))
                        outcome.answered.record(nanoseconds: UInt64(max(0, outcome.ended - due)))
                    }
                    return outcome
                }
            }
            var whole = Outcome()
            for try await one in group { whole.merge(one) }
            for connection in connections { await connection.close() }
            return whole
        }
    }
}

extension Connection {
    /// On the connection's own thread, because it wakes within some microseconds. All but the end of a long wait can be cancelled.
    fileprivate func sleep(until time: Int64) async throws {
        let left = time - PracticeMarks.now()
        if left > 100_000_000 { try await Task.sleep(for: .nanoseconds(left - 50_000_000)) }
        var until = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nil) == EINTR {}
    }
}
