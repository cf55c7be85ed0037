import JSON
import Postgres

/// The SQL of the service that asks.
enum AIStore {
    enum Taken: Sendable {
        case go(AIQuestion)
        /// There is nothing left to do.
        case done
        /// An identical question is being asked.
        case busy
    }

    static func take(
        _ question: String, token: String, on connection: Connection
    ) async throws(PostgresError) -> Taken {
        try await connection.query(
            """
            select what, $2, purpose, version, instructions, prompt, variables, schema, model, limits, input
              from millrace.ai_take($1, $2::text::uuid)
            """, [.text(token), .text(question)]
        ) { row throws(PostgresError) -> Taken in
            switch try row.string(0) {
            case "go": break
            case "busy": return .busy
            default: return .done
            }
            return .go(try AIQuestion(row, at: 1))
        }.first ?? .done
    }

    /// nil: the account has too few tokens left; `waits` when calls that run now may give some back.
    static func open(
        _ question: String, token: String, provider: String, model: String, bytes: Int, maxTokens: Int,
        on connection: Connection
    ) async throws(PostgresError) -> (call: String?, waits: Bool) {
        try await connection.query(
            "select call::text, waits from millrace.ai_call_open($1, $2::text::uuid, $3, $4, $5, $6)",
            [
                .text(token), .text(question), .text(provider), .text(model), .int4(Int32(clamping: bytes)),
                .int4(Int32(clamping: maxTokens)),
            ]
        ) { row throws(PostgresError) in (row.optionalString(0), try row.bool(1)) }.first ?? (nil, false)
    }

    struct Ending: Sendable {
        var outcome: String
        var tokensIn: Int?
        var tokensOut: Int?
        var errorClass: String?
        var error: String?
        var took: Duration
    }

    static func close(
        _ call: String, _ ending: Ending, on connection: Connection
    ) async throws(PostgresError) {
        let parts = ending.took.components
        try await connection.execute(
            "select millrace.ai_call_close($1::text::uuid, $2, $3, $4, $5, $6, $7)",
            [
                .text(call), .text(ending.outcome), .int4(ending.tokensIn.map { Int32(clamping: $0) }),
                .int4(ending.tokensOut.map { Int32(clamping: $0) }), .text(ending.errorClass), .text(ending.error),
                .int4(Int32(clamping: parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000)),
            ])
    }

    /// What is wrong with the answer; nil: it is recorded, and the run has ended.
    static func answer(
        _ question: String, token: String, call: String, answer: String, provider: String, model: String,
        on connection: Connection
    ) async throws(PostgresError) -> String? {
        try await connection.query(
            "select millrace.ai_answered($1, $2::text::uuid, $3::text::uuid, $4, $5, $6)",
            [.text(token), .text(question), .text(call), .text(answer), .text(provider), .text(model)]
        ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    static func fail(
        _ question: String, token: String, status: String, reason: String, sentence: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_failed($1, $2::text::uuid, $3, $4, $5)",
            [.text(token), .text(question), .text(status), .text(reason), .text(sentence)])
    }
}

/// A question as a run takes it.
struct AIQuestion: Sendable {
    let id: String
    let purpose: String
    let version: Int
    let instructions: String
    let prompt: String
    let variables: [UInt8]
    let schema: String
    let model: String?
    let limits: JSONValue
    let input: [UInt8]

    /// Its id, purpose, version, instructions, prompt, variables, schema, model, limits and input, from this column on.
    init(_ row: Row, at first: Int) throws(PostgresError) {
        id = try row.string(first)
        purpose = try row.string(first + 1)
        version = Int(try row.int(first + 2))
        instructions = try row.string(first + 3)
        prompt = try row.string(first + 4)
        variables = try row.json(first + 5)
        schema = String(decoding: try row.json(first + 6), as: UTF8.self)
        model = row.optionalString(first + 7)
        let said = try row.json(first + 8)
        do throws(JSONProblem) {
            limits = try JSONValue.read(said)
        } catch {
            throw .undecodable(column: first + 8, expected: "JSON")
        }
        input = try row.json(first + 9)
    }
}
