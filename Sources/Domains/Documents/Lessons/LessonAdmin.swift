package import Postgres

/// The operators' side of lessons. Rows are those of `millrace.lessons`, as JSON.
package enum LessonAdmin {
    package static func list(
        tenant: String?, person: String?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(l) from millrace.lesson_list($1, $2, $3, $4) l",
            [.text(after), .int4(Int32(clamping: page)), .text(tenant), .text(person)], decode: row)
    }

    /// Without tenant and person there may be several of this name.
    package static func find(
        _ id: String, tenant: String?, person: String?, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(l) from millrace.lesson($1, $2, $3) l", [.text(id), .text(tenant), .text(person)],
            decode: row)
    }

    /// - Returns: created, updated or unchanged.
    package static func put(
        _ id: String, title: String?, data: [UInt8]?, tenant: String?, person: String?, on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.lesson_put($1, $2, $3, $4, $5)",
            [.text(id), .text(title), .json(data), .text(tenant), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    /// At most ten at once.
    package static func delete(
        _ ids: [String], tenant: String?, person: String?, on connection: Connection
    ) async throws(PostgresError) -> [(id: String, isDeleted: Bool, documents: Int)] {
        try await connection.query(
            "select id, deleted, documents from millrace.lesson_delete($1, $2, $3)",
            [.texts(ids), .text(tenant), .text(person)]
        ) { row throws(PostgresError) in
            (id: try row.string(0), isDeleted: try row.bool(1), documents: Int(try row.int(2)))
        }
    }

    private static let row: Connection.Decode<[UInt8]> = { row throws(PostgresError) in try row.json(0) }
}
