import JSON
import Postgres

/// The SQL of batches.
enum AIBatchStore {
    struct Next: Sendable {
        var seq: Int64
        /// nil: there is nothing to ask.
        var question: AIQuestion?
    }

    struct Taken: Sendable {
        var what: String
        var provider: String
        var remote: String
        var isAgain: Bool
        /// In seconds.
        var age: Double
    }

    static func next(
        _ token: String, provider: String, after: Int64, most: Int, on connection: Connection
    ) async throws(PostgresError) -> [Next] {
        try await connection.query(
            """
            select seq, question::text, purpose, version, instructions, prompt, variables, schema, model, limits, input
              from millrace.ai_batch_next($1, $2, $3, $4)
            """, [.text(token), .text(provider), .int8(after), .int4(Int32(clamping: most))]
        ) { row throws(PostgresError) in
            let seq = Int64(try row.int(0))
            guard row.optionalJSON(7) != nil else { return Next(seq: seq, question: nil) }
            return Next(seq: seq, question: try AIQuestion(row, at: 1))
        }
    }

    static func open(
        _ token: String, provider: String, calls: [JSONValue], on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_open($1, $2, $3)",
            [.text(token), .text(provider), .json(JSONValue.array(calls).compact)])
    }

    static func take(
        _ token: String, _ batch: String, on connection: Connection
    ) async throws(PostgresError) -> Taken {
        try await connection.query(
            "select what, provider, remote, is_again, age from millrace.ai_batch_take($1, $2::text::uuid)",
            [.text(token), .text(batch)]
        ) { row throws(PostgresError) in
            Taken(
                what: try row.string(0), provider: row.optionalString(1) ?? "", remote: row.optionalString(2) ?? "",
                isAgain: try row.bool(3), age: try row.double(4))
        }.first ?? Taken(what: "done", provider: "", remote: "", isAgain: false, age: 0)
    }

    /// The calls of a batch, each with its model.
    static func calls(
        _ token: String, _ batch: String, on connection: Connection
    ) async throws(PostgresError) -> [(call: String, model: String, question: AIQuestion)] {
        try await connection.query(
            """
            select call::text, called, question::text, purpose, version, instructions, prompt, variables, schema, called, limits, input
              from millrace.ai_batch_calls($1, $2::text::uuid)
            """, [.text(token), .text(batch)]
        ) { row throws(PostgresError) in
            (call: try row.string(0), model: try row.string(1), question: try AIQuestion(row, at: 2))
        }
    }

    /// The batch may be with the provider from now on; or it is known that it is not.
    static func sending(
        _ token: String, _ batch: String, _ isSending: Bool, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_sending($1, $2::text::uuid, $3)", [.text(token), .text(batch), .bool(isSending)])
    }

    static func sent(
        _ token: String, _ batch: String, _ remote: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_sent($1, $2::text::uuid, $3)", [.text(token), .text(batch), .text(remote)])
    }

    /// The provider has a file with the batch's requests.
    static func uploaded(
        _ token: String, _ batch: String, _ file: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_uploaded($1, $2::text::uuid, $3)", [.text(token), .text(batch), .text(file)])
    }

    static func record(
        _ token: String, _ batch: String, _ results: [JSONValue], on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_results($1, $2::text::uuid, $3)",
            [.text(token), .text(batch), .json(JSONValue.array(results).compact)])
    }

    static func end(
        _ token: String, _ batch: String, _ status: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_batch_end($1, $2::text::uuid, $3)", [.text(token), .text(batch), .text(status)])
    }
}
