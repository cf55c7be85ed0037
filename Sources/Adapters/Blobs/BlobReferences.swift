package import Postgres

/// References to blobs. A room that keeps a blob adds its reference in the same transaction as its own record.
package enum BlobReferences {
    /// False when that owner has the reference already. Refused with P0002 when there is no such blob.
    @discardableResult
    package static func keep(_ id: BlobID, owner: String, on connection: Connection) async throws(PostgresError) -> Bool
    {
        try await answer("select millrace.blob_keep($1, $2)", id, owner, on: connection)
    }

    /// False when that owner did not have it. A sweep deletes the blob once it has no references.
    @discardableResult
    package static func release(
        _ id: BlobID, owner: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await answer("select millrace.blob_release($1, $2)", id, owner, on: connection)
    }

    /// From here on callers of the role, or within the tenant, may name it. False when they might already.
    package static func allow(
        _ id: BlobID, role: String?, tenant: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.blob_allow($1, $2, $3)", [.bytea(id.bytes), .text(role), .text(tenant)]
        )
    }

    static func forget(_ id: BlobID, grace: Duration, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.blob_forget($1, make_interval(secs => $2))",
            [.bytea(id.bytes), .float8(grace / .seconds(1))]
        )
    }

    private static func answer(
        _ sql: SQL, _ id: BlobID, _ owner: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(sql, [.bytea(id.bytes), .text(owner)])
    }
}
