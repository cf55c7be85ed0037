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

    /// The rooms that are installed, each with the number of its last migration.
    package static func installedRooms(on connection: Connection) async throws(PostgresError) -> [String: Int] {
        let rooms = try await connection.query("select room, version from millrace.rooms_installed()") {
            row throws(PostgresError) in (try row.string(0), Int(try row.int(1)))
        }
        return Dictionary(rooms) { first, _ in first }
    }

    /// Those of the kinds of which jobs wait: in line, for a time, for a limit or for other jobs.
    package static func waitingKinds(_ kinds: [String], on connection: Connection) async throws(PostgresError)
        -> [String]
    {
        try await connection.query("select kind from millrace.kinds_waiting($1)", [.texts(kinds)]) {
            row throws(PostgresError) in try row.string(0)
        }
    }
}
