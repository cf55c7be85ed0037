import Clusters
package import Encryption
import MillraceQueues
package import Postgres

extension Invocation {
    /// The database's address; a failure when none is set.
    package func connectionOptions() throws(Failure) -> ConnectionOptions {
        switch settings.database {
        case .text(let text): return options(at: text)
        case .libpqVariables: return options(at: "")
        case .none where settings.databases.count == 1: return options(at: settings.databases[0].url)
        case .none where settings.databases.count > 1:
            throw Failure(
                .misused, "\(parsed.command.name) works on one database, and MILLRACE_DATABASES names several",
                hint: "say which: --database NAME, one of \(settings.databaseNames)")
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

    /// The same for the database of this key, where the settings name several and none was chosen.
    package func routed(by key: String?) throws(Failure) -> Invocation {
        guard settings.databases.count > 1 else { return self }
        guard let key else {
            throw Failure(
                .misused, "nobody knows which of \(settings.databaseNames) is meant",
                hint: "a tenant decides: give --tenant, or say which: --database NAME")
        }
        let routing = DatabaseRouting(overrides: settings.routes)
        guard let name = routing.database(of: key, among: settings.databases.map(\.name)),
            let database = settings.databases.first(where: { $0.name == name })
        else {
            throw Failure(
                .misused, "MILLRACE_ROUTES sends this key to a database that MILLRACE_DATABASES does not name")
        }
        console.note("database: \(name)")
        return Invocation(
            parsed: parsed, settings: settings.chosen(database), console: console, surroundings: surroundings,
            tree: tree)
    }

    package var directOptions: ConnectionOptions? {
        let only = settings.databases.count == 1 ? settings.databases[0].direct : nil
        return (settings.directURL ?? only).map { options(at: $0) }
    }

    package func options(at location: String) -> ConnectionOptions {
        settings.options(at: location, environment: environment)
    }

    /// Opens a connection, lends it, closes it. Errors of the database become failures with their exit codes.
    package func withConnection<Value: Sendable>(
        _ body: (Connection) async throws -> Value
    ) async throws -> Value {
        var options = try connectionOptions()
        options.applicationName = applicationName
        do {
            let connection = try await Connection.open(options, name: "millrace")
            let value = try await body(connection)
            await connection.close()
            return value
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }

    /// Says who acts, for the audit: the name comes through a pooler, where a setting of the session would stay behind.
    package var applicationName: String {
        guard let user = environment["USER"] ?? environment["LOGNAME"], !user.isEmpty else { return "millrace" }
        return "millrace \(user)@\(Settings.hostName)"
    }

    /// A connection to a schema that this program can talk to; anything else is exit code 6.
    package func withSchema<Value: Sendable>(_ body: (Connection) async throws -> Value) async throws -> Value {
        try await withConnection { connection in
            try await SchemaCheck.check(on: connection)
            return try await body(connection)
        }
    }
}

extension Invocation {
    /// The keys, where a verb cannot do without.
    package func neededKeys() throws(Failure) -> Keyring {
        let keys = settings.keys
        guard !keys.keys.isEmpty else {
            throw Failure(
                .misused, "there is no encryption key here",
                hint: "set MILLRACE_ENCRYPTION_KEY, or MILLRACE_ENCRYPTION_KEY_FILE; millrace keys generate makes a key"
            )
        }
        return keys
    }
}
