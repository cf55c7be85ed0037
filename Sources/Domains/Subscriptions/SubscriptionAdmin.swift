package import Postgres

/// The operators' side of subscriptions, and what a worker runs.
package enum SubscriptionAdmin {
    package static let kind = "subscriptions.due"
    package static let queue = "subscriptions"

    /// What cannot do its work, for doctor.
    package struct State: Sendable, Equatable {
        /// Those that a plan names products of.
        package var stores: [String] = []
        package var unowned = 0
        package var unplanned = 0
        package var late = 0
        /// How long the oldest of these has been due, in seconds.
        package var oldest: Double = 0
        /// Stores that have sent something in the last 30 days.
        package var told: [String] = []
        /// Plans without a quota although a lower one has some, or none has any.
        package var bare: [String] = []
        /// Messages of the last seven days that were not taken, the newest first.
        package var refused: [Refused] = []

        package init() {}
    }

    /// Messages of a store that were not taken for one reason.
    package struct Refused: Sendable, Equatable {
        package var store: String
        package var why: String
        package var messages: Int
        /// How long ago the last of them came, in seconds.
        package var ago: Double

        package init(store: String, why: String, messages: Int, ago: Double) {
            (self.store, self.why, self.messages, self.ago) = (store, why, messages, ago)
        }
    }

    package struct Filter: Sendable {
        package var state: String?
        package var plan: String?
        package var account: String?
        package var after: String?
        package var page = 50

        package init() {}
    }

    /// What a plan is to be; nil leaves a value as it is.
    package struct Plan: Sendable {
        package var name: String
        /// A JSON object.
        package var quotas: String?
        package var rank: Int?
        package var products: [String]?
        package var period: String?
        package var graceSeconds: Int?
        package var noticeSeconds: Int?
        package var title: String?
        package var isDefault: Bool?

        package init(name: String) { self.name = name }
    }

    /// As JSON.
    package static func list(_ filter: Filter, on connection: Connection) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select millrace.subscription_list($1, $2, $3, $4::uuid, $5)",
            [
                .text(filter.state), .text(filter.plan), .text(filter.account), .text(filter.after),
                .int4(Int32(clamping: filter.page)),
            ]
        ) { row throws(PostgresError) in try row.json(0) }
    }

    package static func show(_ id: String, on connection: Connection) async throws(PostgresError) -> [UInt8] {
        try await one("select millrace.subscription_show($1::uuid)", [.text(id)], on: connection)
    }

    package static func plans(on connection: Connection) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            """
            select jsonb_build_object('name', p.name, 'title', p.title, 'rank', p.rank, 'quotas', p.quotas, 'period', p.period,
                'grace_seconds', extract(epoch from p.grace)::bigint, 'notice_seconds', extract(epoch from p.notice)::bigint,
                'is_default', p.is_default, 'products', to_jsonb(p.products), 'subscriptions', p.subscriptions)
              from millrace.subscription_plans() p
            """
        ) { row throws(PostgresError) in try row.json(0) }
    }

    package static func setPlan(_ plan: Plan, on connection: Connection) async throws(PostgresError) {
        _ = try await connection.truth(
            """
            select millrace.subscription_plan_set($1, $2, $3, $4, $5, make_interval(secs => $6), make_interval(secs => $7), $8, $9)
            """,
            [
                .text(plan.name), .json(plan.quotas), .int4(plan.rank.map { Int32(clamping: $0) }),
                .texts(plan.products), .text(plan.period),
                .int4(plan.graceSeconds.map { Int32(clamping: $0) }),
                .int4(plan.noticeSeconds.map { Int32(clamping: $0) }), .text(plan.title),
                .bool(plan.isDefault),
            ])
    }

    package static func removePlan(_ name: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.subscription_plan_remove($1)", [.text(name)])
    }

    /// A subscription that no store knows. Returns it as JSON.
    package static func set(
        plan: String, person: String?, tenant: String?, until: String?, renews: Bool, status: String, ref: String?,
        on connection: Connection
    ) async throws(PostgresError) -> [UInt8] {
        let id =
            try await connection.query(
                "select millrace.subscription_set($1, $2, $3, $4::timestamptz, $5, $6, $7)::text",
                [
                    .text(plan), .text(person), .text(tenant), .text(until), .bool(renews), .text(status), .text(ref),
                ]
            ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
        return try await show(id, on: connection)
    }

    package static func link(
        store: String, ref: String, person: String?, tenant: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.subscription_link($1, $2, $3, $4)",
            [.text(store), .text(ref), .text(person), .text(tenant)])
    }

    /// new, known, ignored or erased.
    ///
    /// - Parameter event: what the store sent, checked.
    package static func hear(
        _ store: String, event: [UInt8], on connection: Connection
    ) async throws(PostgresError) -> String {
        let statement: SQL =
            store == "apple" ? "select millrace.subscription_apple($1)" : "select millrace.subscription_stripe($1)"
        return try await connection.query(statement, [.json(event)]) {
            row throws(PostgresError) in try row.string(0)
        }.first ?? "ignored"
    }

    /// One step of the job; nil: done.
    package static func step(_ args: [UInt8], on connection: Connection) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.subscriptions_run($1)", [.json(args)], deadline: .seconds(60)) {
            row throws(PostgresError) in row.isNull(0) ? nil : try row.json(0)
        }.first ?? nil
    }

    /// Counts messages that a worker did not take.
    package static func refused(
        _ store: String, why: String, messages: Int, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.subscription_refused($1, $2, $3)", [.text(store), .text(why), .int8(Int64(messages))])
    }

    package static func state(
        on connection: Connection, deadline: Duration
    ) async throws(PostgresError) -> State {
        // A row for each refusal, or one.
        let rows = try await connection.query(
            """
            select stores, unowned, unplanned, late, late_s, told, bare, r ->> 'store', r ->> 'why', (r ->> 'messages')::bigint, (r ->> 'ago_s')::float8
              from millrace.subscription_state() s left join lateral jsonb_array_elements(s.refused) r on true
            """, deadline: deadline
        ) { row throws(PostgresError) -> (State, Refused?) in
            var state = State()
            state.stores = try row.strings(0)
            state.unowned = Int(try row.int(1))
            state.unplanned = Int(try row.int(2))
            state.late = Int(try row.int(3))
            state.oldest = try row.double(4)
            state.told = try row.strings(5)
            state.bare = try row.strings(6)
            guard let store = row.optionalString(7) else { return (state, nil) }
            return (
                state,
                Refused(
                    store: store, why: try row.string(8), messages: Int(try row.int(9)), ago: try row.double(10))
            )
        }
        var state = rows.first?.0 ?? State()
        state.refused = rows.compactMap(\.1)
        return state
    }

    private static func one(
        _ statement: SQL, _ parameters: [Parameter], on connection: Connection
    ) async throws(PostgresError) -> [UInt8] {
        try await connection.query(statement, parameters) { row throws(PostgresError) in try row.json(0) }.first ?? []
    }
}
