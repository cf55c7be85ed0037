import FoundationEssentials
package import Postgres

/// The address of the queue's database.
public struct Database: Sendable {
    enum Source: Sendable {
        case environment
        case url(String, direct: String?)
    }

    let source: Source
    var statementDeadline = Duration.seconds(10)

    /// `DATABASE_URL` or libpq's PG* variables, and `MILLRACE_DIRECT_URL` if there is a transaction pooler in between. A file may hold each
    /// of
    /// them: `DATABASE_URL_FILE`, `MILLRACE_DIRECT_URL_FILE`.
    public static let environment = Database(source: .environment)

    /// A `postgresql://` URI or libpq's key=value pairs; `directURL` is a way around a transaction pooler, for LISTEN and locks.
    public static func url(_ url: String, directURL: String? = nil) -> Database {
        Database(source: .url(url, direct: directURL))
    }

    func options() throws(QueueError) -> (database: ConnectionOptions, direct: ConnectionOptions?) {
        let (location, direct): (String, String?)
        switch source {
        case .url(let url, let directURL): (location, direct) = (url, directURL)
        case .environment:
            (location, direct) = (try Self.variable("DATABASE_URL") ?? "", try Self.variable("MILLRACE_DIRECT_URL"))
        }
        var options = ConnectionOptions(location: location, statementDeadline: statementDeadline)
        options.applicationName = "millrace"
        do {
            try options.check()
        } catch {
            throw QueueError(error)
        }
        return (options, direct.map { ConnectionOptions(location: $0, statementDeadline: statementDeadline) })
    }

    /// Whether the address comes from the environment.
    package var isEnvironment: Bool {
        if case .environment = source { true } else { false }
    }

    /// The address in libpq's terms; empty means libpq's own variables.
    package func locations() throws(QueueError) -> (database: String, direct: String?) {
        let (database, direct) = try options()
        return (database.location, direct?.location)
    }

    /// Separate connections, for the rooms besides the queue.
    package func pool(size: Int) throws(QueueError) -> Pool {
        Pool(try options().database, size: size)
    }

    static func variable(_ name: String) throws(QueueError) -> String? {
        let environment = ProcessInfo.processInfo.environment
        if let value = environment[name], !value.isEmpty { return value }
        guard let path = environment[name + "_FILE"], !path.isEmpty else { return nil }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw QueueError(.misconfigured, "\(name)_FILE names a file that cannot be read: \(path)")
        }
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }
}
