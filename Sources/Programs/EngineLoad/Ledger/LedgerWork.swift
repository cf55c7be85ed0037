import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
package import Postgres
package import Workers

/// The steps of a ledger's job; each is recorded before it counts.
struct LedgerWork: Job {
    static let kind = "ledger.work"
    static let retries = RetryPolicy(attempts: 60, base: .milliseconds(100), cap: .seconds(1))

    /// The producer's own number for it.
    var n: Int
    var ms: Int?
    /// How many runs fail before one succeeds.
    var fail: Int?
    var snooze: Int?
    /// Recorded steps to take.
    var steps: Int?
    /// Jobs to spawn for after itself, and one after those.
    var spawn: Int?
}

/// The last of a fan: comes after all that one run has spawned.
struct LedgerGather: Job {
    static let kind = "ledger.gather"
    static let retries = LedgerWork.retries
    var n: Int
}

struct LedgerTick: Job {
    static let kind = "ledger.tick"
    static let retries = LedgerWork.retries
}

/// Ways to break the system on purpose, which the checker must notice.
package enum LedgerBreak: String, CaseIterable {
    case noTokenCheck = "no-token-check"
    case finishBeforeEffect = "finish-before-effect"
    case noSweep = "no-sweep"
    case earlyRescue = "early-rescue"
    case signalTwice = "signal-twice"
    case signalLost = "signal-lost"
}

/// The handlers of a worker under the ledger. Everything that a run does is recorded in ledger.entry, in its own transaction, with the
/// run's token: nothing of that goes through the queue.
package struct LedgerHandlers: Sendable {
    let pool: Pool
    let broken: LedgerBreak?

    private struct OnPurpose: Error, CustomStringConvertible { let description = "failing on purpose" }

    package init(pool: Pool, broken: LedgerBreak?) {
        (self.pool, self.broken) = (pool, broken)
    }

    package var all: [Handler] {
        [
            Handler(LedgerWork.self) { job, context in try await work(job, context) },
            Handler(LedgerGather.self) { job, context in
                try await write("began", context)
                return try await effect(context)
            },
            Handler(LedgerTick.self) { _, context in
                try await write("began", context)
                return try await effect(context)
            },
            Handler(LedgerWait.self) { job, context in try await wait(job, context) },
            Handler(LedgerOrder.self) { job, context in try await order(job, context) }.takingUndos,
        ]
    }

    private func work(_ job: LedgerWork, _ context: Context) async throws -> Verdict {
        try await write("began", context)
        if let ms = job.ms { try await Task.sleep(for: .milliseconds(ms)) }
        for number in 0..<(job.steps ?? 0) {
            try await context.step("s\(number)") { try await write("step s\(number)", context) }
            try await write("kept s\(number)", context)
        }
        if let snooze = job.snooze, try await times("snoozed", of: context.id) < snooze {
            try await write("snoozed", context)
            return .snooze(for: .milliseconds(200))
        }
        if context.attempt <= job.fail ?? 0 {
            try await write("failed", context)
            throw OnPurpose()
        }
        if let spawn = job.spawn {
            try await context.spawn(
                (0..<spawn).map { LedgerWork(n: -(job.n * 1000 + $0), ms: 1) }, then: LedgerGather(n: job.n))
        }
        return try await effect(context)
    }

    func effect(_ context: Context) async throws -> Verdict {
        if broken == .finishBeforeEffect {
            Task {  // meant to be too late: that is what is broken
                try await Task.sleep(for: .milliseconds(300))
                try await write("effect", context)
            }
            return .done
        }
        try await write("effect", context)
        return .done
    }

    /// Retries while the database is unreachable: the ledger must not miss what was done.
    func write(_ what: String, _ context: Context) async throws {
        let token = LedgerToken(context.token)
        try await persist { connection throws(PostgresError) in
            try await connection.execute(
                """
                insert into ledger.entry (job, token, what, leased) values ($1, $2, $3, exists (
                    select from millrace.lease where session = $4 and number = $5 and $1 = any (ids)))
                """,
                [
                    .int8(context.id), .text(context.token), .text(what), .int8(token?.session ?? 0),
                    .int8(token?.number ?? 0),
                ])
        }
    }

    private func times(_ what: String, of job: Int64) async throws -> Int {
        try await persist { connection throws(PostgresError) in
            try await connection.int(
                "select count(distinct token) from ledger.entry where job = $1 and what = $2",
                [.int8(job), .text(what)]
            )
        }
    }

    @discardableResult
    private func persist<Value: Sendable>(
        _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws -> Value {
        let deadline = ContinuousClock.now + .seconds(120)
        while true {
            do {
                return try await pool.withConnection(body)
            } catch let error as PostgresError {
                guard error.isOutage || error.outcomeUnknown, ContinuousClock.now < deadline else {
                    throw error
                }
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}
