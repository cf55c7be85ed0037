package import Postgres
package import Traces

/// A job's place in the tree of its flow.
package struct FlowNode: Sendable, Equatable {
    package var depth: Int
    package var job: Int64
    package var kind: String
    package var state: String
    /// How many jobs wait for it.
    package var below: Int
    /// How many jobs beneath it are not shown.
    package var hidden: Int
}

/// What a predecessor of a job has left.
package struct Predecessor: Sendable, Equatable {
    package var job: Int64
    package var outcome: String
    /// JSON text.
    package var result: [UInt8]?
}

extension Queue {
    /// Moves on the jobs that wait for ended ones; true when there is more to do.
    package static func advanceFlows(on connection: Connection) async throws(PostgresError) -> Bool {
        let rows = try await connection.query("select more from millrace.flows_advance()") {
            row throws(PostgresError) in try row.bool(0)
        }
        return try one(rows)
    }

    /// Checks jobs that were enqueued at the same moment as the end of a job they wait for.
    package static func checkFlows(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("select millrace.flows_check()")
    }

    private static let spawned: SQL = "select first from millrace.spawn($1, $2, $3, $4, $5, null, $6, $7)"
    private static let tracedSpawned = SQL.setting(
        TraceContext.settings, from: 8, type: "text",
        "select s.first from named cross join lateral millrace.spawn(%1, $2, $3, $4, $5, null, $6, $7) s")

    /// Enqueues jobs of one kind for a run; they start once the run has succeeded. `before`: a job that waits for all of them. Returns the
    /// number of the first. `trace`: the place in a trace that they belong to; nil: that of the run's job.
    package static func spawn(
        token: String, kind: String, args: [[UInt8]], queue: String?, priority: Int?, before: Int64?,
        version: Int = 0, trace: TraceContext? = nil, on connection: Connection
    ) async throws(PostgresError) -> Int64 {
        var parameters: [Parameter] = [
            .text(token), .text(kind), .texts(args.map { String(decoding: $0, as: UTF8.self) }), .text(queue),
            .int4(priority.map { Int32(clamping: $0) }), .int8(before),
            .int4(version > 0 ? Int32(clamping: version) : nil),
        ]
        if let trace { parameters += trace.parameters }
        let sql = trace == nil ? spawned : tracedSpawned
        let rows = try await connection.query(sql, parameters, deadline: .seconds(60)) {
            row throws(PostgresError) in try row.int(0)
        }
        return try one(rows)
    }

    /// The results of the jobs that this one waited for, by number.
    package static func predecessors(
        of job: Int64, after: Int64, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Predecessor] {
        try await connection.query(
            "select job, outcome, result from millrace.results_before($1, $2, $3)",
            [.int8(job), .int8(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Predecessor(job: try row.int(0), outcome: try row.string(1), result: row.optionalJSON(2))
        }
    }

    /// Every job of the flow, by number.
    package static func flow(of job: Int64, on connection: Connection) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            "select f from millrace.flow_ids($1) f order by f", [.int8(job)], deadline: .seconds(120)
        ) { row throws(PostgresError) in try row.int(0) }
    }

    package static func flowTree(
        of job: Int64, most: Int = 20, on connection: Connection
    ) async throws(PostgresError) -> [FlowNode] {
        try await connection.query(
            "select depth, job, kind, state, below, hidden from millrace.flow_tree($1, $2)",
            [.int8(job), .int4(Int32(clamping: most))], deadline: .seconds(30)
        ) { row throws(PostgresError) in
            FlowNode(
                depth: Int(try row.int(0)), job: try row.int(1), kind: row.optionalString(2) ?? "?",
                state: row.optionalString(3) ?? "gone", below: Int(try row.int(4)), hidden: Int(try row.int(5)))
        }
    }

    /// Returns how many were cancelled.
    package static func cancelFlow(of job: Int64, on connection: Connection) async throws(PostgresError) -> Int {
        try await count("select millrace.flow_cancel($1)", job, on: connection)
    }

    /// Returns how many run or wait again.
    package static func retryFlow(of job: Int64, on connection: Connection) async throws(PostgresError) -> Int {
        try await count("select millrace.flow_retry($1)", job, on: connection)
    }

    private static func count(_ sql: SQL, _ job: Int64, on connection: Connection) async throws(PostgresError) -> Int {
        let rows = try await connection.query(sql, [.int8(job)], deadline: .seconds(600)) {
            row throws(PostgresError) in Int(try row.int(0))
        }
        return try one(rows)
    }
}
