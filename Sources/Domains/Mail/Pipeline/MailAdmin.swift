package import FoundationEssentials
package import Postgres

/// The operators' side of mail: send, look up, decide.
package enum MailAdmin {
    /// - Parameter letter: a JSON object with the names of `mail_send`.
    package static func send(_ letter: [UInt8], on connection: Connection) async throws(PostgresError) -> String {
        try await connection.query(
            """
            select millrace.mail_send(
                recipients => array(select jsonb_array_elements_text(p -> 'recipients')), subject => p ->> 'subject',
                body_text => p ->> 'body_text', body_html => p ->> 'body_html', template => p ->> 'template',
                data => coalesce(p -> 'data', '{}'), locale => p ->> 'locale',
                cc => array(select jsonb_array_elements_text(coalesce(p -> 'cc', '[]'))),
                bcc => array(select jsonb_array_elements_text(coalesce(p -> 'bcc', '[]'))), reply_to => p ->> 'reply_to',
                headers => coalesce(p -> 'headers', '{}'), attachments => coalesce(p -> 'attachments', '[]'),
                priority => coalesce(p ->> 'priority', 'normal'), receipt => coalesce((p ->> 'receipt')::boolean, false),
                scheduled_at => (p ->> 'scheduled_at')::timestamptz, expires_at => (p ->> 'expires_at')::timestamptz,
                tags => coalesce(p -> 'tags', '{}'), purpose => coalesce(p ->> 'purpose', 'transactional'),
                on_unknown => coalesce(p ->> 'on_unknown', 'park'), sender => p ->> 'sender', tenant => p ->> 'tenant',
                id => (p ->> 'id')::uuid, person => p ->> 'person')::text
              from (select $1 as p) given
            """, [.json(letter)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    package static func status(_ id: String, on connection: Connection) async throws(PostgresError) -> String? {
        try await connection.query("select status from millrace.mail_message($1::text::uuid)", [.text(id)]) {
            row throws(PostgresError) in try row.string(0)
        }.first
    }

    /// Why the message was not taken, or not yet.
    package static func error(_ id: String, on connection: Connection) async throws(PostgresError) -> String? {
        try await connection.query("select error from millrace.mail_message($1::text::uuid)", [.text(id)]) {
            row throws(PostgresError) in row.optionalString(0)
        }.first ?? nil
    }

    package struct Listed: Sendable {
        package var id: String
        package var kind: String
        package var status: String
        package var service: String?
        package var template: String?
        package var attempts: Int
        package var created: Date
        package var error: String?
        /// The view's row, as JSON.
        package var row: [UInt8]
    }

    package static func list(
        status: String?, since: Date?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Listed] {
        try await connection.query(
            """
            select id::text, kind, status, service, template, attempts, created_at, error, to_jsonb(v)
              from millrace.mail_list($1, $2, $3::text::uuid, $4) v
            """, [.text(status), .timestamp(since), .text(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Listed(
                id: try row.string(0), kind: try row.string(1), status: try row.string(2),
                service: row.optionalString(3), template: row.optionalString(4), attempts: Int(try row.int(5)),
                created: try row.date(6), error: row.optionalString(7), row: try row.json(8))
        }
    }

    /// Everything known about a message, as JSON; nil when there is none.
    package static func story(
        _ id: String, raw: Bool, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query(
            "select millrace.mail_story($1::text::uuid, $2)", [.text(id), .bool(raw)]
        ) { row throws(PostgresError) in row.optionalJSON(0) }.first ?? nil
    }

    package static func cancel(_ id: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.mail_cancel($1::text::uuid)", [.text(id)])
    }

    package static func resolve(
        _ id: String, _ verdict: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.mail_resolve($1::text::uuid, $2)", [.text(id), .text(verdict)])
    }

    package static func suppress(
        _ address: String, reason: String, purpose: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.mail_suppress($1, $2, $3)", [.text(address), .text(reason), .text(purpose)])
    }

    package static func unsuppress(
        _ address: String, purpose: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.mail_unsuppress($1, $2)", [.text(address), .text(purpose)])
    }

    package static func unsubscribe(_ hash: [UInt8], on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.mail_unsubscribe($1)", [.bytea(hash)])
    }

    /// Takes that back; an operator's decision and a bounce stay.
    package static func subscribeAgain(_ hash: [UInt8], on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.mail_subscribe_again($1)", [.bytea(hash)])
    }

    package struct Suppression: Sendable {
        package var hash: String
        package var purpose: String
        package var reason: String
        package var address: String?
        package var by: String
        package var at: Date
    }

    package static func suppressions(
        after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [Suppression] {
        try await connection.query(
            "select hash, purpose, reason, address, by, at from millrace.mail_suppressions($1, $2)",
            [.text(after), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            Suppression(
                hash: try row.string(0), purpose: try row.string(1), reason: try row.string(2),
                address: row.optionalString(3), by: try row.string(4), at: try row.date(5))
        }
    }

    /// What was erased, as JSON.
    package static func erase(_ address: String, on connection: Connection) async throws(PostgresError) -> [UInt8] {
        try await connection.query("select millrace.mail_erase($1)", [.text(address)]) {
            row throws(PostgresError) in try row.json(0)
        }.first ?? []
    }

    /// Records a provider's event about a message. False: it was recorded before.
    package static func event(
        provider: String, id: String, type: String, at: Date?, recipient: String?, data: [UInt8],
        on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.mail_event($1, $2, $3, $4, $5, $6)",
            [.text(provider), .text(id), .text(type), .timestamp(at), .text(recipient), .json(data)])
    }

    package struct State: Sendable {
        package var chosen: String?
        package var current: String?
        package var since: Date?
        package var reason: String?
        package var parked: Int
        package var unknown: Int

        /// Mail goes by another service than the chosen one.
        package var isSwitched: Bool { current != chosen }
    }

    package static func state(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> State? {
        try await connection.query(
            "select chosen, current, since, reason, parked, unknown from millrace.mail_state()", [], deadline: deadline
        ) { row throws(PostgresError) in
            State(
                chosen: row.optionalString(0), current: row.optionalString(1), since: try row.optionalDate(2),
                reason: row.optionalString(3), parked: Int(try row.int(4)), unknown: Int(try row.int(5)))
        }.first
    }
}
