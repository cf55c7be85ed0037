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

/// How many more connections there are to be had.
package struct ConnectionsLeft: Sendable, Equatable {
    package enum Limit: String, Sendable {
        case server
        case database
        case role
    }

    package var left: Int
    /// The nearest limit.
    package var limit: Limit
    /// The database's or the role's.
    package var name: String?

    package init(left: Int, limit: Limit, name: String? = nil) {
        self.left = left
        self.limit = limit
        self.name = name
    }
}

/// One of our roles: whether it exists and has its doors.
package struct RoleFacts: Sendable {
    package var name: String
    package var exists: Bool
    package var mayUse: Bool
}

extension Queue {
    /// Writes half a megabyte, for which a full disk has no room, and takes it back.
    package static func tryWriting(on connection: Connection, deadline: Duration? = nil) async throws(PostgresError) {
        _ = try await connection.transaction(keeping: { _ in false }) { connection throws(PostgresError) in
            try await connection.execute(
                """
                create temporary table write_check on commit drop as
                    select md5(n::text) as line from generate_series(1, 8000) n
                """, deadline: deadline)
        }
    }

    /// How many more connections workers can open here, and what stops them. Superusers are not bound by these limits.
    ///
    /// Of the roles, those count that may claim jobs: an operator's may be as small as it likes, unless a worker lives that uses it.
    package static func connectionsLeft(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> ConnectionsLeft {
        let rows = try await connection.query(
            """
            -- The type of others' sessions is null for roles that may not read it.
            with used as materialized (
                select a.usesysid, a.datid, a.pid from pg_stat_activity a
                 where a.usesysid is not null and a.datid is not null and coalesce(a.backend_type, 'client backend') = 'client backend'
            ), workers as materialized (
                -- A living worker's session holds the lock of its number.
                select distinct u.usesysid from pg_locks l join used u on u.pid = l.pid
                 where l.locktype = 'advisory' and l.objsubid = 1 and l.database = u.datid
                   and to_hex(l.classid::bigint << 32 | l.objid::bigint) in (select w.session from millrace.workers w)
            ), limited as (
                select 'server' as what, null::text as name,
                       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                           - coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::int - (select count(*) from used) as n
                union all
                select 'database', d.datname, d.datconnlimit - (select count(*) from used u where u.datid = d.oid)
                  from pg_database d where d.datname = current_database() and d.datconnlimit >= 0
                union all
                select 'role', r.rolname, r.rolconnlimit - (select count(*) from used u where u.usesysid = r.oid)
                  from pg_roles r
                 where r.rolconnlimit >= 0 and r.rolcanlogin and not r.rolsuper
                   and (r.oid in (select w.usesysid from workers w)
                        or exists (select from pg_proc p where p.pronamespace = to_regnamespace('millrace') and p.proname = 'claim'
                                                           and has_function_privilege(r.oid, p.oid, 'execute'))
                       and not exists (select from pg_proc p where p.pronamespace = to_regnamespace('millrace') and p.proname = 'job_list'
                                                               and has_function_privilege(r.oid, p.oid, 'execute')))
            )
            select what, name, greatest(0, n)::bigint from limited order by n, what <> 'server', name limit 1
            """, deadline: deadline
        ) { row throws(PostgresError) in
            guard let limit = ConnectionsLeft.Limit(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a limit of connections")
            }
            return ConnectionsLeft(left: Int(try row.int(2)), limit: limit, name: row.optionalString(1))
        }
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
