package import Postgres
import Schema

package struct SchemaState: Sendable, Equatable {
    package var version: Int
    /// The oldest schema version whose workers may run here.
    package var oldestWorker: Int
    package var server: Int
    package var testClock: Bool
}

extension Queue {
    /// The version this program speaks.
    package static var schemaVersion: Int { Schema.version }

    package static func schemaState(on connection: Connection) async throws(PostgresError) -> SchemaState {
        let rows = try await connection.query(
            "select coalesce(version, 0), coalesce(oldest_worker, 0), server, test_clock from millrace.schema_state()"
        ) { row throws(PostgresError) in
            SchemaState(
                version: Int(try row.int(0)), oldestWorker: Int(try row.int(1)), server: Int(try row.int(2)),
                testClock: try row.bool(3))
        }
        return try one(rows)
    }
}
