package import FoundationEssentials
package import Postgres

extension MailAdmin {
    package struct AuditEntry: Sendable {
        package var id: Int64
        package var at: Date
        package var by: String
        package var what: String
        package var message: String?
        package var detail: String
        /// The view's row, as JSON.
        package var row: [UInt8]
    }

    /// Who did what, newest first.
    package static func audit(
        what: String?, by: String?, message: String?, since: Date?, after: Int64?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [AuditEntry] {
        try await connection.query(
            """
            select id, at, by, what, message::text, detail::text, to_jsonb(v)
              from millrace.mail_audits($1, $2, $3::text::uuid, $4, $5, $6) v
            """,
            [
                .text(what), .text(by), .text(message), .timestamp(since), .int8(after), .int4(Int32(clamping: page)),
            ]
        ) { row throws(PostgresError) in
            AuditEntry(
                id: try row.int(0), at: try row.date(1), by: try row.string(2), what: try row.string(3),
                message: row.optionalString(4), detail: try row.string(5), row: try row.json(6))
        }
    }
}
