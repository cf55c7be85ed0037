package import Postgres

/// On which server the schema was migrated, and which one this is: a copy has the other's setting.
package struct SchemaOrigin: Sendable, Equatable {
    package var migratedOn: String?
    package var server: String?

    package init(migratedOn: String?, server: String?) {
        self.migratedOn = migratedOn
        self.server = server
    }
}

extension Queue {
    private static let server: SQL = "select system_identifier::text from pg_control_system()"

    package static func origin(on connection: Connection) async throws(PostgresError) -> SchemaOrigin {
        let server = try await connection.query(Self.server) { row throws(PostgresError) in try row.string(0) }.first
        let noted = try await connection.query(
            "select value from millrace.setting where name = 'server'"
        ) { row throws(PostgresError) in try row.string(0) }.first
        return SchemaOrigin(migratedOn: noted, server: server)
    }

    /// In a migration: this server is the schema's own. Not where a provider does not tell which it is.
    static func noteOrigin(on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace.setting (name, value)
            select 'server', c.system_identifier::text from pg_control_system() c
             where has_function_privilege('pg_control_system()', 'execute')
            on conflict (name) do update set value = excluded.value where setting.value is distinct from excluded.value
            """)
    }
}
