package import FoundationEssentials
package import Postgres

/// Facts about the server, for `doctor`. Read from the catalogs, which every role may read; null where it may not.
package struct ServerFacts: Sendable {
    package var role: String
    package var tls: Bool?
    package var isLocalSocket: Bool
    package var now: Date
    package var settings: [String: String]
    package var connections: Int
    package var databaseBytes: Int
    package var notifyUsage: Double
    package var preparedTransactions: Int
    package var oldestPrepared: Double?
    /// Replication slots that hold back rows or logs, by name.
    package var slots: [String]
}

/// One of our roles: whether it exists and has its doors.
package struct RoleFacts: Sendable {
    package var name: String
    package var exists: Bool
    package var mayUse: Bool
}

extension Queue {
    /// How many more connections the server accepts from roles without superuser rights.
    package static func connectionsLeft(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            """
            select greatest(0, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                               - (select count(*) from pg_stat_activity where backend_type = 'client backend'))::bigint
            """, deadline: deadline
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }

    package static func serverFacts(on connection: Connection) async throws(PostgresError) -> ServerFacts {
        let settings = try await connection.query(
            """
            -- Our connections set their own isolation level; other clients get the reset value.
            select name, case name when 'default_transaction_isolation' then reset_val else setting end from pg_settings
             where name in ('fsync', 'synchronous_commit', 'max_connections', 'autovacuum', 'full_page_writes',
                   'idle_in_transaction_session_timeout', 'default_transaction_isolation', 'track_activities', 'track_counts',
                   'transaction_read_only')
            """
        ) { row throws(PostgresError) in (try row.string(0), try row.string(1)) }
        let rows = try await connection.query(
            """
            select current_user::text, (select s.ssl from pg_stat_ssl s where s.pid = pg_backend_pid()), inet_server_addr() is null,
                   clock_timestamp(), (select count(*) from pg_stat_activity where backend_type = 'client backend'),
                   pg_database_size(current_database()), pg_notification_queue_usage(),
                   (select count(*) from pg_prepared_xacts),
                   (select max(extract(epoch from clock_timestamp() - prepared))::float8 from pg_prepared_xacts),
                   array(select slot_name::text from pg_replication_slots where not active or age(xmin) > 1000000)
            """
        ) { row throws(PostgresError) in
            ServerFacts(
                role: try row.string(0), tls: row.isNull(1) ? nil : try row.bool(1), isLocalSocket: try row.bool(2),
                now: try row.date(3), settings: Dictionary(settings) { first, _ in first },
                connections: Int(try row.int(4)), databaseBytes: Int(try row.int(5)), notifyUsage: try row.double(6),
                preparedTransactions: Int(try row.int(7)), oldestPrepared: row.optionalDouble(8),
                slots: try row.strings(9))
        }
        return try one(rows)
    }

    /// Each role, with a function that only this role and the ones above it may call.
    package static func roleFacts(
        _ roles: [(name: String, door: String)], on connection: Connection
    ) async throws(PostgresError) -> [RoleFacts] {
        try await connection.query(
            """
            select r.name, to_regrole(quote_ident(r.name)) is not null,
                   coalesce((select bool_or(has_function_privilege(to_regrole(quote_ident(r.name)), p.oid, 'execute')) from pg_proc p
                     where p.pronamespace = to_regnamespace('millrace') and p.proname = r.door
                       and to_regrole(quote_ident(r.name)) is not null), false)
              from unnest($1::text[], $2::text[]) with ordinality r(name, door, place)
             order by r.place
            """, [.texts(roles.map(\.name)), .texts(roles.map(\.door))]
        ) { row throws(PostgresError) in
            RoleFacts(name: try row.string(0), exists: try row.bool(1), mayUse: try row.bool(2))
        }
    }

    /// Which of these functions the current role may call.
    package static func doors(_ names: [String], on connection: Connection) async throws(PostgresError) -> [String] {
        try await connection.query(
            """
            select distinct p.proname::text from pg_proc p
             where p.pronamespace = to_regnamespace('millrace') and p.proname = any ($1) and has_function_privilege(p.oid, 'execute')
            """, [.texts(names)]
        ) { row throws(PostgresError) in try row.string(0) }
    }

    package static func notify(
        _ channel: String, _ payload: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute("select pg_notify($1, $2)", [.text(channel), .text(payload)])
    }
}
