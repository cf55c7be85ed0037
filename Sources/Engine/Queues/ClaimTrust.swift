package import Postgres

/// Which logins are believed when they say who a person is, and which could take on the same roles and are not; read from the catalogs, which
/// every role may read. The rule itself is `millrace.claims_count`.
package struct ClaimTrust: Sendable, Equatable {
    package struct Login: Sendable, Equatable {
        package var name: String
        package var isTrusted: Bool
        package var isSuperuser: Bool
        package var inherits: Bool
        /// The roles of clients that it may take on and that nobody logs in as.
        package var roles: [String]
    }

    package var logins: [Login]

    package init(logins: [Login]) {
        self.logins = logins
    }

    package var trusted: [Login] { logins.filter(\.isTrusted) }

    /// Roles that carry the claims of people.
    package var carriers: Set<String> { Set(trusted.filter { !$0.isSuperuser }.flatMap(\.roles)) }

    /// What these say of people does not count, though they may take on a role that carries claims.
    package var disbelieved: [Login] {
        logins.filter { !$0.isTrusted && !carriers.isDisjoint(with: $0.roles) }
    }

    /// Logins without rights of their own, as gateways have them, that nobody has named.
    package var unnamed: [Login] {
        logins.filter { !$0.isTrusted && !$0.inherits && !$0.roles.isEmpty }
    }

    /// What somebody should look at, a sentence each.
    package var warnings: [String] {
        trusted.filter(\.isSuperuser).map {
            "claims are believed of \($0.name), a superuser: give the gateway a login of its own in the role millrace_gateway, "
                + "then run: select millrace.distrust_claims('\($0.name)')"
        }
            + unnamed.map {
                "claims are not believed of \($0.name), which has no rights of its own and may take on \($0.roles.joined(separator: ", ")): "
                    + "if it is a gateway such as PostgREST's, run: select millrace.trust_claims('\($0.name)')"
            }
    }

    package static func look(on connection: Connection) async throws(PostgresError) -> ClaimTrust {
        ClaimTrust(
            logins: try await connection.query(
                """
                with doors as (
                    select p.proname, p.oid, p.proacl from pg_catalog.pg_proc p
                     where p.pronamespace = pg_catalog.to_regnamespace('millrace') and p.proname in ('right_claims', 'right_staff', 'own_jobs')
                ), groups as (
                    select c.oid, c.rolname from pg_catalog.pg_roles c, doors d, doors s
                     where not c.rolcanlogin and d.proname = 'own_jobs' and s.proname = 'right_staff'
                       and pg_catalog.has_function_privilege(c.oid, d.oid, 'execute') and not pg_catalog.has_function_privilege(c.oid, s.oid, 'execute')
                ), logins as (
                    select l.*, pg_catalog.has_function_privilege(l.oid, d.oid, 'execute')
                               and (not l.rolsuper or exists (select from pg_catalog.aclexplode(d.proacl) a where a.grantee = l.oid)) as trusted,
                           array(select c.rolname::text from groups c where not l.rolsuper and pg_catalog.pg_has_role(l.oid, c.oid, 'member') order by 1) as roles
                      from pg_catalog.pg_roles l, doors d where l.rolcanlogin and d.proname = 'right_claims'
                )
                select l.rolname::text, l.trusted, l.rolsuper, l.rolinherit, l.roles from logins l
                 where l.trusted or l.roles <> '{}' order by l.rolname
                """
            ) { row throws(PostgresError) in
                Login(
                    name: try row.string(0), isTrusted: try row.bool(1), isSuperuser: try row.bool(2),
                    inherits: try row.bool(3), roles: try row.strings(4))
            })
    }
}
