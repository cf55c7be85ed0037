package import FoundationEssentials
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
    /// JSON text: a list of who was asked, how, when, and what became of the last notice.
    package var people: [UInt8]
    package var reminded: Int
    package var nextReminder: Date?
    package var escalates: Date?
    package var escalatedAt: Date?
}

extension Queue {
    package static func approvals(
        onlyOpen: Bool, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [ApprovalRow] {
        try await connection.query(
            """
            select id::text, job, kind, step, request::text, tenant, asked_at, due, answered_at, approved, answered_by, comment,
                   people::text, reminded, remind_at, escalate_at, escalated_at
              from millrace.approval_list($1, $2)
            """, [.bool(onlyOpen), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            ApprovalRow(
                id: try row.string(0), job: try row.int(1), kind: row.optionalString(2), step: try row.string(3),
                request: Array(try row.string(4).utf8), tenant: row.optionalString(5), askedAt: try row.date(6),
                due: try row.optionalDate(7), answeredAt: try row.optionalDate(8),
                approved: row.optionalString(9).map { $0 == "t" || $0 == "true" },
                answeredBy: row.optionalString(10), comment: row.optionalString(11),
                people: Array(try row.string(12).utf8), reminded: Int(try row.int(13)),
                nextReminder: try row.optionalDate(14), escalates: try row.optionalDate(15),
                escalatedAt: try row.optionalDate(16))
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

    /// Gives a person a link of their own. Returns what stands in it beside the question's id.
    package static func approvalLink(
        _ id: String, person: String, on connection: Connection
    ) async throws(PostgresError) -> String {
        let rows = try await connection.query(
            "select millrace.approval_link($1::uuid, $2)::text", [.text(id), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }
        return try one(rows)
    }

    /// What the page behind a link shows, JSON text; nil: this link belongs to nobody who was asked.
    package static func approvalPage(
        _ id: String, ref: String, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        let rows = try await connection.query(
            "select millrace.approval_page($1::uuid, $2::uuid)::text", [.text(id), .text(ref)]
        ) { row throws(PostgresError) in row.optionalString(0).map { Array($0.utf8) } }
        return try one(rows)
    }

    /// The answer of the person whom a link names. False: it was answered so already.
    package static func answer(
        _ id: String, ref: String, approved: Bool, comment: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.approval_answer_by_link($1::uuid, $2::uuid, $3, $4)",
            [.text(id), .text(ref), .bool(approved), .text(comment)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// Reminds those who were asked, and asks others, where that is due. Returns how many questions it looked at.
    package static func remindOfApprovals(on connection: Connection) async throws(PostgresError) -> Int {
        let rows = try await connection.query("select millrace.approvals_remind()") { row throws(PostgresError) in
            Int(try row.int(0))
        }
        return try one(rows)
    }

    /// How many open questions were asked of people by name, as of the last count of the fleet.
    package static func peopleAsked(on connection: Connection) async throws(PostgresError) -> Int {
        let open = try await fleetMeasures(on: connection).first {
            $0.name == "approvals_open" && $0.labels == ["people"]
        }
        return Int(open?.value ?? 0)
    }
}
