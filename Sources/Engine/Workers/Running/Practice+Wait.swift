import FoundationEssentials
import MillraceJobs
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
        var fails: Bool
        /// How long it sleeps between its second and its third charge.
        var pause: Double?
    }

    private struct Refused: JobFailure, CustomStringConvertible {
        var retry: Retry { .never }
        var description: String { "the order is refused, on purpose" }
    }

    /// practice.order: five charges, each of which is given back if the order does not succeed, and a delivery. The bank is public.practice_charge: what
    /// it does under a key it does once, and a key that was given back is never charged again. A key is on record, with its undo, before it is used:
    /// so nothing is charged that no undo knows. The delivery and the success are one statement.
    package static func orders(_ pool: Pool) -> Handler {
        Handler(Order.self) { order, context in
            @Sendable func bank(_ statement: SQL, _ values: [Parameter]) async throws {
                try await Task.sleep(for: .milliseconds(.random(in: 0...10)))
                _ = try await pool.withConnection { connection throws(PostgresError) in
                    try await connection.execute(statement, values)
                }
                try await Task.sleep(for: .milliseconds(.random(in: 0...10)))
            }
            for number in 1...5 {
                let key = try await context.step(
                    "key \(number)",
                    undo: { (key: String) in
                        try await bank(
                            """
                            insert into public.practice_charge as c (key, given_back) values ($1, clock_timestamp())
                                on conflict (key) do update set given_back = coalesce(c.given_back, excluded.given_back)
                            """, [.text(key)])
                    }
                ) { UUID().uuidString }
                try await context.step("charge \(key)") {
                    try await bank(
                        """
                        insert into public.practice_charge (key, job, number, charged) values ($1, $2, $3, clock_timestamp()) on conflict do nothing
                        """, [.text(key), .int8(context.id), .int4(Int32(number))])
                    return true
                }
                if number == 2, let pause = order.pause {
                    try await context.sleep("pause", for: .seconds(pause))
                }
            }
            if order.fails { throw Refused() }
            _ = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.execute(
                    "insert into public.practice_delivery (job) select $1 where millrace.complete($2)",
                    [.int8(context.id), .text(context.token)])
            }
            return .recorded
        }.takingUndos
    }
}
