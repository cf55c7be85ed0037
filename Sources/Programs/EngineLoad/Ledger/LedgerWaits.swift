import CommandKit
import MillraceJobs
import MillraceQueues
import Postgres
import Workers

/// A job that waits in the middle.
struct LedgerWait: Job {
    static let kind = "ledger.wait"
    static let retries = LedgerWork.retries

    /// The name of the signals that the ledger sends.
    static let signal = "ledger"

    /// The producer's own number for it.
    var n: Int
    /// Seconds to sleep.
    var sleep: Double?
    /// Of the signal that it waits for, and how many seconds at most.
    var key: String?
    var timeout: Double?
    /// It asks a person.
    var asks: Bool?
    /// Jobs to make and wait for.
    var children: Int?

    /// The number of such a job.
    func child(_ place: Int) -> Int { -(n * 1000 + place) }

    /// What is answered to a job.
    static func answer(to job: Int64) -> Bool { job % 3 != 0 }
}

/// Does three things outside, and can undo them.
struct LedgerOrder: Job {
    static let kind = "ledger.order"
    static let retries = LedgerWork.retries
    static let steps = 3

    var n: Int
    /// Seconds to sleep after the first step.
    var sleep: Double?
    /// It is dead in the end.
    var refused: Bool?
}

extension LedgerHandlers {
    private struct Refused: JobFailure, CustomStringConvertible {
        var retry: Retry { .never }
        var description: String { "the order is refused, on purpose" }
    }

    func wait(_ job: LedgerWait, _ context: Context) async throws -> Verdict {
        try await write("began", context)
        if let seconds = job.sleep {
            try await context.sleep("pause", for: .seconds(seconds))
            try await write("woke", context)
        }
        if let key = job.key {
            let number = try await context.event(
                LedgerWait.signal, key: key, as: Int.self, timeout: job.timeout.map { .seconds($0) })
            try await write(number.map { "took \($0)" } ?? "timed out", context)
        }
        if job.asks == true {
            let answer = try await context.approval("ask", of: job.n)
            try await write(answer?.approved == true ? "yes" : "no", context)
        }
        if let children = job.children {
            // The first fails once, and so ends after the others.
            let ended = try await context.children(
                (0..<children).map { LedgerWork(n: job.child($0), ms: 5, fail: $0 == 0 ? 1 : nil) }, as: Int.self)
            try await write("joined \(ended.count { $0.succeeded })", context)
        }
        return try await effect(context)
    }

    func order(_ job: LedgerOrder, _ context: Context) async throws -> Verdict {
        try await write("began", context)
        for number in 1...LedgerOrder.steps {
            try await context.step(
                "s\(number)", undo: { (number: Int) in try await write("undid s\(number)", context) }
            ) {
                try await write("step s\(number)", context)
                return number
            }
            try await write("kept s\(number)", context)
            if number == 1, let seconds = job.sleep { try await context.sleep("pause", for: .seconds(seconds)) }
        }
        if job.refused == true { throw Refused() }
        return try await effect(context)
    }
}

/// A signal that a producer has to send.
struct LedgerSignal: Sendable {
    /// Its payload.
    var n: Int
    var key: String
    /// Not before this, in seconds.
    var due = 0.0
    /// When the database had answered.
    var sent = Double.infinity
    /// Sent once more, it was said to be new.
    var wasNewAgain = false
}

/// Answers what jobs ask.
struct LedgerAnswerer: Sendable {
    let options: ConnectionOptions

    /// Until cancelled. A fault is another try.
    func run() async {
        while !Task.isCancelled {
            if let connection = try? await Connection.open(options, name: "answers") {
                while !Task.isCancelled, (try? await answer(on: connection)) != nil {
                    try? await Task.sleep(for: .milliseconds(250))
                }
                await connection.close()
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private func answer(on connection: Connection) async throws(PostgresError) {
        let open = try await connection.query("select id::text, job from millrace.approval_list(page => 500)") {
            row throws(PostgresError) in (try row.string(0), try row.int(1))
        }
        for (id, job) in open {
            try await connection.execute(
                "select millrace.approval_answer($1::uuid, $2, by => 'ledger')",
                [.text(id), .bool(LedgerWait.answer(to: job))])
        }
    }
}
