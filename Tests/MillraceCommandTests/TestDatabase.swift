import Clusters
import Glibc
import Postgres
import Queues
import Synchronization

@testable import MillraceCommand

/// A Postgres of this test process alone, started by the first test that asks, and gone with the process.
enum TestDatabase {
    private static let home = Mutex<String?>(nil)
    private static let number = Atomic(0)

    private static let server = Task {
        let directory = "/tmp/millrace-command-tests-\(getpid())"
        home.withLock { $0 = directory }
        atexit { TestDatabase.removeAll() }
        let cluster = Cluster(
            directory: directory, binaries: try .locate(environment: [:]),
            settings: ["fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"])
        _ = try await cluster.start(deadline: .seconds(60))
        let administration = try await Connection.open(ConnectionOptions(location: cluster.url(database: "postgres")))
        try await administration.execute("create database template_migrated")
        let template = try await Connection.open(
            ConnectionOptions(location: cluster.url(database: "template_migrated")))
        _ = try await Migrator().migrate(on: template)
        await template.close()
        return (cluster: cluster, administration: administration)
    }

    /// The URL of a new database with the schema in it, or without.
    static func url(migrated: Bool = true) async throws -> String {
        let (cluster, administration) = try await server.value
        let name = "test_\(number.add(1, ordering: .relaxed).newValue)"
        // The name is made of digits; the statement takes no values, and the SQL type none that is pasted in.
        try await administration.run(
            script: .shipped(
                Array("create database \(name) template \(migrated ? "template_migrated" : "template0")".utf8)))
        return cluster.url(database: name)
    }

    /// At the very end no async call comes back: the children are told by hand.
    private static func removeAll() {
        guard let directory = home.withLock({ $0 }) else { return }
        // The first line of the pid file is the server's process; QUIT ends it and all its children at once.
        if let bytes = try? Surroundings.live().read("\(directory)/data/postmaster.pid", 4096),
            let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first, let pid = pid_t(line),
            pid > 1
        {
            kill(pid, SIGQUIT)
            for _ in 0..<200 where kill(pid, 0) == 0 { usleep(10_000) }
        }
        var child = pid_t()
        let plain: [String] = ["rm", "-rf", directory]
        var words: [UnsafeMutablePointer<CChar>?] = plain.map { strdup($0) } + [nil]
        if posix_spawn(&child, "/bin/rm", nil, nil, &words, nil) == 0 { waitpid(child, nil, 0) }
        for word in words { free(word) }
    }
}

/// Statements on the side of a test.
func change(_ url: String, _ sql: SQL) async throws {
    let connection = try await Connection.open(ConnectionOptions(location: url))
    try await connection.run(script: sql)
    await connection.close()
}
