package import FoundationEssentials
package import Jobs
package import Postgres

/// A question to a person, for which a job waits.
package struct ApprovalRow: Sendable {
    package var id: String
    package var job: Int64
    package var kind: String?
    package var step: String
    /// JSON text.
    package var request: [UInt8]
    package var tenant: String?
    package var askedAt: Date
    package var due: Date?
    package var answeredAt: Date?
    package var approved: Bool?
    package var answeredBy: String?
    package var comment: String?
}

extension Queue {
    /// What a look at the signals has done.
    package struct Told: Sendable {
        package var signals: Int
        package var more: Bool
    }

    /// Tells waiting jobs of signals that were sent.
    package static func tellSignals(on connection: Connection) async throws(PostgresError) -> Told {
        let rows = try await connection.query("select looked, more from millrace.signals_tell()") {
            row throws(PostgresError) in Told(signals: Int(try row.int(0)), more: try row.bool(1))
        }
        return try one(rows)
    }

    /// Sends a signal. False: its id is known already.
    package static func signal(
        _ name: String, key: String, payload: [UInt8], id: String? = nil, toAll: Bool = false, keep: Duration? = nil,
        on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.signal($1, $2, $3::jsonb, $4, $5, coalesce(make_interval(secs => $6), interval '30 days'))",
            [
                .text(name), .text(key), .text(String(decoding: payload, as: UTF8.self)), .text(id), .bool(toAll),
                .float8(keep.map { $0 / .seconds(1) }),
            ]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// Ends a run that waits. The value if what it waits for has come; nil: the run has ended.
    package static func wait(
        _ request: WaitRequest, options: [UInt8], token: String, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        let rows = try await connection.query(
            "select millrace.wait($1, $2, $3, $4::jsonb)::text",
            [
                .text(token), .text(request.step), .text(request.what.rawValue),
                .text(String(decoding: options, as: UTF8.self)),
            ], deadline: .seconds(60)
        ) { row throws(PostgresError) in row.optionalString(0).map { Array($0.utf8) } }
        return try one(rows)
    }

    package static func approvals(
        onlyOpen: Bool, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [ApprovalRow] {
        try await connection.query(
            """
            select id::text, job, kind, step, request::text, tenant, asked_at, due, answered_at, approved, answered_by, comment
              from millrace.approval_list($1, $2)
            """, [.bool(onlyOpen), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            ApprovalRow(
                id: try row.string(0), job: try row.int(1), kind: row.optionalString(2), step: try row.string(3),
                request: Array(try row.string(4).utf8), tenant: row.optionalString(5), askedAt: try row.date(6),
                due: try row.optionalDate(7), answeredAt: try row.optionalDate(8),
                approved: row.optionalString(9).map { $0 == "t" || $0 == "true" },
                answeredBy: row.optionalString(10), comment: row.optionalString(11))
        }
    }

    /// False: it was answered so already.
    package static func answer(
        _ id: String, approved: Bool, by: String?, comment: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.approval_answer($1::uuid, $2, $3, $4)",
            [.text(id), .bool(approved), .text(by), .text(comment)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }
}
