import FoundationEssentials
package import Postgres

/// The webhook service's SQL: one method for each door.
package struct WebhookStore: Sendable {
    let pool: Pool

    package init(pool: Pool) {
        self.pool = pool
    }

    /// A claimed delivery; without an event it is a handshake.
    struct Claimed: Sendable {
        var webhook: String
        var url: String
        var mode: String
        var isHandshake: Bool
        var tries: Int
        var secrets: [String]
        var event: String?
        var document: [UInt8]
        var attempts: Int
        var isAlone: Bool
    }

    func fanOut(_ most: Int) async throws -> Int {
        try await one("select millrace.webhook_fan_out($1)", [.int4(Int32(clamping: most))])
    }

    func claim(
        token: Int64, most: Int, perTarget: Int, batch: Int, busy: [String], hold: Duration, origin: String?
    ) async throws -> [Claimed] {
        try await ask(
            """
            select webhook::text, url, mode, handshake, tries, secrets, event::text, document, attempts, alone
              from millrace.webhook_claim($1, $2, $3, $4, $5, $6, $7)
            """,
            [
                .int8(token), .int4(Int32(clamping: most)), .int4(Int32(clamping: perTarget)),
                .int4(Int32(clamping: batch)), .texts(busy), .float8(hold / .seconds(1)), .text(origin),
            ]
        ) { row throws(PostgresError) in
            Claimed(
                webhook: try row.string(0), url: try row.string(1), mode: try row.string(2),
                isHandshake: try row.bool(3), tries: Int(try row.int(4)), secrets: try row.strings(5),
                event: row.optionalString(6), document: row.optionalJSON(7) ?? [], attempts: Int(try row.int(8)),
                isAlone: try row.bool(9))
        }
    }

    /// How many targets there are, and when the next delivery is due; nil: nothing waits.
    func wait() async throws -> (targets: Int, seconds: Double?) {
        try await ask("select targets, seconds from millrace.webhook_wait()", []) { row throws(PostgresError) in
            (targets: Int(try row.int(0)), seconds: row.optionalDouble(1))
        }.first ?? (0, nil)
    }

    /// - Parameter waits: for each event the time until its next attempt, nil: no more attempts.
    /// - Returns: the reason, if the target was switched off by this.
    func record(
        token: Int64, _ webhook: String, _ events: [String], _ verdict: TargetAnswer, waits: [Duration?]
    ) async throws -> String? {
        try await ask(
            """
            select millrace.webhook_record($1, $2::text::uuid, $3::text[]::uuid[], $4,
                array(select nullif(w, -1) from unnest($5::float8[]) with ordinality x(w, n) order by n), $6, $7, $8)
            """,
            [
                .int8(token), .text(webhook), .texts(events), .text(verdict.word),
                .float8s(waits.map { $0.map { $0 / .seconds(1) } ?? -1 }), .int4(verdict.code.map { Int32($0) }),
                .text(verdict.why), .float8(verdict.hold.map { $0 / .seconds(1) }),
            ]
        ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    func consent(
        _ webhook: String, _ consent: TargetConsent, origin: String, wait: Duration?
    ) async throws -> String? {
        var outcome = "allowed"
        var why: String?
        var rate: Int?
        switch consent {
        case .allowed(let allowed): rate = allowed
        case .refused(let reason): (outcome, why) = ("refused", reason)
        case .retry(let reason, _): (outcome, why) = ("retry", reason)
        case .later(let reason, _): (outcome, why) = ("later", reason)
        case .passed(let reason): (outcome, why) = ("passed", reason)
        }
        return try await ask(
            "select millrace.webhook_consent($1::text::uuid, $2, $3, $4, $5, $6)",
            [
                .text(webhook), .text(outcome), .text(origin), .int4(rate.map { Int32(clamping: $0) }), .text(why),
                .float8(wait.map { $0 / .seconds(1) }),
            ]
        ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    struct Stored: Sendable {
        var webhook: String
        var n: Int
        var secret: String
    }

    func unsealed(by key: String) async throws -> [Stored] {
        try await ask("select webhook::text, n, secret::text from millrace.webhook_secrets($1)", [.text(key)]) {
            row throws(PostgresError) in
            Stored(webhook: try row.string(0), n: Int(try row.int(1)), secret: try row.string(2))
        }
    }

    func seal(_ old: Stored, _ new: [UInt8]) async throws {
        _ = try await ask(
            "select millrace.webhook_seal($1::text::uuid, $2, $3, $4)",
            [.text(old.webhook), .int4(Int32(clamping: old.n)), .json(old.secret), .json(new)]
        ) { row throws(PostgresError) in try row.bool(0) }
    }

    private func one(_ sql: SQL, _ parameters: [Parameter]) async throws -> Int {
        try await ask(sql, parameters) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    private func ask<Element: Sendable>(
        _ sql: SQL, _ parameters: [Parameter], _ decode: @escaping Connection.Decode<Element>
    ) async throws -> [Element] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(sql, parameters, decode: decode)
        }
    }
}
