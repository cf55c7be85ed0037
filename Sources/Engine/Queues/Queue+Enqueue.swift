package import MillraceJobs
package import Postgres
package import Traces

extension Queue {
    /// Enqueues one job on the caller's connection, inside its transaction if there is one. Returns its number, or the holder's.
    package static func enqueue(_ job: NewJob, on connection: Connection) async throws(PostgresError) -> Int64 {
        let statement = enqueueStatement(job)
        let rows = try await connection.query(statement.sql, statement.parameters) { row throws(PostgresError) in
            try row.int(0)
        }
        return try one(rows)
    }

    /// Enqueues jobs of any kinds and options in a transaction of their own: all or none.
    package static func enqueueAll(
        _ jobs: [NewJob], on connection: Connection, deadline: Duration? = nil
    ) async throws(FailedStatement) {
        _ = try await connection.transaction(of: jobs.map(enqueueStatement), deadline: deadline) { _, _ in () }
    }

    private static func enqueueStatement(_ job: NewJob) -> Statement {
        Statement(
            """
            select millrace.enqueue($1, $2, $3, $4, coalesce(millrace.now() + make_interval(secs => $14), $5),
                $6, $7, $8, $9, $10, $11, $12, $13)
            """,
            [
                .text(job.kind), .json(job.args), .text(job.queue), .int4(job.priority.map { Int32(clamping: $0) }),
                .timestamp(job.runAt), .text(job.uniqueKey), .text(job.onConflict.rawValue), .text(job.limitKey),
                .text(job.tenant), .int4(job.maxAttempts.map { Int32(clamping: $0) }), .texts(job.tags),
                .json(job.metadata ?? Array("{}".utf8)), .json(job.allOptions),
                .float8(job.delay.map { $0 / .seconds(1) }),
            ])
    }

    private static let bulk: SQL = """
        select first, last
          from millrace.enqueue_bulk($1, $2, $3, $4, millrace.now() + make_interval(secs => $5), $6, $7, $8, $9)
        """
    private static let tracedBulk = SQL.setting(
        TraceContext.settings, from: 10, type: "text",
        """
        select e.first, e.last from named cross join lateral
            millrace.enqueue_bulk(%1, $2, $3, $4, millrace.now() + make_interval(secs => $5), $6, $7, $8, $9) e
        """)

    /// The fast way to enqueue many jobs of one kind that differ only in their arguments. All or none.
    package static func enqueueBulk(
        kind: String, args: [[UInt8]], queue: String? = nil, priority: Int? = nil, delay: Duration? = nil,
        tenant: String? = nil, maxAttempts: Int? = nil, limitKey: String? = nil, version: Int = 0,
        trace: TraceContext? = nil, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> ClosedRange<Int64>? {
        var parameters: [Parameter] = [
            .text(kind), .texts(args.map { String(decoding: $0, as: UTF8.self) }), .text(queue),
            .int4(priority.map { Int32(clamping: $0) }), .float8(delay.map { $0 / .seconds(1) }), .text(tenant),
            .int4(maxAttempts.map { Int32(clamping: $0) }), .text(limitKey),
            .int4(version > 0 ? Int32(clamping: version) : nil),
        ]
        if let trace { parameters += trace.parameters }
        let sql = trace == nil ? bulk : tracedBulk
        return try await connection.query(sql, parameters, deadline: deadline) { row throws(PostgresError) in
            try row.int(0)...(try row.int(1))
        }.first
    }

    /// Streams jobs through COPY, each as a JSON object with the names of `millrace.enqueue`. All or none; an error of the database names
    /// the line. `next` returns a job's JSON text and its line, or nil at the end; if it throws, nothing is enqueued.
    package static func enqueueCopied(
        on connection: Connection, deadline: Duration, next: @Sendable () throws -> (line: Int, json: [UInt8])?
    ) async throws -> Int {
        try await connection.begin()
        do {
            try await connection.execute(
                "create temporary table millrace_batch (line bigint primary key, job jsonb not null) on commit drop")
            _ = try await connection.copyIn("copy pg_temp.millrace_batch from stdin", deadline: deadline) {
                var chunk: [UInt8] = []
                while chunk.count < 64 * 1024, let (line, json) = try next() {
                    chunk.append(contentsOf: "\(line)\t".utf8)
                    appendEscaped(json, to: &chunk)
                    chunk.append(UInt8(ascii: "\n"))
                }
                return chunk.isEmpty ? nil : chunk
            }
            let counts = try await connection.query("select millrace.enqueue_copied()", deadline: deadline) {
                row throws(PostgresError) in Int(try row.int(0))
            }
            try await connection.execute("commit")
            return try one(counts)
        } catch {
            _ = try? await connection.execute("rollback")
            throw error
        }
    }

    /// COPY's text form: a backslash before what would end a column or a row.
    private static func appendEscaped(_ json: [UInt8], to chunk: inout [UInt8]) {
        for byte in json {
            switch byte {
            case UInt8(ascii: "\\"): chunk += [byte, byte]
            case UInt8(ascii: "\n"): chunk += Array("\\n".utf8)
            case UInt8(ascii: "\r"): chunk += Array("\\r".utf8)
            case UInt8(ascii: "\t"): chunk += Array("\\t".utf8)
            default: chunk.append(byte)
            }
        }
    }
}

extension NewJob {
    /// The options as one JSON object, including those with a name of their own; the named ones come last, so they win.
    package var allOptions: [UInt8] {
        let given = options ?? Array("{}".utf8)
        var named: [String] = []
        if let uniqueFor { named.append("\"unique_for\": \(uniqueFor / .seconds(1))") }
        if let uniqueScope { named.append("\"unique_scope\": \"\(uniqueScope.rawValue)\"") }
        if let version { named.append("\"version\": \(version)") }
        if let after {
            let jobs = after.jobs.map(String.init).joined(separator: ", ")
            named.append(
                "\"after\": {\"jobs\": [\(jobs)], \"when\": \"\(after.starts.rawValue)\", \"any_dead\": \"\(after.onFailure.rawValue)\"}"
            )
        }
        // If it is not an object, the database refuses it.
        guard !named.isEmpty, let end = given.lastIndex(of: UInt8(ascii: "}")) else { return given }
        let isEmpty = !given[..<end].contains(UInt8(ascii: ":"))
        return given[..<end] + Array(((isEmpty ? "" : ", ") + named.joined(separator: ", ")).utf8) + given[end...]
    }
}

extension TraceContext {
    /// What a statement sets that names it for its transaction.
    static let settings: [StaticString] = ["millrace.traceparent", "millrace.tracestate"]
    /// Their values.
    var parameters: [Parameter] { [.text(traceparent), .text(state ?? "")] }
}
