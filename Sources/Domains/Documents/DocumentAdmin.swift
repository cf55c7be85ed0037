package import FoundationEssentials
package import Postgres

/// The operators' side of documents: register, look up, search, delete.
package enum DocumentAdmin {
    /// - Parameter document: a JSON object with the names of `document_register`.
    package static func register(_ document: [UInt8], on connection: Connection) async throws(PostgresError) -> String {
        try await connection.query(
            """
            select millrace.document_register(
                p ->> 'storage_url', p ->> 'title', p ->> 'mime_type', (p ->> 'size')::bigint, p ->> 'lesson_id', p ->> 'tenant',
                coalesce(p -> 'options', '{}'), p ->> 'password', (p ->> 'id')::uuid, p ->> 'actor')::text
              from (select $1 as p) given
            """, [.json(document)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    package struct Listed: Sendable {
        package var id: String
        package var title: String?
        package var status: String
        package var stage: String
        package var pages: Int?
        package var done: Int
        package var failed: Int
        package var reason: String?
        package var created: Date
        /// The view's row, as JSON.
        package var row: [UInt8]

        package var hasEnded: Bool { ["completed", "failed", "deleted"].contains(status) }
    }

    package static func list(
        status: String?, lesson: String?, tenant: String?, since: Date?, after: String?, page: Int,
        parent: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [Listed] {
        try await connection.query(
            """
            select id::text, title, status, stage, pages, pages_done, pages_failed, reason, created_at, to_jsonb(v)
              from millrace.document_list($1, $2, $3, $4, $5, $6, parent => $7::text::uuid) v
            """,
            [
                .text(status), .text(lesson), .text(tenant), .timestamp(since), .text(after),
                .int4(Int32(clamping: page)), .text(parent),
            ], decode: listed)
    }

    package static func find(_ id: String, on connection: Connection) async throws(PostgresError) -> Listed? {
        try await connection.query(
            """
            select id::text, title, status, stage, pages, pages_done, pages_failed, reason, created_at, to_jsonb(v)
              from millrace.document($1::text::uuid) v
            """, [.text(id)], decode: listed
        ).first
    }

    private static let listed: Connection.Decode<Listed> = { row throws(PostgresError) in
        Listed(
            id: try row.string(0), title: row.optionalString(1), status: try row.string(2), stage: try row.string(3),
            pages: try row.optionalInt(4).map { Int($0) }, done: Int(try row.int(5)), failed: Int(try row.int(6)),
            reason: row.optionalString(7), created: try row.date(8), row: try row.json(9))
    }

    /// Everything known about a document, as JSON; nil when there is none.
    package static func story(_ id: String, on connection: Connection) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.document_story($1::text::uuid)", [.text(id)]) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    package struct PageChange: Sendable {
        package var page: Int
        package var status: String
        package var reason: String?
        package var words: Int?
        package var at: Date
    }

    /// Pages that have changed since, the oldest change first.
    package static func progress(
        _ id: String, since: Date?, on connection: Connection
    ) async throws(PostgresError) -> [PageChange] {
        try await connection.query(
            "select page, status, reason, words, at from millrace.document_progress($1::text::uuid, $2)",
            [.text(id), .timestamp(since)]
        ) { row throws(PostgresError) in
            PageChange(
                page: Int(try row.int(0)), status: try row.string(1), reason: row.optionalString(2),
                words: try row.optionalInt(3).map { Int($0) }, at: try row.date(4))
        }
    }

    package static func text(
        _ id: String, first: Int, last: Int?, on connection: Connection
    ) async throws(PostgresError) -> String? {
        try await connection.query(
            "select millrace.document_text($1::text::uuid, $2, $3)",
            [.text(id), .int4(Int32(clamping: first)), .int4(last.map { Int32(clamping: $0) })]
        ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    package struct PageContent: Sendable {
        package var page: Int
        package var text: String
        /// Words, boxes, confidences.
        package var content: [UInt8]
    }

    package static func contents(
        _ id: String, from first: Int, most: Int, on connection: Connection
    ) async throws(PostgresError) -> [PageContent] {
        try await connection.query(
            "select page, text, content from millrace.document_contents($1::text::uuid, $2, $3, false)",
            [.text(id), .int4(Int32(clamping: first)), .int4(Int32(clamping: most))]
        ) { row throws(PostgresError) in
            PageContent(page: Int(try row.int(0)), text: try row.string(1), content: try row.json(2))
        }
    }

    package struct Found: Sendable {
        package var document: String
        package var page: Int
        package var title: String?
        package var highlight: String
        package var next: String
        /// How well the page fits; nil without that order.
        package var rank: Double?
        /// Places of the words, as JSON: left, top, right and bottom as parts of the page's width and height.
        package var boxes: [UInt8]
    }

    package static func search(
        _ query: String, tenant: String?, after: String?, page: Int, sort: String, on connection: Connection
    ) async throws(PostgresError) -> [Found] {
        try await connection.query(
            """
            select document::text, number, title, highlight, next, rank::float8, boxes
              from millrace.document_search($1, $2, $3, $4, sort => $5)
            """,
            [.text(query), .text(tenant), .text(after), .int4(Int32(clamping: page)), .text(sort)]
        ) { row throws(PostgresError) in
            Found(
                document: try row.string(0), page: Int(try row.int(1)), title: row.optionalString(2),
                highlight: try row.string(3), next: try row.string(4), rank: row.optionalDouble(5),
                boxes: try row.json(6))
        }
    }

    /// Where one of its outputs lies; nil when that was not made.
    package static func output(
        _ id: String, _ kind: String, on connection: Connection
    ) async throws(PostgresError) -> (blob: String, size: Int)? {
        try await connection.query(
            "select encode(blob, 'hex'), size from millrace.document_output_of($1::text::uuid, $2)",
            [.text(id), .text(kind)]
        ) { row throws(PostgresError) in (blob: try row.string(0), size: Int(try row.int(1))) }.first
    }

    package static func retry(
        _ id: String, pages: [Int]?, mode: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.document_retry($1::text::uuid, $2, mode => $3)",
            [.text(id), .int4s(pages?.map { Int32(clamping: $0) }), .text(mode)]
        )
    }

    package struct TenantDefaults: Sendable {
        package var tenant: String
        package var options: [UInt8]
        package var changedAt: Date
        package var changedBy: String
    }

    /// What tenants' documents are given where they say nothing, of all tenants or of one.
    package static func defaults(
        of tenant: String?, on connection: Connection
    ) async throws(PostgresError) -> [TenantDefaults] {
        try await connection.query(
            "select tenant, options, changed_at, changed_by from millrace.document_defaults($1)", [.text(tenant)]
        ) { row throws(PostgresError) in
            TenantDefaults(
                tenant: try row.string(0), options: try row.json(1), changedAt: try row.date(2),
                changedBy: try row.string(3))
        }
    }

    /// - Parameter options: a JSON object; nil: none any more.
    package static func setDefaults(
        of tenant: String, _ options: [UInt8]?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.document_default_set($1, $2)", [.text(tenant), .json(options)])
    }

    /// At most ten at once.
    package static func delete(
        _ ids: [String]?, lesson: String?, on connection: Connection
    ) async throws(PostgresError) -> [(id: String, isDeleted: Bool)] {
        try await connection.query(
            "select id::text, deleted from millrace.document_delete($1::uuid[], $2)", [.texts(ids), .text(lesson)]
        ) { row throws(PostgresError) in (id: try row.string(0), isDeleted: try row.bool(1)) }
    }

    package struct State: Sendable {
        package var processing: Int
        package var waitingPages: Int
        package var failedToday: Int
        package var oldest: Date?
    }

    package static func state(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> State? {
        try await connection.query(
            "select processing, waiting_pages, failed_today, oldest from millrace.document_state()", [],
            deadline: deadline
        ) { row throws(PostgresError) in
            State(
                processing: Int(try row.int(0)), waitingPages: Int(try row.int(1)), failedToday: Int(try row.int(2)),
                oldest: try row.optionalDate(3))
        }.first
    }
}
