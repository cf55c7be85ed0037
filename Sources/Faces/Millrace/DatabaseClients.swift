import MillraceQueues

/// Clients of several databases, each a complete Millrace of its own, and which of them a tenant or a person belongs to.
///
/// ```swift
/// let databases = try DatabaseClients(["eu": .url(eu), "us": .url(us)], route: .hashed(overrides: ["acme": "us"]))
/// try await databases.client(for: tenant).enqueue(SendReceipt(order: 7), tenant: tenant)
/// ```
/// Nothing spans two databases: a job's number, a unique key, a signal and a transaction belong to one of them. So keep the key with the number, and
/// ask the client of that key.
public final class DatabaseClients: Sendable {
    /// The names of the databases, sorted.
    public let names: [String]
    private let clients: [String: Client]
    private let route: DatabaseRoute

    /// Connects each when it is first used, with at most `connections` at a time.
    public init(
        _ databases: [String: Database], route: DatabaseRoute = .hashed(), keys: EncryptionKeys = .environment,
        connections: Int = 4
    ) throws(QueueError) {
        guard !databases.isEmpty else { throw QueueError(.misconfigured, "no database is named") }
        names = databases.keys.sorted()
        self.route = route
        var clients: [String: Client] = [:]
        for (name, database) in databases {
            clients[name] = try Client(database: database, keys: keys, connections: connections)
        }
        self.clients = clients
        for (key, name) in route.overrides.sorted(by: { $0.key < $1.key }) where clients[name] == nil {
            throw QueueError(
                .misconfigured,
                "the key \(key) is sent to the database \(name), which is not among \(names.joined(separator: ", "))")
        }
    }

    /// The database of this name.
    public subscript(name: String) -> Client? { clients[name] }

    /// The name of the database that a key belongs to.
    public func name(for key: String) throws(QueueError) -> String {
        guard let name = route.database(of: key, among: names), clients[name] != nil else {
            throw QueueError(.misconfigured, "the route of a key leads to none of \(names.joined(separator: ", "))")
        }
        return name
    }

    /// The client of the database that a key belongs to.
    public func client(for key: String) throws(QueueError) -> Client {
        let name = try name(for: key)
        guard let client = clients[name] else { throw QueueError(.misconfigured, "there is no database \(name)") }
        return client
    }

    /// Closes all connections; calls still under way end first.
    public func close() async {
        for client in clients.values { await client.close() }
    }
}

/// How a key finds its database.
public struct DatabaseRoute: Sendable {
    private let choose: @Sendable (_ key: String, _ names: [String]) -> String?
    let overrides: [String: String]

    /// By a hash of the key and each name, the same in every process and version: SHA-256 over the name, a zero byte and the key; the name with the
    /// largest first eight bytes has the key. When a database is added, only the keys that go there change.
    /// - Parameter overrides: Keys that belong elsewhere, such as those that were moved, with the names of their databases.
    public static func hashed(overrides: [String: String] = [:]) -> DatabaseRoute {
        let routing = DatabaseRouting(overrides: overrides)
        return DatabaseRoute(overrides: overrides) { routing.database(of: $0, among: $1) }
    }

    /// By a rule of your own. Give the same answer in each process; nil means that the key belongs nowhere.
    public init(_ choose: @escaping @Sendable (_ key: String, _ names: [String]) -> String?) {
        self.init(overrides: [:], choose)
    }

    private init(
        overrides: [String: String], _ choose: @escaping @Sendable (_ key: String, _ names: [String]) -> String?
    ) {
        (self.overrides, self.choose) = (overrides, choose)
    }

    /// The name of the database of a key, among these.
    public func database(of key: String, among names: [String]) -> String? { choose(key, names) }
}
