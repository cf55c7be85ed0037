import Faults
import JSON
package import Postgres
import Traces

/// The mail service's SQL: one method for each door.
package struct MailStore: Sendable {
    let pool: Pool

    package init(pool: Pool) {
        self.pool = pool
    }

    struct Taken: Sendable {
        enum What: String, Sendable { case render, send, batch, wait, done, discard }

        var id: String
        var what: What
        var seconds: Double
        var reason: String
        var batch: Int64
        var isUrgent: Bool
        var template: String?
        var data: [UInt8]
        var locale: String?
        var subject: String?
        var text: String?
        var html: String?
        var unsubscribe: [UInt8]?
    }

    func take(_ jobs: [MailJob], _ options: MailOptions) async throws -> [Taken] {
        try await ask(
            """
            select coalesce(message::text, ''), verdict, coalesce(seconds, 0), coalesce(reason, ''), coalesce(batch, 0), priority,
                   template, data, locale, subject, body_text, body_html, unsubscribe
              from millrace.mail_take($1, $2, $3, $4, $5, $6) order by n
            """,
            [
                .int8s(jobs.map(\.job)), .texts(jobs.map(\.kind)),
                .texts(jobs.map { String(decoding: $0.args, as: UTF8.self) }), .text(options.appName),
                .text(options.resetURL), .text(options.verifyURL),
            ]
        ) { row throws(PostgresError) in
            guard let what = Taken.What(rawValue: try row.string(1)) else {
                throw .undecodable(column: 1, expected: "a verdict")
            }
            return Taken(
                id: try row.string(0), what: what, seconds: try row.double(2), reason: try row.string(3),
                batch: try row.int(4), isUrgent: ["urgent", "high"].contains(row.optionalString(5)),
                template: row.optionalString(6), data: row.optionalJSON(7) ?? Array("{}".utf8),
                locale: row.optionalString(8), subject: row.optionalString(9), text: row.optionalString(10),
                html: row.optionalString(11), unsubscribe: row.bytes(12).map { Array($0) })
        }
    }

    func freeze(_ frozen: [(id: String, rendered: Rendered, link: String?)], from: Mailbox) async throws {
        guard !frozen.isEmpty else { return }
        _ = try await run(
            "select millrace.mail_freeze($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [
                .texts(frozen.map(\.id)), .texts(frozen.map(\.rendered.subject)), .texts(frozen.map(\.rendered.text)),
                .texts(frozen.map(\.rendered.html)), .int4s(frozen.map { Int32($0.rendered.version ?? 0) }),
                .texts(frozen.map(\.rendered.locale)), .texts(frozen.map(\.link)), .text(from.address),
                .text(from.name),
            ])
    }

    func fail(_ id: String, _ fault: Fault) async throws {
        _ = try await run(
            "select millrace.mail_failed($1, $2, $3)", [.text(id), .text(fault.kind.rawValue), .text(fault.what)])
    }

    struct Opened: Sendable {
        enum What: String, Sendable { case go = "in", fewer, wait, settled }

        var id: String
        var what: What
        var seconds: Double
        var batch: Int64
        var key: String
    }

    /// - Parameter alone: True makes a request for each message; false one for all.
    func open(
        _ ids: [String], alone: Bool, by provider: String, holder: Int64, _ options: MailOptions
    ) async throws -> [Opened] {
        try await ask(
            """
            select message::text, verdict, coalesce(seconds, 0), coalesce(batch, 0), coalesce(key, '')
              from millrace.mail_batch_open($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """,
            [
                .text(provider), .texts(ids), .bool(alone), .int8(holder), .float8(options.hold / .seconds(1)),
                .int4(Int32(clamping: options.senderRate?.count ?? 0)),
                .float8((options.senderRate?.span ?? .zero) / .seconds(1)),
                .int4(Int32(clamping: options.domainRate?.count ?? 0)),
                .float8((options.domainRate?.span ?? .zero) / .seconds(1)),
            ]
        ) { row throws(PostgresError) in
            guard let what = Opened.What(rawValue: try row.string(1)) else {
                throw .undecodable(column: 1, expected: "a verdict")
            }
            return Opened(
                id: try row.string(0), what: what, seconds: try row.double(2), batch: try row.int(3),
                key: try row.string(4))
        }
    }

    struct Again: Sendable {
        enum What: String, Sendable { case go, wait, settled }

        var what: What
        var seconds: Double
        var provider: String
        var key: String
        var messages: [String]
        var attempt: Int32
        var age: Duration
        var mayRepeat: Bool
        var providerID: String?
    }

    /// - Parameter attempt: Our attempt whose answer was lost; nil: an attempt of another session, which is gone.
    func again(
        _ batch: Int64, attempt: Int32?, holder: Int64, for hold: Duration
    ) async throws -> Again? {
        try await ask(
            """
            select verdict, coalesce(seconds, 0), coalesce(provider, ''), coalesce(key, ''), coalesce(messages::text[], '{}'),
                   coalesce(attempt, 0), coalesce(age, 0), coalesce(on_unknown = 'again', false), provider_message_id
              from millrace.mail_batch_again($1, $2, $3, $4)
            """, [.int8(batch), .int4(attempt), .int8(holder), .float8(hold / .seconds(1))]
        ) { row throws(PostgresError) in
            guard let what = Again.What(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a verdict")
            }
            return Again(
                what: what, seconds: try row.double(1), provider: try row.string(2), key: try row.string(3),
                messages: try row.strings(4), attempt: Int32(try row.int(5)), age: .seconds(try row.double(6)),
                mayRepeat: try row.bool(7), providerID: row.optionalString(8))
        }.first
    }

    struct Entry: Sendable {
        var id: String
        var answer: SendOutcome
        var status: String?
    }

    enum RequestEnd: String, Sendable { case open, settled, split, parked }

    /// The result of one attempt. What it says about the messages counts even if another attempt has begun meanwhile.
    struct Outcome: Sendable {
        var batch: Int64
        var attempt: Int32
        var entries: [Entry]
        var took: Duration?
        var requestEnd: RequestEnd
        /// The places in traces of the messages' runs: what is said of a message belongs there.
        var traces: [String: TraceContext] = [:]

        func clashes(with other: Outcome) -> Bool {
            let ids = Set(entries.map(\.id))
            return batch == other.batch || other.entries.contains { ids.contains($0.id) }
        }
    }

    func record(_ outcomes: [Outcome]) async throws {
        let entries = outcomes.enumerated().flatMap { place, one in one.entries.map { (place: place + 1, entry: $0) } }
        let traces = outcomes.reduce(into: [String: TraceContext]()) { $0.merge($1.traces) { first, _ in first } }
        var parameters: [Parameter] =
            [
                .int8s(outcomes.map(\.batch)), .int4s(outcomes.map(\.attempt)),
                .texts(outcomes.map(\.requestEnd.rawValue)),
                .int4s(outcomes.map { $0.took.map { Int32(clamping: Int64($0 / .milliseconds(1))) } ?? -1 }),
                .int4s(entries.map { Int32($0.place) }), .texts(entries.map(\.entry.id)),
                .texts(entries.map(\.entry.answer.word)), .texts(entries.map(\.entry.answer.fault?.kind.rawValue)),
                .texts(entries.map(\.entry.answer.fault?.code)), .texts(entries.map(\.entry.answer.fault?.what)),
                .texts(entries.map(\.entry.answer.providerID)), .texts(entries.map(\.entry.status)),
            ]
        if !traces.isEmpty {
            parameters.append(
                .text(JSONText.object(traces.map { ($0.key, JSONText.quoted($0.value.traceparent)) })))
        }
        _ = try await run(traces.isEmpty ? Self.recorded : Self.tracedRecorded, parameters)
    }

    private static let recorded: SQL =
        "select millrace.mail_batch_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    /// The trigger that publishes what became of a message reads them: see mail_event_say.
    private static let tracedRecorded = SQL.setting(
        ["millrace.mail_traces"], from: 13, type: "bigint[]",
        "select millrace.mail_batch_record(%1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) from named")

    /// True for the one caller that noticed first that mail goes another way now.
    func route(chosen: String, current: String, reason: String?) async throws -> Bool {
        try await ask(
            "select millrace.mail_route_by($1, $2, $3)", [.text(chosen), .text(current), .text(reason)]
        ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
    }

    func told(_ type: String, template: String) async throws {
        _ = try await run("select millrace.mail_told($1, null, $2, true, null)", [.text(type), .text(template)])
    }

    func ask<Element: Sendable>(
        _ sql: SQL, _ parameters: [Parameter], _ decode: @escaping Connection.Decode<Element>
    ) async throws -> [Element] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(sql, parameters, decode: decode)
        }
    }

    func run(_ sql: SQL, _ parameters: [Parameter]) async throws -> Int {
        try await ask(sql, parameters) { _ throws(PostgresError) in true }.count
    }
}
