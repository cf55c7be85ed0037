package import Postgres

/// The operators' side of media. Rows are those of `millrace.media_overview`, as JSON.
package enum MediaAdmin {
    /// - Parameter options: a JSON object with `thumbnail`, `strip`, `format`.
    /// - Returns: the id.
    package static func process(
        _ storageURL: String, options: [UInt8], tenant: String?, id: String?, person: String?,
        on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.media_process($1, $2, $3, $4::text::uuid, $5)::text",
            [.text(storageURL), .json(options), .text(tenant), .text(id), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    /// The newest first, behind the one with the id `after`.
    package static func list(
        status: String?, tenant: String?, person: String?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            """
            select to_jsonb(v) from millrace.media_overview v
             where ($1::text is null or v.status = $1) and ($2::text is null or v.tenant = $2)
               and ($3::text is null or v.owner = $3)
               and ($4::text is null
                    or (v.created_at, v.id) < (select a.created_at, a.id from millrace.media_overview a where a.id = $4::uuid))
             order by v.created_at desc, v.id desc limit $5
            """,
            [.text(status), .text(tenant), .text(person), .text(after), .int4(Int32(clamping: page))], decode: row)
    }

    package static func find(
        _ id: String, person: String?, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query(
            """
            select to_jsonb(v) from millrace.media_overview v
             where v.id = $1::text::uuid and ($2::text is null or v.owner is null or v.owner = $2)
            """, [.text(id), .text(person)], decode: row
        ).first
    }

    /// - Returns: a URL. Who has it can read the file.
    package static func link(
        _ id: String, _ kind: String, valid: Duration, person: String?, on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.media_link($1::text::uuid, $2, make_interval(secs => $3), $4)",
            [.text(id), .text(kind), .float8(valid / .seconds(1)), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    /// - Returns: false if there are none, or they are another person's.
    package static func delete(
        _ id: String, person: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        do throws(PostgresError) {
            return try await connection.truth(
                "select millrace.media_delete($1::text::uuid, $2)", [.text(id), .text(person)])
        } catch {
            guard error.sqlState == "P0002" else { throw error }
            return false
        }
    }

    private static let row: Connection.Decode<[UInt8]> = { row throws(PostgresError) in try row.json(0) }
}
