package import Postgres

extension Settings {
    /// A place, spoken to as these settings say.
    package func options(at location: String, environment: [String: String]) -> ConnectionOptions {
        ConnectionOptions(
            location: location, prepare: ConnectionOptions.Prepare(rawValue: prepare) ?? .auto,
            statementDeadline: statementTimeout, applicationName: "millrace",
            password: environment["PGPASSWORD"])
    }
}

/// What a database error means for the person at the command line.
package struct DatabaseFailure: CommandFailure {
    package let exitCode: ExitCode
    package let sentence: String
    package let hint: String?

    package init(_ error: PostgresError) {
        if error.saysConnectionsAreUsedUp {
            exitCode = .unreachable
            sentence = "the database has no connection left"
            hint = PostgresError.connectionsHint
            return
        }
        switch error {
        case .server(let server):
            exitCode = Self.code(for: server.sqlState)
            sentence =
                exitCode == .schemaMismatch ? "the database has no Millrace schema, or an old one" : server.message
            hint = exitCode == .schemaMismatch ? "run: millrace migrate" : Self.hint(for: server)
        case .unreachable(let reason):
            exitCode = .unreachable
            sentence = "the database cannot be reached: \(reason)"
            hint = "check DATABASE_URL and that Postgres is running; millrace config shows what applies"
        case .lost, .timedOut, .exhausted:
            exitCode = .unreachable
            sentence = error.description
            hint = nil
        case .misconfigured(let reason):
            exitCode = .misused
            sentence = reason
            hint = "see millrace config"
        case .cancelled:
            exitCode = .failed
            sentence = "interrupted"
            hint = nil
        case .undecodable:
            exitCode = .schemaMismatch
            sentence = error.description
            hint = "run: millrace migrate"
        }
    }

    private static func code(for state: String) -> ExitCode {
        switch state {
        case "3F000", "42883", "42P01": .schemaMismatch  // no such schema, function, table
        case "22023", "22P02", "22P05", "22007", "22008", "53400", "0A000", "22021": .misused
        case "P0002": .notFound
        case "23505", "55000": .conflict
        case let state where state.hasPrefix("08") || state.hasPrefix("57P"): .unreachable
        default: .failed
        }
    }

    private static func hint(for error: PostgresError.ServerError) -> String? {
        switch error.sqlState {
        case "53100": "the disk of the database server is full: free some space, nothing was written"
        case "25006":
            "it is a standby, or default_transaction_read_only is on; with several hosts, add target_session_attrs=read-write"
        case "42501": error.hint ?? missingRight(error.message)
        default: error.hint
        }
    }

    /// Postgres says what was refused; this adds which role may do it.
    private static func missingRight(_ message: String) -> String {
        if message.contains("for schema") {
            return
                "this login has none of Millrace's roles: the owner of the schema gives it one, such as grant millrace_admin to …; see millrace migrate --print-roles"
        }
        if message.contains("for function") || message.contains("for view") || message.contains("for procedure") {
            return
                "this login's role may not do that. A client enqueues, and in SQL sees and cancels its own jobs: millrace.own_jobs(), job(id), cancel(id); a worker runs jobs; for the rest use an admin's DATABASE_URL"
        }
        if message.contains("to create role") || message.contains("to create database") {
            return "give the login the right, or use one that has it"
        }
        return "only the owner of the schema millrace may do that: use the DATABASE_URL that millrace migrate uses"
    }
}
