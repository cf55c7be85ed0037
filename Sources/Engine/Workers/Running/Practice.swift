import FoundationEssentials
import Glibc
import MillraceJobs
package import Postgres

/// Kinds to try things out with, and to measure.
package enum Practice {
    package static let handlers: [Handler] = [
        Handler(Nothing.self) { _, _ in .done },
        Handler(Sleep.self) { job, _ in
            try await Task.sleep(for: .milliseconds(job.ms))
            return .done
        },
        Handler(Fail.self) { job, context in
            guard context.attempt <= job.times else { return .done }
            throw OnPurpose(attempt: context.attempt, times: job.times)
        },
        Handler(Crash.self) { _, _ in
            kill(getpid(), SIGKILL)
            return .done
        },
        Handler(Spin.self) { job, _ in
            // Awaits nothing that could be cancelled, yet leaves the threads to others.
            let end = ContinuousClock.now + .milliseconds(job.ms)
            while ContinuousClock.now < end { await Task.yield() }
            return .done
        },
        stepsHandler, fanHandler, childHandler, gatherHandler,
        mailedOrderHandler,
        Handler(chunks: 50, of: Chunk.self, waiting: .milliseconds(20)) { items in
            items.map {
                $0.job.fail == true ? .retry(reason: "failing on purpose, in a chunk of \(items.count)") : .done
            }
        },
        Handler(kind: "practice.echo") { args, _ in
            _ = args
            return .done
        },
    ]

    /// Writes down when each run began and ended, in transactions of its own: what others can then check the promises by. The
    /// table is the caller's: public.practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp()).
    package static func recorder(_ pool: Pool) -> Handler {
        Handler(Record.self) { job, context in
            func record(_ what: String) async throws {
                _ = try await pool.withConnection { connection throws(PostgresError) in
                    try await connection.execute(
                        "insert into public.practice_record (job, token, what) values ($1, $2, $3)",
                        [.int8(context.id), .text(context.token), .text(what)])
                }
            }
            try await record("began")
            try await Task.sleep(for: .milliseconds(job.ms ?? 0))
            try await record("ended")
            return .done
        }
    }

    struct Record: Job {
        static let kind = "practice.record"
        var ms: Int?
    }

    struct Nothing: Job {
        static let kind = "practice.nothing"
        var n: Int?
    }

    struct Sleep: Job {
        static let kind = "practice.sleep"
        var ms: Int
    }

    struct Fail: Job {
        static let kind = "practice.fail"
        static let retries = RetryPolicy(attempts: 20, base: .seconds(1), cap: .seconds(5))
        var times: Int
    }

    struct Crash: Job {
        static let kind = "practice.crash"
    }

    struct Spin: Job {
        static let kind = "practice.spin"
        var ms: Int
    }

    struct Chunk: Job {
        static let kind = "practice.chunk"
        var fail: Bool?
    }

    struct OnPurpose: Error, CustomStringConvertible {
        let attempt: Int
        let times: Int

        var description: String { "failing on purpose, \(attempt) of \(times)" }
    }
}
