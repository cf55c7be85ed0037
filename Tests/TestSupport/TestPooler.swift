import Clusters
import Foundation
import Glibc
package import Postgres

/// A real pgbouncer in transaction mode.
package enum TestPooler {
    /// nil: not installed, and the tests that need it are skipped.
    package static let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].first { (path: String) in
        access(path, X_OK) == 0
    }
}

/// The pooler did not start; what it said.
private struct NoPooler: Error, CustomStringConvertible {
    let description: String
}

/// Runs `body` with a pooler of its own in front of a database of the shared cluster.
/// - Parameter user: who logs in.
package func withPooler<Value>(
    to database: TestDatabase, as user: String = "millrace", servers: Int = 2,
    _ body: (ConnectionOptions) async throws -> Value
) async throws -> Value {
    guard let program = TestPooler.program else { throw NoPooler(description: "pgbouncer is not installed") }
    let directory = FileManager.default.temporaryDirectory.appending(
        path: "millrace-pooler-\(UUID().uuidString.prefix(8))"
    ).path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    chmod(directory, 0o777)
    let port = 6543
    let url = try await TestCluster.shared().url()
    let socket = url.split(separator: "host=").last?.split(separator: "&").first?.removingPercentEncoding ?? ""
    try """
    [databases]
    \(database.name) = host=\(socket) port=5432 user=\(user)
    [pgbouncer]
    listen_addr =
    unix_socket_dir = \(directory)
    listen_port = \(port)
    auth_type = any
    pool_mode = transaction
    default_pool_size = \(servers)
    logfile = \(directory)/log
    pidfile = \(directory)/pid
    """.write(toFile: "\(directory)/ini", atomically: true, encoding: .utf8)
    let pooler = Process()
    pooler.executableURL = URL(filePath: program)
    pooler.arguments = (geteuid() == 0 ? ["-q", "-u", "postgres"] : ["-q"]) + ["\(directory)/ini"]
    pooler.standardInput = FileHandle.nullDevice
    pooler.standardOutput = FileHandle.nullDevice
    pooler.standardError = FileHandle.nullDevice
    try pooler.run()
    defer { kill(pooler.processIdentifier, SIGKILL) }
    let options = ConnectionOptions(location: "host=\(directory) port=\(port) user=\(user) dbname=\(database.name)")
    try await eventually("the pooler answers") { (try? await Connection.open(options)) != nil }
    return try await body(options)
}
