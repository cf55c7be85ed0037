import FoundationEssentials
import Jobs
package import Postgres

extension Practice {
    struct Wait: Job {
        static let kind = "practice.wait"
        var n: Int64
        var seconds: Double?
        /// Of the signal that it waits for.
        var name: String?
        var key: String?
    }

    /// practice.wait: sleeps, or waits for a signal, and notes when it went on.
    package static func waiter(_ marks: PracticeMarks?) -> Handler {
        Handler(Wait.self) { job, context in
            if let seconds = job.seconds { try await context.sleep("sleep", for: .seconds(seconds)) }
            if let name = job.name { _ = try await context.event(name, key: job.key ?? "", as: Int64.self) }
            marks?.write(job.n)
            return .done
        }
    }

    struct Take: Job {
        static let kind = "practice.take"
        static let retries = RetryPolicy(attempts: 100, base: .milliseconds(50), cap: .seconds(1))
        var name: String
        var key: String
    }

    /// practice.take: waits for a signal with a number, and writes that down as practice.record does, in a transaction of its own.
    package static func taker(_ pool: Pool) -> Handler {
        Handler(Take.self) { job, context in
            guard let number = try await context.event(job.name, key: job.key, as: Int64.self) else { return .done }
            _ = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.execute(
                    "insert into public.practice_record (job, token, what) values ($1, $2, $3)",
                    [.int8(context.id), .text(context.token), .text("took \(number)")])
            }
            return .done
        }
    }

    struct Order: Job {
        static let kind = "practice.order"
        static let retries = RetryPolicy(attempts: 100, base: .milliseconds(50), cap: .seconds(1))
        var order: Int64
        var fails: Bool
    }

    private struct Refused: JobFailure, CustomStringConvertible {
        var retry: Retry { .never }
        var description: String { "the order is refused, on purpose" }
    }

    /// practice.order: five steps, each of which does something outside and can undo it. Outside is public.practice_record, where the order's number
    /// and what was done are unique: a service that heeds idempotency keys.
    package static func orders(_ pool: Pool) -> Handler {
        Handler(Order.self) { job, context in
            @Sendable func outside(_ what: String) async throws {
                try await Task.sleep(for: .milliseconds(.random(in: 0...10)))
                _ = try await pool.withConnection { connection throws(PostgresError) in
                    try await connection.execute(
                        "insert into public.practice_record (job, token, what) values ($1, $2, $3) on conflict do nothing",
                        [.int8(job.order), .text(context.token), .text(what)])
                }
                try await Task.sleep(for: .milliseconds(.random(in: 0...10)))
            }
            for step in 1...5 {
                try await context.step("step \(step)", undo: { (number: Int) in try await outside("undid \(number)") })
                {
                    try await outside("did \(step)")
                    return step
                }
            }
            if job.fails { throw Refused() }
            try await outside("delivered")
            return .done
        }.takingUndos
    }
}
