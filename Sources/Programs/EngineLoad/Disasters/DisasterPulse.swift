import LoadKit
import Postgres
import Synchronization
import Workers

/// Jobs at a steady rate by one caller that is answered or refused, and goes on either way.
final class DisasterPulse: Sendable {
    struct Result: Sendable {
        var offered = 0
        var refused = 0
        /// Of those that were answered and had begun when the next thing was done, in milliseconds.
        var waits: [Double] = []

        var p50: Double { percentile(waits, 0.5) }
        var p99: Double { percentile(waits, 0.99) }
    }

    static let most = 200_000

    private struct State {
        var next = 0
        var answered: Set<Int> = []
    }

    private let options: ConnectionOptions
    private let starts: Starts
    private let state = Mutex(State())

    init(_ options: ConnectionOptions, starts: Starts) {
        var options = options
        options.statementDeadline = .seconds(2)
        (self.options, self.starts) = (options, starts)
    }

    /// Offers some jobs. Those of an outage are answered later, or not at all.
    func beat(jobs: Int, perSecond: Double) async throws -> Result {
        let first = state.withLock { state in
            defer { state.next += jobs }
            return state.next
        }
        let cadence = Cadence(began: PracticeMarks.now() + 50_000_000, perSecond: perSecond, calls: jobs)
        var result = Result(offered: jobs)
        var connection: Connection?
        for call in 0..<jobs {
            let pause = cadence.due(call) - PracticeMarks.now()
            if pause > 0 { try await Task.sleep(for: .nanoseconds(pause)) }
            do throws(PostgresError) {
                let open: Connection
                if let connection {
                    open = connection
                } else {
                    open = try await Connection.open(options, name: "pulse")
                }
                connection = open
                try await open.execute(
                    "select millrace.enqueue('practice.mark', $1)", [.json("{\"n\": \(first + call)}")])
                state.withLock { _ = $0.answered.insert(first + call) }
            } catch {
                result.refused += 1
                await connection?.close()
                connection = nil
                // An outage is offered no more than a caller would.
                if result.refused > 4 { break }
            }
        }
        await connection?.close()
        _ = try await Patience.waited(.seconds(2)) {
            starts.follow()
            return left(from: first, to: first + jobs) == 0
        }
        result.waits = (0..<jobs).compactMap { call in
            starts.time(of: first + call).map { Double(max(0, $0 - cadence.due(call))) / 1e6 }
        }.sorted()
        return result
    }

    private func left(from first: Int, to end: Int) -> Int {
        let answered = state.withLock { $0.answered }
        return (first..<end).count { answered.contains($0) && starts.time(of: $0) == nil }
    }

    var answered: Int { state.withLock { $0.answered.count } }

    /// How many that were answered have never begun, when there was time enough.
    func lost(within limit: Duration) async throws -> Int {
        let end = state.withLock { $0.next }
        _ = try await Patience.waited(limit) {
            starts.follow()
            return left(from: 0, to: end) == 0
        }
        return left(from: 0, to: end)
    }
}
