package import Clusters
import Glibc
package import Postgres
import Synchronization

/// The Postgres of this test process: started when the first test asks, stopped and removed when the process ends.
package enum TestCluster {
    private static let starting = Task { try await start() }
    private static let living = Mutex<[Cluster]>([])

    package static func shared() async throws -> Cluster {
        try await starting.value
    }

    /// A connection to the database every cluster has, for what cannot be done from inside another.
    package static func office() async throws -> Connection {
        try await Connection.open(ConnectionOptions(location: shared().url()), name: "office")
    }

    private static func start() async throws -> Cluster {
        try await removeRemains()
        let cluster = try Cluster(
            directory: "\(prefix)\(getpid())", binaries: .locate(environment: [:]),
            settings: [
                "fsync": "off", "full_page_writes": "off", "autovacuum": "off", "shared_buffers": "256MB",
                "max_wal_size": "2GB", "max_prepared_transactions": "4",
                // Tables of a test's own are never analysed: the planner takes many a small query for one that is worth compiling.
                "jit": "off",
                // Many tests at once start workers, and a worker that serves every room may hold some forty.
                "max_connections": "1000",
            ])
        removeAtEnd(cluster)
        _ = try await cluster.start(deadline: .ample)
        return cluster
    }

    static func removeAtEnd(_ cluster: Cluster) {
        living.withLock { living in
            if living.isEmpty { atexit { TestCluster.removeAll() } }
            living.append(cluster)
        }
    }

    /// In memory where there is enough of it: hundreds of databases of some hundred files each are made and removed again, at which a file system
    /// on a disk spends a tenth of the whole run's processor time.
    private static let place: String = {
        var info = statvfs()
        let isRoomy = statvfs("/dev/shm", &info) == 0 && UInt64(info.f_bavail) * UInt64(info.f_frsize) >= 8 << 30
        return isRoomy && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    }()

    static var prefix: String { "\(place)/millrace-tests-" }

    /// A test process that was killed could not clean up.
    private static func removeRemains() async throws {
        guard let directory = opendir(place) else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix("millrace-tests-"), let pid = pid_t(name.dropFirst(15).prefix { $0.isNumber }),
                pid != getpid(),
                kill(pid, 0) != 0, errno == ESRCH
            else { continue }
            let old = try Cluster(directory: "\(place)/\(name)", binaries: .locate(environment: [:]))
            try await old.remove(deadline: .seconds(60))
        }
    }

    private static func removeAll() {
        let clusters = living.withLock { $0 }
        let done = Mutex(false)
        Task {
            for cluster in clusters { try? await cluster.remove(deadline: .seconds(60)) }
            done.withLock { $0 = true }
        }
        while !done.withLock({ $0 }) { usleep(5000) }
    }

    /// For a name of its own in the cluster: a database, a role.
    package static func name(_ stem: String) -> String {
        counter.withLock { counter in
            counter += 1
            return "\(stem)_\(counter)"
        }
    }

    private static let counter = Mutex(0)
}

/// Runs `body` with a cluster of the test's own, started, which it may stop and kill; removed afterwards.
package func withCluster<Value>(
    settings: [String: String] = [:], _ body: (Cluster) async throws -> Value
) async throws -> Value {
    let cluster = try Cluster(
        directory: "\(TestCluster.prefix)\(getpid())-\(TestCluster.name("own"))", binaries: .locate(environment: [:]),
        settings: settings.merging(["fsync": "off", "shared_buffers": "16MB"]) { given, _ in given })
    return try await withCluster(cluster) { cluster in
        try await TestCluster.fill(cluster)
        _ = try await cluster.start(deadline: .ample)
        return try await body(cluster)
    }
}

/// Runs `body` with this cluster, which is removed afterwards.
package func withCluster<Value>(
    _ cluster: Cluster, _ body: (Cluster) async throws -> Value
) async throws -> Value {
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await body(cluster))
    } catch {
        outcome = .failure(error)
    }
    try await cluster.remove(deadline: .ample)
    return try outcome.get()
}
