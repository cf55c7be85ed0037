import JSON
package import Postgres
package import SettingsKit

/// The database, as a room of another package uses it: in its jobs, its verbs and its checks.
public struct RoomDatabase: Sendable {
    private let read: @Sendable (SQL, [Parameter]) async throws -> [DatabaseRow]
    /// Of the program; nil: it has none, and the environment counts.
    private let settings: Settings?

    package init(_ pool: Pool, settings: Settings? = nil) {
        self.settings = settings
        read = { sql, values in
            try await pool.withConnection { connection throws(PostgresError) in
                try await Self.rows(sql, values, on: connection)
            }
        }
    }

    package init(_ connection: Connection, deadline: Duration? = nil, settings: Settings? = nil) {
        self.settings = settings
        read = { sql, values in try await Self.rows(sql, values, on: connection, deadline: deadline) }
    }

    /// Runs a statement in a transaction of its own, and returns what it answers: `select …`, or `insert … returning …`. Write every name with
    /// its schema, such as `millrace.shelf_add($1, $2::int)`. The values are texts, and nil is NULL: cast those that are to be something else.
    @discardableResult
    public func rows(_ statement: StaticString, _ values: String?...) async throws -> [DatabaseRow] {
        let sql = SQL.shipped(
            Array(
                "with answer as (\(statement)) select pg_catalog.row_to_json(answer)::pg_catalog.text from answer".utf8
            ))
        return try await read(sql, values.map { .text($0) })
    }

    /// The value of a setting of the room; nil: nobody has given one, and it has no fallback.
    public func value(of setting: RoomSetting) -> String? {
        let settings = settings ?? .load(surroundings: .live(), table: SettingsTable([setting.setting]))
        return settings.text(setting.setting)
    }

    private static func rows(
        _ sql: SQL, _ values: [Parameter], on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [DatabaseRow] {
        try await connection.query(sql, values, deadline: deadline) { row throws(PostgresError) in
            let text = try row.string(0)
            guard let value = try? JSONValue.read(Array(text.utf8)) else {
                throw .undecodable(column: 0, expected: "a row as JSON")
            }
            return DatabaseRow(value)
        }
    }
}

/// One row of an answer.
public struct DatabaseRow: Sendable {
    package let json: JSONValue

    package init(_ json: JSONValue) { self.json = json }

    /// The value of a column as text; nil where it is NULL, or where there is no such column.
    public subscript(column: String) -> String? { json[column].flatMap(Self.text) }

    /// The columns in their order.
    public var columns: [String] {
        guard case .object(let members) = json else { return [] }
        return members.map(\.key)
    }

    private static func text(_ value: JSONValue) -> String? {
        switch value {
        case .null: nil
        case .string(let text): text
        case .number(let digits): digits
        case .bool, .int, .double, .array, .object, .raw: value.compact
        }
    }
}
