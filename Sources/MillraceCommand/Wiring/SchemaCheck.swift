import Postgres
import Queues

extension Invocation {
    /// A connection to a schema that this program can talk to; anything else is exit code 6.
    func withSchema<Value: Sendable>(_ body: (Connection) async throws -> Value) async throws -> Value {
        try await withConnection { connection in
            try await Self.checkSchema(on: connection)
            return try await body(connection)
        }
    }

    static func checkSchema(on connection: Connection) async throws {
        let state: SchemaState
        do {
            state = try await Queue.schemaState(on: connection)
        } catch  where error.sqlState == "42501" {
            return  // a client may not ask; what it may do tells soon enough
        }
        if let failure = mismatch(state) { throw failure }
    }

    static func mismatch(_ state: SchemaState) -> Failure? {
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
