package import Postgres

/// How a run ended, as the database counts it.
package enum Outcome: Int16, Sendable, CaseIterable {
    case succeeded = 1
    case cancelled = 2
    case dead = 3
    case retried = 4
    case snoozed = 5
    case released = 6
    /// It waits in the middle of its work, and its own transaction has recorded that.
    case waiting = 8

    /// The job continues: back in line, or later.
    package var goesOn: Bool {
        switch self {
        case .succeeded, .cancelled, .dead: false
        case .retried, .snoozed, .released, .waiting: true
        }
    }
}

/// The end of one run.
package struct Ended: Sendable {
    package var job: Claimed
    package var outcome: Outcome
    package var milliseconds: Int32?
    /// How long it waited from its enqueuing to this run, in milliseconds; nil where that was no wait in line.
    package var waited: Int32?
    package var error: String?
    package var wait: Duration?
    /// The handler's own transaction has recorded it (see `millrace.complete`): only its lease is left to settle.
    package var isRecorded = false
    /// JSON text, kept with the job if it succeeded.
    package var result: [UInt8]?

    package init(
        job: Claimed, outcome: Outcome, milliseconds: Int32? = nil, error: String? = nil, wait: Duration? = nil
    ) {
        self.job = job
        self.outcome = outcome
        self.milliseconds = milliseconds
        self.error = error
        self.wait = wait
    }
}

/// Ends of runs on their way to the database, with the effect on each lease.
package struct Flush: Sendable {
    package var ended: [Ended]
    /// Leases that still hold other jobs.
    package var partial: [Int64]
    /// Leases whose last jobs end here, with how many of them this flush records.
    package var complete: [(number: Int64, count: Int32)]
    /// Slots that these runs hold at gates, summed for each lease.
    package var slots: [(number: Int64, gate: Int64, count: Int32)]

    package init(
        ended: [Ended], partial: [Int64], complete: [(number: Int64, count: Int32)],
        slots: [(number: Int64, gate: Int64, count: Int32)] = []
    ) {
        self.ended = ended
        self.partial = partial
        self.complete = complete
        self.slots = slots
    }
}

extension Flush {
    package var toRecord: [Ended] { ended.filter { !$0.isRecorded } }
}

extension Queue {
    /// Returned among the live numbers when other jobs wait for these ends. No lease has this number.
    package static let othersWait: Int64 = 0

    /// Records ends; returns the numbers of the live leases. Ends under any other number changed nothing.
    package static func finish(
        on connection: Connection, session: Int64, _ flush: Flush, deadline: Duration? = nil
    ) async throws(PostgresError) -> Set<Int64> {
        let ended = flush.toRecord
        let hasErrors = ended.contains { $0.error != nil }
        let goesOn = ended.contains { $0.outcome.goesOn }
        let keyed = ended.filter(\.job.keyed).map(\.job.id)
        let slots = flush.slots
        let results = ended.filter { $0.result != nil }
        let rows = try await connection.query(
            "select millrace.finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
            [
                .int8(session), .int8s(ended.map(\.job.id)), .int8s(ended.map(\.job.number)),
                .int2s(alike(ended) { $0.outcome.rawValue }),
                .int4s(alike(ended) { $0.job.kind }), .int4s(alike(ended) { $0.job.lane.queue }),
                .int2s(alike(ended) { $0.job.attempt + 1 }), .int2s(alike(ended) { $0.job.crashes }),
                .int4s(ended.map { $0.milliseconds ?? 0 }), .int8s(flush.partial.sorted()),
                .int8s(flush.complete.map(\.number)), .int4s(flush.complete.map(\.count)),
                .texts(hasErrors ? ended.map(\.error) : nil),
                .float8s(goesOn ? ended.map { ($0.wait ?? .zero) / .seconds(1) } : nil),
                .int8s(keyed.isEmpty ? nil : keyed), .int8s(slots.isEmpty ? nil : slots.map(\.number)),
                .int8s(slots.isEmpty ? nil : slots.map(\.gate)), .int4s(slots.isEmpty ? nil : slots.map(\.count)),
                .int8s(results.isEmpty ? nil : results.map(\.job.id)),
                .texts(
                    results.isEmpty ? nil : results.map { $0.result.map { String(decoding: $0, as: UTF8.self) } }),
            ], deadline: deadline
        ) { row throws(PostgresError) in Set(try row.ints(0)) }
        return try one(rows)
    }

    /// One value for each end, or a single one if all are the same: the database spends more on a column than we do on the comparison.
    private static func alike<Value: Equatable>(_ ended: [Ended], _ value: (Ended) -> Value) -> [Value] {
        guard let first = ended.first.map(value) else { return [] }
        return ended.allSatisfy { value($0) == first } ? [first] : ended.map(value)
    }

    /// Which of these ends are recorded. Used after a flush whose answer was lost, and for handlers that recorded their own ends.
    package static func recorded(
        on connection: Connection, session: Int64, _ ended: [Ended]
    ) async throws(PostgresError) -> Set<Int64> {
        let rows = try await connection.query(
            "select millrace.recorded($1, $2, $3)",
            [.int8(session), .int8s(ended.map(\.job.id)), .int8s(ended.map(\.job.number))]
        ) { row throws(PostgresError) in Set(try row.ints(0)) }
        return try one(rows)
    }
}
