package import FoundationEssentials
import JSON
package import Postgres

/// The operators' side of questions to models.
package enum AIAdmin {
    package struct Question: Sendable {
        package var seq: Int
        package var id: String
        package var purpose: String
        package var version: Int
        package var status: String
        package var tenant: String?
        package var actor: String?
        package var job: Int?
        package var provider: String?
        package var model: String?
        package var fromStore: Bool
        package var calls: Int
        package var tokensIn: Int
        package var tokensOut: Int
        package var reason: String?
        package var askedAt: Date
        package var endedAt: Date?
    }

    package struct Purpose: Sendable {
        package var name: String
        package var version: Int
        package var builtIn: Bool
        package var model: String?
        package var maxTokens: Int
        package var required: [String]
        /// How many tokens a person may use in a day; nil: it was put before purposes said so.
        package var clientTokens: Int?
    }

    package struct State: Sendable {
        package var providers: [String] = []
        package var switched = 0
        package var open = 0
        package var oldest: Date?
        package var answered = 0
        package var fromStore = 0
        package var refused = 0
        package var failed = 0
        package var tokensIn = 0
        package var tokensOut = 0
        /// What could not be deleted at providers yet.
        package var undeleted = 0
    }

    package static func list(
        purpose: String?, status: String?, tenant: String?, after: Int?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Question] {
        try await connection.query(
            """
            select seq, id::text, purpose, version, status, tenant, actor, job, provider, model, from_store, calls, tokens_in, tokens_out, reason,
                   asked_at, ended_at
              from millrace.ai_list($1, $2, $3, $4, $5)
            """,
            [
                .text(purpose), .text(status), .text(tenant), .int8(after.map { Int64($0) }),
                .int4(Int32(clamping: page)),
            ]
        ) { row throws(PostgresError) in
            Question(
                seq: Int(try row.int(0)), id: try row.string(1), purpose: try row.string(2),
                version: Int(try row.int(3)), status: try row.string(4), tenant: row.optionalString(5),
                actor: row.optionalString(6), job: try row.optionalInt(7).map { Int($0) },
                provider: row.optionalString(8), model: row.optionalString(9), fromStore: try row.bool(10),
                calls: Int(try row.int(11)), tokensIn: Int(try row.int(12)), tokensOut: Int(try row.int(13)),
                reason: row.optionalString(14), askedAt: try row.date(15), endedAt: try row.optionalDate(16))
        }
    }

    /// The whole question as JSON; nil: there is none.
    package static func show(_ id: String, on connection: Connection) async throws(PostgresError) -> String? {
        try await connection.query("select millrace.ai_shown($1::text::uuid)", [.text(id)]) {
            row throws(PostgresError) in row.optionalJSON(0).map { String(decoding: $0, as: UTF8.self) }
        }.first ?? nil
    }

    package static func purposes(on connection: Connection) async throws(PostgresError) -> [Purpose] {
        try await connection.query(
            "select name, version, built_in, model, max_tokens, required, client_tokens from millrace.ai_purposes()"
        ) { row throws(PostgresError) in
            Purpose(
                name: try row.string(0), version: Int(try row.int(1)), builtIn: try row.bool(2),
                model: row.optionalString(3), maxTokens: Int(try row.int(4)), required: try row.strings(5),
                clientTokens: try row.optionalInt(6).map { Int($0) })
        }
    }

    package static func ask(
        _ purpose: String, input: String, tenant: String?, actor: String?, options: String, on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.ai_ask($1, $2, $3, $4, $5)::text",
            [.text(purpose), .json(input), .text(tenant), .text(actor), .json(options)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    package static func toggle(
        scope: String, name: String, isOn: Bool, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.ai_switch($1, $2, $3)", [.text(scope), .text(name), .bool(isOn)])
    }

    package static func switches(
        on connection: Connection
    ) async throws(PostgresError) -> [(scope: String, name: String, isOn: Bool)] {
        try await connection.query("select scope, name, is_on from millrace.ai_switches()") {
            row throws(PostgresError) in (scope: try row.string(0), name: try row.string(1), isOn: try row.bool(2))
        }
    }

    package static func state(on connection: Connection) async throws(PostgresError) -> State {
        try await connection.query(
            """
            select providers, switched, open, oldest, answered, from_store, refused, failed, tokens_in, tokens_out, undeleted from millrace.ai_state()
            """
        ) { row throws(PostgresError) in
            State(
                providers: try row.strings(0), switched: Int(try row.int(1)), open: Int(try row.int(2)),
                oldest: try row.optionalDate(3), answered: Int(try row.int(4)), fromStore: Int(try row.int(5)),
                refused: Int(try row.int(6)), failed: Int(try row.int(7)), tokensIn: Int(try row.int(8)),
                tokensOut: Int(try row.int(9)), undeleted: Int(try row.int(10)))
        }.first ?? State()
    }

    /// What keeps questions from being answered, for doctor.
    package struct Troubles: Sendable, Equatable {
        /// What workers can ask.
        package var providers: [String] = []
        /// Tenants and families for which AI is switched on.
        package var switched = 0
        /// Questions that are due for more than 15 minutes.
        package var late = 0
        /// How long the oldest of these has been due, in seconds.
        package var oldest: Double = 0
        /// Purposes whose questions no running worker takes, although some ask models.
        package var unserved: [String] = []
        /// Running workers that ask models.
        package var workers = 0
        /// Purposes that were put before purposes said how many tokens a person may use.
        package var unbounded: [String] = []
        /// What could not be deleted at providers.
        package var undeleted = 0
        /// How long the oldest of that has been there, in seconds.
        package var undeletedFor: Double = 0
        /// Some of it, such as `openai batch_1`.
        package var undeletedNames: [String] = []
        /// Why the last try failed.
        package var undeletedWhy: String?

        package init() {}
    }

    package static func troubles(
        on connection: Connection, deadline: Duration
    ) async throws(PostgresError) -> Troubles {
        try await connection.query(
            """
            select providers, switched, late, late_s, unserved, serving, unbounded, undeleted, undeleted_s, undeleted_names, undeleted_error
              from millrace.ai_troubles()
            """, deadline: deadline
        ) { row throws(PostgresError) in
            var troubles = Troubles()
            troubles.providers = try row.strings(0)
            troubles.switched = Int(try row.int(1))
            troubles.late = Int(try row.int(2))
            troubles.oldest = try row.double(3)
            troubles.unserved = try row.strings(4)
            troubles.workers = Int(try row.int(5))
            troubles.unbounded = try row.strings(6)
            troubles.undeleted = Int(try row.int(7))
            troubles.undeletedFor = try row.double(8)
            troubles.undeletedNames = try row.strings(9)
            troubles.undeletedWhy = row.optionalString(10)
            return troubles
        }.first ?? Troubles()
    }

    /// A purpose as it can be put again, as JSON; nil: there is none.
    package static func purpose(_ name: String, on connection: Connection) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.ai_purpose_shown($1)", [.text(name)]) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    /// What a purpose is to be; `variables`, `schema` and `limits` are JSON.
    package struct NewPurpose: Sendable, Equatable {
        package var instructions: String
        package var prompt: String
        package var variables: String
        package var schema: String
        package var model: String?
        package var limits: String
        package var note: String?

        package init(
            instructions: String, prompt: String, variables: String, schema: String, model: String?, limits: String,
            note: String?
        ) {
            (self.instructions, self.prompt, self.variables, self.schema) = (instructions, prompt, variables, schema)
            (self.model, self.limits, self.note) = (model, limits, note)
        }
    }

    /// Returns the version, which is the same when nothing is new.
    package static func put(
        _ name: String, _ purpose: NewPurpose, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await connection.query(
            "select millrace.ai_purpose_put($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                .text(name), .text(purpose.instructions), .text(purpose.prompt), .json(purpose.variables),
                .json(purpose.schema), .text(purpose.model), .json(purpose.limits), .text(purpose.note),
            ]
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    /// Tells the database what this worker can ask, and how long questions are kept.
    package static func tell(
        _ providers: [any AIProvider], keepDays: Int, on connection: Connection
    ) async throws(PostgresError) {
        let list = providers.map { provider -> JSONValue in
            [
                "name": .string(provider.name), "wire": .string(provider.wire), "model": .string(provider.model),
                "batches": .bool((provider as? any AIBatching)?.hasBatches == true),
            ]
        }
        try await connection.execute(
            "select millrace.ai_providers_tell($1)", [.json(JSONValue.array(list).compact)])
        try await connection.execute("select millrace.ai_keep($1)", [.int4(Int32(clamping: keepDays))])
    }
}
