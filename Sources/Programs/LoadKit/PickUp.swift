package import CommandKit
package import Postgres
import Workers

/// Jobs that are offered at a steady rate by two callers, and how long after the intended time of its call each began.
package struct PickUp: Sendable {
    private let invocation: Invocation
    private let starts: Starts
    private let perSecond: Int
    private let statement: SQL

    /// - Parameter statement: enqueues a practice.mark with its parameter as arguments.
    package init(_ invocation: Invocation, starts: Starts, perSecond: Int, by statement: SQL) {
        (self.invocation, self.starts, self.perSecond, self.statement) = (invocation, starts, perSecond, statement)
    }

    /// The 99th percentile in milliseconds, of jobs whose numbers begin with `first`.
    package func p99(jobs: Int, from first: Int = 0) async throws -> Double {
        let pacer = try await Pacer.open(try invocation.connectionOptions(), callers: 2)
        let cadence = Cadence(began: PracticeMarks.now() + 500_000_000, perSecond: Double(perSecond), calls: jobs)
        _ = try await pacer.run(cadence) { number, connection in
            try await connection.execute(statement, [.json("{\"n\": \(first + number)}")])
        }
        try await starts.wait(forCount: first + jobs, atMost: .seconds(60))
        guard starts.count >= first + jobs else {
            throw Failure("only \(starts.count) of \(first + jobs) jobs were started a minute after the last call")
        }
        let waits = (0..<jobs).compactMap { n in
            starts.time(of: first + n).map { Double(max(0, $0 - cadence.due(n))) / 1e6 }
        }
        return percentile(waits.sorted(), 0.99)
    }
}
