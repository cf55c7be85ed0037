package import FoundationEssentials
package import Postgres

/// One version of a template, as the view lists it.
package struct TemplateRow: Sendable, Equatable {
    package var name: String
    package var locale: String
    package var version: Int
    package var live: Bool
    /// nil for a built-in version.
    package var bytes: Int?
    package var builtIn: Bool
    package var publishedAt: Date?
    package var note: String?
    /// When it was compiled; nil if it was not yet, and for a built-in version.
    package var checkedAt: Date?
    /// The compiler's objection.
    package var problem: String?

    package enum State: String, Sendable {
        case live, unchecked, refused
        /// It may be used.
        case spare = "-"
    }

    package var state: State {
        if live { return .live }
        if problem != nil { return .refused }
        return version > 0 && checkedAt == nil ? .unchecked : .spare
    }
}

extension TemplateStore {
    package static func list(
        name: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [TemplateRow] {
        try await connection.query(
            """
            select name, locale, version, live, bytes, built_in, published_at, note, checked_at, problem from millrace.templates
             where $1 is null or name = $1 order by name, locale, version
            """, [.text(name)]
        ) { row throws(PostgresError) in
            let published = try row.optionalDate(6)
            let checked = try row.optionalDate(8)
            return TemplateRow(
                name: try row.string(0), locale: try row.string(1), version: Int(try row.int(2)),
                live: try row.bool(3), bytes: try row.optionalInt(4).map { Int($0) }, builtIn: try row.bool(5),
                publishedAt: published, note: row.optionalString(7),
                checkedAt: checked, problem: row.optionalString(9))
        }
    }
}
