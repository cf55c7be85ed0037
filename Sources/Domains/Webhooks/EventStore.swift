package import FoundationEssentials
package import Postgres

/// An event as operators see it.
package struct EventRow: Sendable {
    package var id: String
    /// nil: no reader has numbered it yet.
    package var seq: Int64?
    package var type: String
    package var source: String
    package var subject: String?
    package var tenant: String?
    package var owner: String
    package var time: Date
    /// As JSON.
    package var data: [UInt8]
}

/// An event in the feed: its number, and its document in the form of CloudEvents.
package struct EventChange: Sendable {
    package var seq: Int64
    package var id: String
    package var document: [UInt8]
}

/// What has happened, as the room `events` keeps it: for operators, and for who follows the feed.
package enum EventStore {
    /// Returns the event's id. A known id with the same content publishes nothing more.
    package static func publish(
        type: String, source: String, data: [UInt8], subject: String? = nil, tenant: String? = nil, id: String? = nil,
        on connection: Connection
    ) async throws(PostgresError) -> String {
        let rows = try await connection.query(
            "select millrace.event_publish($1, $2, $3, $4, $5, $6::text::uuid)::text",
            [.text(type), .text(source), .json(data), .text(subject), .text(tenant), .text(id)]
        ) { row throws(PostgresError) in try row.string(0) }
        guard let id = rows.first else { throw .undecodable(column: 0, expected: "a row") }
        return id
    }

    /// The newest first.
    package static func list(
        type: String? = nil, tenant: String? = nil, after: String? = nil, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [EventRow] {
        try await connection.query(
            """
            select id::text, seq, type, source, subject, tenant, owner, time, data
              from millrace.event_list($1, $2, $3::text::uuid, $4)
            """, [.text(type), .text(tenant), .text(after), .int4(Int32(clamping: page))], decode: event)
    }

    package static func find(
        _ id: String, on connection: Connection
    ) async throws(PostgresError) -> EventRow? {
        try await connection.query(
            """
            select id::text, seq, type, source, subject, tenant, owner, time, data from millrace.event($1::text::uuid)
            """, [.text(id)], decode: event
        ).first
    }

    /// Events after `since`, in the order in which they became visible. The reader keeps the last seq for its next call.
    package static func changes(
        since: Int64, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [EventChange] {
        try await connection.query(
            "select seq, id::text, data from millrace.events_changes($1, $2)",
            [.int8(since), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            EventChange(seq: try row.int(0), id: try row.string(1), document: try row.json(2))
        }
    }

    private static let event: Connection.Decode<EventRow> = { row throws(PostgresError) in
        EventRow(
            id: try row.string(0), seq: try row.optionalInt(1), type: try row.string(2), source: try row.string(3),
            subject: row.optionalString(4), tenant: row.optionalString(5), owner: try row.string(6),
            time: try row.date(7), data: try row.json(8))
    }
}
