package import MillraceQueues
package import Postgres

/// Checks whether this program can use the schema; if not, the exit code is 6.
package enum SchemaCheck {
    package static func check(on connection: Connection) async throws {
        let state: SchemaState
        do {
            state = try await Queue.schemaState(on: connection)
        } catch  where error.sqlState == "42501" {
            return  // a client may not ask; what it may do tells soon enough
        }
        if let failure = mismatch(state) { throw failure }
    }

    /// A connection to a schema that this program can talk to. Errors of the database become failures.
    package static func withSchema<Value: Sendable>(
        _ database: ConnectionOptions, _ body: (Connection) async throws -> Value
    ) async throws -> Value {
        do {
            if database.budget != nil {
                return try await Pool(database, size: 1).withConnection { connection in
                    try await check(on: connection)
                    return try await body(connection)
                }
            }
            let connection = try await Connection.open(database, name: "millrace")
            try await check(on: connection)
            let value = try await body(connection)
            await connection.close()
            return value
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }

    package static func mismatch(_ state: SchemaState) -> Failure? {
        let ours = Queue.schemaVersion
        if state.version < ours {
            return Failure(
                .schemaMismatch, "the database has schema version \(state.version), and this program needs \(ours)",
                hint: "run: millrace migrate")
        }
        if state.oldestWorker > ours {
            return Failure(
                .schemaMismatch,
                "the database has schema version \(state.version), which serves programs from \(state.oldestWorker) on; "
                    + "this one speaks \(ours)",
                hint: "use a newer millrace")
        }
        return nil
    }
}
