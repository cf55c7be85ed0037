package import FoundationEssentials
package import Postgres

/// A job with all that is on record of it, as a rehearsal reads it.
package struct RehearsalRow: Sendable {
    /// Of its id among those that were asked for, from 1.
    package var place: Int
    package var id: Int64
    package var kind: String
    package var queue: String
    /// Runs that counted; nil: it has not begun.
    package var attempts: Int?
    package var crashes: Int
    package var enqueuedAt: Date
    package var tenant: String?
    package var tags: [String]
    /// JSON texts.
    package var metadata: [UInt8]?
    package var args: [UInt8]
    /// 1 succeeded, 2 cancelled, 3 dead; nil: it has not ended.
    package var outcome: Int?
    package var awaits: [UInt8]?
    package var steps: [UInt8]
    package var earlier: [UInt8]?

    init(
        place: Int, id: Int64, kind: String, queue: String, attempts: Int?, crashes: Int, enqueuedAt: Date,
        tenant: String?, tags: [String], metadata: [UInt8]?, args: [UInt8], outcome: Int?, awaits: [UInt8]?,
        steps: [UInt8], earlier: [UInt8]?
    ) {
        self.place = place
        self.id = id
        self.kind = kind
        self.queue = queue
        self.attempts = attempts
        self.crashes = crashes
        self.enqueuedAt = enqueuedAt
        self.tenant = tenant
        self.tags = tags
        self.metadata = metadata
        self.args = args
        self.outcome = outcome
        self.awaits = awaits
        self.steps = steps
        self.earlier = earlier
    }

    private struct Recorded: Encodable {
        var name: String
        var value: String
    }

    /// A job as it is shown, with the steps that are shown: without what it waits for, and without the results of the jobs before it.
    package init(_ job: JobDetail, args: [UInt8], steps: [StepRow]) {
        let record = steps.map { Recorded(name: $0.name, value: String(decoding: $0.value, as: UTF8.self)) }
        self.init(
            place: 1, id: job.id, kind: job.kind, queue: job.queue, attempts: max(0, job.attempt - 1),
            crashes: job.crashes, enqueuedAt: job.enqueuedAt ?? Date(), tenant: job.tenant, tags: job.tags,
            metadata: job.metadata, args: args, outcome: nil, awaits: nil,
            steps: (try? JSONEncoder().encode(record)).map { Array($0) } ?? Array("[]".utf8), earlier: nil)
    }
}

extension Queue {
    /// A page of the jobs that are under way, above `after`, in order of their numbers.
    package static func underWay(
        after: Int64, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [(id: Int64, kind: String)] {
        try await connection.query(
            "select id, kind from millrace.rehearse_ids($1, $2)", [.int8(after), .int4(Int32(page))],
            deadline: .seconds(600)
        ) { row throws(PostgresError) in (try row.int(0), try row.string(1)) }
    }

    /// The newest jobs of a kind of each sort that is not under way.
    package static func rehearsalSample(
        of kind: String, most: Int, on connection: Connection
    ) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            "select s from millrace.rehearse_sample($1, $2) s", [.text(kind), .int4(Int32(most))],
            deadline: .seconds(600)
        ) { row throws(PostgresError) in try row.int(0) }
    }

    /// As many of the jobs as fit into a few megabytes, in their order.
    package static func rehearsalRows(
        _ ids: [Int64], on connection: Connection
    ) async throws(PostgresError) -> [RehearsalRow] {
        try await connection.query(
            """
            select place, id, kind, queue, attempt, crashes, enqueued_at, tenant, tags, metadata, args, outcome, awaits, steps, earlier
              from millrace.rehearse_read($1)
            """, [.int8s(ids)], deadline: .seconds(600)
        ) { row throws(PostgresError) in
            RehearsalRow(
                place: Int(try row.int(0)), id: try row.int(1), kind: try row.string(2), queue: try row.string(3),
                attempts: try row.optionalInt(4).map { Int($0) }, crashes: Int(try row.optionalInt(5) ?? 0),
                enqueuedAt: try row.date(6), tenant: row.optionalString(7), tags: try row.strings(8),
                metadata: row.optionalJSON(9), args: try row.json(10), outcome: try row.optionalInt(11).map { Int($0) },
                awaits: row.optionalJSON(12), steps: try row.json(13), earlier: row.optionalJSON(14))
        }
    }
}
