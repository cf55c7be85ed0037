package import Encryption
package import FoundationEssentials
package import Postgres

/// The operators' side of webhooks.
package enum WebhookAdmin {
    package struct Target: Sendable {
        package var id: String
        package var url: String
        package var types: [String]
        package var mode: String
        package var tenant: String?
        package var state: String
        package var reason: String?
        package var rate: Int?
        package var secrets: Int
        package var waiting: Int
        package var failingSince: Date?
        package var succeededAt: Date?
        package var createdAt: Date
        /// The view's row, as JSON.
        package var row: [UInt8]
    }

    /// The figures for `status`.
    package struct State: Sendable {
        package var targets = 0
        package var disabled = 0
        package var waiting = 0
        /// How long the oldest unclaimed delivery has been due, in seconds.
        package var late: Double = 0
        /// How many secrets are not encrypted, and the keys that the others need.
        package var unsealed = 0
        package var keys: [String] = []

        package init() {}
    }

    package static func list(
        after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Target] {
        try await connection.query(
            """
            select id::text, url, types, mode, tenant, state, reason, rate, secrets, waiting, failing_since, succeeded_at, created_at, to_jsonb(v)
              from millrace.webhooks v where $1::text is null or id > $1::text::uuid order by id limit $2
            """, [.text(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Target(
                id: try row.string(0), url: try row.string(1), types: try row.strings(2), mode: try row.string(3),
                tenant: row.optionalString(4), state: try row.string(5), reason: row.optionalString(6),
                rate: try row.optionalInt(7).map { Int($0) }, secrets: Int(try row.int(8)),
                waiting: Int(try row.int(9)), failingSince: try row.optionalDate(10),
                succeededAt: try row.optionalDate(11), createdAt: try row.date(12), row: try row.json(13))
        }
    }

    /// Deliveries of a target or of an event, the newest first, as JSON rows of the view.
    package static func deliveries(
        webhook: String?, event: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            """
            select to_jsonb(v) from millrace.webhook_deliveries v
             where ($1::text is null or webhook = $1::text::uuid) and ($2::text is null or event = $2::text::uuid)
             order by seq desc, webhook limit $3
            """, [.text(webhook), .text(event), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in try row.json(0) }
    }

    package struct Added: Sendable {
        package var id: String
        package var secret: String
    }

    /// With keys the secret is made and encrypted here, so the database never sees it.
    package static func add(
        _ url: String, types: [String], mode: String, tenant: String?, handshake: Bool, keys: Keyring,
        on connection: Connection
    ) async throws -> Added {
        let id = UUID().uuidString.lowercased()
        let (secret, sealed) = try make(for: id, keys)
        let given =
            try await connection.query(
                "select coalesce(secret, '') from millrace.webhook_add($1, $2, $3, $4, $5, $6::text::uuid, $7)",
                [.text(url), .texts(types), .text(mode), .text(tenant), .bool(handshake), .text(id), .json(sealed)]
            ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
        return Added(id: id, secret: secret ?? given)
    }

    package static func rotate(
        _ id: String, overlap: Duration, keys: Keyring, on connection: Connection
    ) async throws -> String {
        let (secret, sealed) = try make(for: id.lowercased(), keys)
        let given =
            try await connection.query(
                "select coalesce(millrace.webhook_rotate($1::text::uuid, make_interval(secs => $2), $3), '')",
                [.text(id), .float8(overlap / .seconds(1)), .json(sealed)]
            ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
        return secret ?? given
    }

    private static func make(for id: String, _ keys: Keyring) throws(SealError) -> (secret: String?, sealed: [UInt8]?) {
        guard !keys.keys.isEmpty else { return (nil, nil) }
        let secret = SigningSecret.make()
        return (secret, try SigningSecret.seal(secret, of: id, with: keys))
    }

    package static func remove(_ id: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.webhook_remove($1::text::uuid)", [.text(id)])
    }

    package static func enable(_ id: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.webhook_enable($1::text::uuid)", [.text(id)])
    }

    /// Returns the number of targets.
    package static func redeliver(
        _ event: String, to webhook: String?, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await connection.query(
            "select millrace.webhook_redeliver($1::text::uuid, $2::text::uuid)", [.text(event), .text(webhook)]
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    package struct Address: Sendable {
        package var url: String
        package var mode: String
        package var handshake: Bool
        package var state: String
        package var secrets: [String]
    }

    package static func address(_ id: String, on connection: Connection) async throws(PostgresError) -> Address? {
        try await connection.query(
            "select url, mode, handshake, state, secrets from millrace.webhook_target($1::text::uuid)", [.text(id)]
        ) { row throws(PostgresError) in
            Address(
                url: try row.string(0), mode: try row.string(1), handshake: try row.bool(2),
                state: try row.string(3), secrets: try row.strings(4))
        }.first
    }

    package static func state(on connection: Connection, deadline: Duration) async throws(PostgresError) -> State {
        try await connection.query(
            "select targets, disabled, waiting, late_s, unsealed, keys from millrace.webhook_state()",
            deadline: deadline
        ) { row throws(PostgresError) in
            var state = State()
            state.targets = Int(try row.int(0))
            state.disabled = Int(try row.int(1))
            state.waiting = Int(try row.int(2))
            state.late = row.optionalDouble(3) ?? 0
            state.unsealed = Int(try row.int(4))
            state.keys = try row.strings(5)
            return state
        }.first ?? State()
    }
}
