import Encodings
import Glibc

/// A private Postgres in a directory of its own, reached through a Unix socket only.
///
/// The directory holds `data`, `postgres.log`, `socket` and a lock file, which also marks it as ours.
package struct Cluster: Sendable {
    package enum Started: Equatable, Sendable {
        case created
        case reused
        case alreadyRunning
    }

    /// How sessions end: `smart` waits for them, `fast` rolls them back, `immediate` is a crash on purpose.
    package enum Stop: Equatable, Sendable {
        case smart
        case fast
        case immediate
    }

    package let directory: String
    package let binaries: Binaries
    package let settings: [String: String]
    package let port: Int
    /// The cluster that it follows as a standby, from its creation on.
    let primary: (directory: String, port: Int)?

    /// - Parameters:
    ///   - port: only names the socket, as clients expect.
    ///   - primary: a running cluster that this one is made a copy of, and follows until it is promoted.
    package init(
        directory: String, binaries: Binaries, settings: [String: String] = [:], port: Int = 5432,
        following primary: Cluster? = nil
    ) {
        self.directory = Self.absolute(directory)
        self.binaries = binaries
        self.settings = settings
        self.port = port
        self.primary = primary.map { ($0.directory, $0.port) }
    }

    /// Starts the cluster, and returns when it accepts connections. In a new or empty directory it creates the cluster first.
    ///
    /// - Parameter deadline: a server that is still recovering then continues to do so; call `start` again to wait for it.
    package func start(deadline: Duration) async throws(ClusterError) -> Started {
        let limit = WorkDeadline(deadline)
        return try await onOwnThread(within: limit) { () throws(ClusterError) in try start(within: limit) }
    }

    /// Stops the cluster and answers when its processes are gone; one that does not run is left as it is.
    package func stop(_ mode: Stop, deadline: Duration) async throws(ClusterError) {
        let limit = WorkDeadline(deadline)
        try await onOwnThread(within: limit) { () throws(ClusterError) in try stop(mode, within: limit) }
    }

    /// Stops the cluster at once and deletes it with everything in it.
    package func remove(deadline: Duration) async throws(ClusterError) {
        let limit = WorkDeadline(deadline)
        try await onOwnThread(within: limit) { () throws(ClusterError) in try remove(within: limit) }
    }

    /// Whether the cluster's server process lives; it may still be starting.
    package func isRunning() -> Bool { server != nil }

    /// The directory of its socket, valid after a start.
    package var socketDirectory: String { SocketPlace(directory: resolved, port: port).current }

    /// The connection string, valid after a start and from then on.
    package func url(database: String = "millrace", user: String = "millrace") -> String {
        let host = PercentEncoding.encoded(SocketPlace(directory: resolved, port: port).current)
        return
            "postgresql://\(PercentEncoding.encoded(user))@/\(PercentEncoding.encoded(database))?host=\(host)&port=\(port)"
    }

    private static func absolute(_ path: String) -> String {
        var path = path
        if !path.hasPrefix("/"), let here = ClusterFiles.resolved(".") { path = here + "/" + path }
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}

// Shared by start and stop.
extension Cluster {
    /// Two names of one directory must give one socket path.
    var resolved: String { ClusterFiles.resolved(directory) ?? directory }
    var data: String { directory + "/data" }
    var log: String { directory + "/postgres.log" }

    var processes: Processes? {
        guard let line = ClusterFiles.read(directory + "/name")?.split(separator: "\n").first else { return nil }
        return Processes(name: String(line))
    }

    /// The living server, told from a stranger who inherited its process id.
    var server: PidFile? {
        guard let processes, let text = ClusterFiles.read(data + "/postmaster.pid"), let file = PidFile(text),
            processes.isOurs(file.pid)
        else { return nil }
        return file
    }

    static let lockName = "cluster.lock"

    /// Runs `body` while no other process starts or stops this cluster.
    func locked<Value>(
        for user: User, within limit: WorkDeadline, _ body: () throws(ClusterError) -> Value,
    ) throws(ClusterError) -> Value {
        let path = "\(directory)/\(Self.lockName)"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw ClusterFiles.trouble(with: directory) }
        defer { close(descriptor) }
        guard fchown(descriptor, user.id, user.group) == 0 else { throw ClusterFiles.trouble(with: directory) }
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw ClusterFiles.trouble(with: directory) }
            try limit.check(or: .busy(directory: directory))
            usleep(10_000)
        }
        return try body()
    }
}
