import Postgres
import Supervision

extension MailStore {
    /// The database's flag of that name; nil when nobody has set it.
    func flag(_ name: String) async throws -> Flag? {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select name, percent, always from millrace.flag_list() where name = $1", [.text(name)]
            ) { row throws(PostgresError) in
                Flag(name: try row.string(0), percent: Int(try row.int(1)), always: Set(try row.strings(2)))
            }.first
        }
    }

    /// Stores what this worker adds to a message's data, so that `mail_check` can check a message when it is enqueued.
    func tellDefaults(_ options: MailOptions) async throws {
        try await pool.withConnection { connection throws(PostgresError) in
            _ = try await connection.query(
                "select true from millrace.mail_defaults_tell($1, $2, $3)",
                [.text(options.appName), .bool(options.resetURL != nil), .bool(options.verifyURL != nil)]
            ) { _ throws(PostgresError) in true }
        }
    }
}
