package import Postgres

/// Whether the session's login is believed when it says who calls: `millrace.is_trusted`.
package struct GatewayTrust: Sendable {
    package var login: String
    package var isSuperuser: Bool
    package var isTrusted: Bool

    /// Why a gateway with this login must not start; nil: it may.
    package var objection: (sentence: String, hint: String)? {
        if isTrusted { return nil }
        let told = "select millrace.trust_claims('\(login)')"
        return isSuperuser
            ? (
                "the login \(login) is a superuser, and a gateway serves strangers",
                "give the gateway a login of its own: create role gateway login in role millrace_gateway; or, if it must be this one: \(told)"
            )
            : (
                "nothing says that the login \(login) checks who a person is, so every call would be refused",
                "an admin says so once: grant millrace_gateway to \(login); or: \(told)"
            )
    }

    package static func look(on connection: Connection) async throws(PostgresError) -> GatewayTrust? {
        try await connection.query(
            """
            select l.rolname::text, l.rolsuper, pg_catalog.has_function_privilege(l.oid, p.oid, 'execute')
                       and (not l.rolsuper or exists (select from pg_catalog.aclexplode(p.proacl) a where a.grantee = l.oid))
              from pg_catalog.pg_roles l, pg_catalog.pg_proc p
             where l.rolname = session_user and p.pronamespace = pg_catalog.to_regnamespace('millrace') and p.proname = 'right_claims'
            """
        ) { row throws(PostgresError) in
            GatewayTrust(login: try row.string(0), isSuperuser: try row.bool(1), isTrusted: try row.bool(2))
        }.first
    }
}

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
