package import Postgres

/// Whether the session's login may take on the clients' role, as each call of an app does.
package enum GatewayRights: Sendable {
    case fine, missing, forbidden

    package static func look(for role: String, on connection: Connection) async throws(PostgresError) -> GatewayRights {
        // Since Postgres 16 a member may lack the right to SET ROLE.
        let rows = try await connection.query(
            """
            select pg_has_role(current_user, oid,
                case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end)
              from pg_catalog.pg_roles where rolname = $1
            """, [.text(role)]
        ) { row throws(PostgresError) in try row.bool(0) }
        guard let may = rows.first else { return .missing }
        return may ? .fine : .forbidden
    }
}
