package import Postgres

/// What the server's settings promise of a commit that was answered, when another server takes its place.
package struct ReplicationFacts: Sendable {
    /// A standby itself, which does not decide any of this.
    package var isStandby: Bool
    package var synchronousCommit: String
    package var synchronousNames: String
    package var standbys: Int
    /// Those whose answer a commit waits for; nil: this role may not see how standbys follow.
    package var synchronous: Int?
    /// Roles and databases whose sessions do not wait, although others do.
    package var notWaiting: [String]
    /// Tables of the schema that are empty after a crash or a failover.
    package var unlogged: [String]

    package init(
        isStandby: Bool = false, synchronousCommit: String = "on", synchronousNames: String = "", standbys: Int = 0,
        synchronous: Int? = 0, notWaiting: [String] = [], unlogged: [String] = []
    ) {
        self.isStandby = isStandby
        self.synchronousCommit = synchronousCommit
        self.synchronousNames = synchronousNames
        self.standbys = standbys
        self.synchronous = synchronous
        self.notWaiting = notWaiting
        self.unlogged = unlogged
    }

    /// How many standbys a commit waits for: `2 (a, b)`, `ANY 1 (a, b)`, or a list alone, of which the first is waited for.
    package var needed: Int {
        guard synchronousNames.contains("(") else { return synchronousNames.isEmpty ? 0 : 1 }
        let words = synchronousNames.prefix { $0 != "(" }.split(separator: " ")
        return words.last.flatMap { Int($0) } ?? 1
    }
}

extension Queue {
    package static func replicationFacts(
        on connection: Connection
    ) async throws(PostgresError) -> ReplicationFacts {
        let rows = try await connection.query(
            """
            select pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
                   (select count(*) from pg_stat_replication),
                   -- How a standby follows is null for roles that may not read it.
                   (select case when bool_or(sync_state is null) then null else count(*) filter (where sync_state in ('sync', 'quorum')) end
                      from pg_stat_replication),
                   array(select coalesce(r.rolname, d.datname)::text
                           from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole left join pg_database d on d.oid = s.setdatabase
                          where (s.setdatabase = 0 or d.datname = current_database())
                            and s.setconfig && array['synchronous_commit=off', 'synchronous_commit=local'] order by 1),
                   array(select relname::text from pg_class
                          where relnamespace = to_regnamespace('millrace') and relkind = 'r' and relpersistence = 'u' order by 1)
            """
        ) { row throws(PostgresError) in
            ReplicationFacts(
                isStandby: try row.bool(0), synchronousCommit: try row.string(1), synchronousNames: try row.string(2),
                standbys: Int(try row.int(3)), synchronous: row.isNull(4) ? nil : Int(try row.int(4)),
                notWaiting: try row.strings(5), unlogged: try row.strings(6))
        }
        return try one(rows)
    }
}
