package import FoundationEssentials
package import Postgres

/// The operators' side of notices.
package enum NoticeAdmin {
    package struct State: Sendable, Equatable {
        /// Alarms that are due and that no provider has taken.
        package var alarms = 0
        /// How long the oldest of them has waited, in seconds.
        package var alarmAge = 0.0
        package var plain = 0
        package var plainAge = 0.0
        /// Alarms of the last hour that nobody was told of.
        package var lost = 0

        package init() {}
    }

    package struct Notice: Sendable {
        package var id: String
        package var person: String
        package var kind: String
        package var key: String?
        package var channel: String?
        package var provider: String?
        package var status: String
        package var attempts: Int
        package var duplicates: Int
        package var isAlarm: Bool
        package var dueAt: Date
        package var acceptedAt: Date?
        package var error: String?
    }

    package struct Device: Sendable {
        package var token: String
        package var person: String
        package var platform: String
        package var app: String?
        package var seenAt: Date
    }

    package static func state(on connection: Connection, deadline: Duration) async throws(PostgresError) -> State {
        try await connection.query(
            "select alarms, alarm_age, plain, plain_age, lost from millrace.notice_state()", deadline: deadline
        ) { row throws(PostgresError) in
            var state = State()
            state.alarms = Int(try row.int(0))
            state.alarmAge = try row.double(1)
            state.plain = Int(try row.int(2))
            state.plainAge = try row.double(3)
            state.lost = Int(try row.int(4))
            return state
        }.first ?? State()
    }

    package static func list(
        person: String?, status: String?, onlyAlarms: Bool, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Notice] {
        try await connection.query(
            """
            select id::text, person, kind, key, channel, provider, status, attempts, duplicates, alarm, due_at, accepted_at, error
              from millrace.notice_list($1, $2, $3, $4, $5)
            """,
            [.text(person), .text(status), .bool(onlyAlarms), .text(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Notice(
                id: try row.string(0), person: try row.string(1), kind: try row.string(2), key: row.optionalString(3),
                channel: row.optionalString(4), provider: row.optionalString(5), status: try row.string(6),
                attempts: Int(try row.int(7)), duplicates: Int(try row.int(8)), isAlarm: try row.bool(9),
                dueAt: try row.date(10), acceptedAt: try row.optionalDate(11), error: row.optionalString(12))
        }
    }

    /// The notice with its sendings and their tries, as JSON; nil when there is none.
    package static func story(_ id: String, on connection: Connection) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.notice_story($1::text::uuid)", [.text(id)]) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first.flatMap { $0 }
    }

    package struct Order: Sendable {
        package var person: String
        package var kind: String
        package var data: String
        package var channels: [String]?
        package var key: String?
        package var at: Date?
        package var expiresAt: Date?
        package var isAlarm: Bool

        package init(
            person: String, kind: String, data: String, channels: [String]?, key: String?, at: Date?,
            expiresAt: Date?, isAlarm: Bool
        ) {
            self.person = person
            self.kind = kind
            self.data = data
            self.channels = channels
            self.key = key
            self.at = at
            self.expiresAt = expiresAt
            self.isAlarm = isAlarm
        }
    }

    package static func send(_ order: Order, on connection: Connection) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.notice_send($1, $2, $3, $4, $5, $6, $7, $8)::text",
            [
                .text(order.person), .text(order.kind), .json(order.data), .texts(order.channels), .text(order.key),
                .timestamp(order.at), .timestamp(order.expiresAt), .bool(order.isAlarm),
            ]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    package static func cancel(
        person: String, key: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.notice_cancel($1, $2)", [.text(person), .text(key)])
    }

    package static func devices(
        person: String?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Device] {
        try await connection.query(
            "select token, person, platform, app, seen_at from millrace.device_list($1, $2, $3)",
            [.text(person), .text(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Device(
                token: try row.string(0), person: try row.string(1), platform: try row.string(2),
                app: row.optionalString(3), seenAt: try row.date(4))
        }
    }

    package static func removeDevice(_ token: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.device_remove($1)", [.text(token)])
    }
}
