import Clusters
import Postgres

extension Invocation {
    /// Where the database is; a failure when nobody has said.
    func connectionOptions() throws(Failure) -> ConnectionOptions {
        switch settings.database {
        case .text(let text): return options(at: text)
        case .libpqVariables: return options(at: "")
        case .none:
            if let embedded = try? Embedded(
                settings: settings, environment: environment, workingDirectory: surroundings.workingDirectory),
                embedded.cluster.isRunning()
            {
                console.detail("using the embedded Postgres in \(embedded.cluster.directory)")
                return options(at: embedded.cluster.url())
            }
            throw Failure(
                .misused, "no database is given",
                hint: "set DATABASE_URL, or pass --database-url; millrace dev runs one of its own")
        }
    }

    var directOptions: ConnectionOptions? {
        settings.directURL.map { options(at: $0) }
    }

    func options(at location: String) -> ConnectionOptions {
        ConnectionOptions(
            location: location, prepare: ConnectionOptions.Prepare(rawValue: settings.prepare) ?? .auto,
            statementDeadline: settings.statementTimeout, applicationName: "millrace",
            password: environment["PGPASSWORD"])
    }

    /// Opens a connection, lends it, closes it. Errors of the database become failures with their exit codes.
    func withConnection<Value: Sendable>(
        _ body: (Connection) async throws -> Value
    ) async throws -> Value {
        let options = try connectionOptions()
        do {
            let connection = try await Connection.open(options, name: "millrace")
            let value = try await body(connection)
            await connection.close()
            return value
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

/// What an error of the database means for whoever typed the command.
struct DatabaseFailure: CommandFailure {
    let exitCode: ExitCode
    let sentence: String
    let hint: String?

    init(_ error: PostgresError) {
        switch error {
        case .server(let server):
            exitCode = Self.code(for: server.sqlState)
            sentence =
                exitCode == .schemaMismatch ? "the database has no Millrace schema, or an old one" : server.message
            hint = exitCode == .schemaMismatch ? "run: millrace migrate" : Self.hint(for: server)
        case .unreachable(let reason):
            exitCode = .unreachable
            sentence = "the database cannot be reached: \(reason)"
            hint = "check DATABASE_URL and that Postgres is running; millrace config shows what counts"
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
        case "42501":
            error.hint
                ?? "a client role enqueues, and in SQL sees and cancels its own jobs: millrace.own_jobs(), job(id), cancel(id); for the rest use an admin's DATABASE_URL"
        default: error.hint
        }
    }
}
