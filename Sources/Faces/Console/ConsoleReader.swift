import Postgres
import Templates

/// Reads and acts for a visitor: each page is one transaction in the Postgres role of the visitor's own role.
struct ConsoleReader: Sendable {
    let pool: Pool
    let roles: ConsoleRoles
    let visitor: Visitor

    /// The visitor's connections: a few at once, whatever it opens.
    var share: Pool { pool.share(of: visitor.holder) }

    /// One row with one JSON column.
    func json(_ sql: SQL, _ parameters: [Parameter] = []) async throws -> TemplateValue {
        try await transaction { connection throws(PostgresError) in
            try await connection.json(sql, parameters)
        }
    }

    /// Several statements that see the same moment as nearly as read committed allows.
    func transaction<Value: Sendable>(
        _ body: @Sendable (Connection) async throws(PostgresError) -> Value
    ) async throws -> Value {
        let role = try await roles.name(of: visitor.role, pool: share)
        let outcome: Result<Value, ConsoleRoles.Missing> = try await share.withConnection {
            connection throws(PostgresError) in
            try await connection.transaction(keeping: { (try? $0.get()) != nil }) { connection throws(PostgresError) in
                do throws(PostgresError) {
                    try await connection.execute(
                        "select set_config('role', coalesce($1, current_setting('role')), true), set_config('millrace.actor', $2, true), set_config('jit', 'off', true)",
                        [.text(role), .text("console: \(visitor.name)")], deadline: Self.patience)
                } catch {
                    guard ["42501", "22023"].contains(error.sqlState ?? "") else { throw error }
                    // The role was dropped, or taken from this login.
                    return .failure(ConsoleRoles.Missing(role: role ?? ""))
                }
                return .success(try await body(connection))
            }
        }
        if case .failure = outcome { await roles.forget(visitor.role) }
        return try outcome.get()
    }

    static let patience = Duration.seconds(5)
}

extension Connection {
    func json(_ sql: SQL, _ parameters: [Parameter] = []) async throws(PostgresError) -> TemplateValue {
        let rows = try await query(sql, parameters, deadline: ConsoleReader.patience) {
            row throws(PostgresError) in row.optionalJSON(0)
        }
        guard let bytes = rows.first ?? nil else { return .null }
        guard let value = try? TemplateValue(json: bytes) else {
            throw .undecodable(column: 0, expected: "JSON that is at most 64 deep")
        }
        return value
    }
}

/// The roles of Postgres that stand for the console's roles.
package actor ConsoleRoles {
    package struct Missing: Error, Sendable, CustomStringConvertible {
        let role: String
        package var description: String {
            "the database has no role \(role), or this console's login is not a member of it"
        }
        var hint: String {
            "once, as a role that may create roles: millrace migrate --print-roles | psql; then: millrace migrate. The console's own login needs: grant \"\(role)\" to <login>"
        }
    }

    private let names: [ConsoleRole: String]
    private var known: [ConsoleRole: String?] = [:]

    package init(names: [ConsoleRole: String]) {
        self.names = names
    }

    func forget(_ role: ConsoleRole) { known[role] = nil }

    /// nil: an admin acts as the console's own login, where the database has no role for admins.
    func name(of role: ConsoleRole, pool: Pool) async throws -> String? {
        if let found = known[role] { return found }
        guard let name = names[role] else { return nil }
        let exists = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select to_regrole(quote_ident($1)) is not null and pg_has_role(to_regrole(quote_ident($1))::oid, 'member')",
                [.text(name)], deadline: ConsoleReader.patience
            ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
        }
        guard exists else {
            // Asked again next time: somebody may be about to create it.
            guard role == .admin else { throw Missing(role: name) }
            return nil
        }
        known[role] = .some(name)
        return name
    }
}
