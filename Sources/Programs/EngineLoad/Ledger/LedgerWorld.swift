import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Subprocesses
import Synchronization

/// A private Postgres with a proxy and a pooler in front, and workers that are restarted whenever they die.
final class LedgerWorld: Sendable {
    struct Worker: Sendable {
        var name: String
        var url: String
    }

    private struct State {
        var pooler: pid_t = 0
        var sessions: [Int64: LedgerSession] = [:]
    }

    let directory: String
    let cluster: Cluster
    /// nil: it may not be filled.
    let disk: LedgerDisk?
    let proxy: LedgerProxy
    let hasPooler: Bool
    /// nil: there is one Postgres, which comes back whenever it was stopped.
    let failover: Failover?
    private let invocation: Invocation
    private let broken: LedgerBreak?
    private let kept: KeptWorkers
    private let state = Mutex(State())

    static let pooler = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].first { (path: String) in
        access(path, X_OK) == 0
    }

    init(_ invocation: Invocation, broken: LedgerBreak?, failover: Failover.Mode?) throws {
        self.invocation = invocation
        self.broken = broken
        directory = try Scratch.directory("ledger")
        kept = KeptWorkers(directory: directory)
        disk = failover == nil ? LedgerDisk(in: directory) : nil
        do {
            cluster = try Scratch.cluster(
                (disk?.directory ?? directory) + "/pg", invocation,
                settings: [
                    "max_connections": "120", "shared_buffers": "256MB", "max_wal_size": "2GB",
                    // Crashes undo more claims than they would with the default of 200 ms.
                    "wal_writer_delay": "1s",
                ])
        } catch {
            disk?.close()
            throw error
        }
        hasPooler = Self.pooler != nil && failover == nil
        let standby = directory + "/pg2"
        self.failover = failover.map { [cluster] in Failover($0, primary: cluster, directory: standby) }
        proxy = LedgerProxy(directory: directory, port: 6001, target: "\(directory)/pg.sock")
    }

    /// Straight to Postgres; for the ledger itself, the producers and the checker.
    var straight: ConnectionOptions { ConnectionOptions(location: straightLocation, applicationName: "ledger") }
    private var straightLocation: String { failover?.location ?? cluster.url() }

    /// For the ledger's own statements. The effects of a fault, such as no free connection, may last a while.
    func office() async throws(PostgresError) -> Connection {
        let patience = ContinuousClock.now + .seconds(60)
        while true {
            do throws(PostgresError) {
                return try await Connection.open(straight, name: "ledger")
            } catch {
                guard ContinuousClock.now < patience, !Task.isCancelled else { throw error }
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func url(port: Int) -> String {
        "host=\(directory) port=\(port) user=millrace dbname=millrace"
    }

    func open() async throws {
        try await cluster.open(within: .seconds(120))
        let connection = try await office()
        _ = try await Migrator.ofAllRooms().migrate(on: connection)
        try await connection.run(
            script: """
                create schema ledger;
                create table ledger.entry (
                    job bigint not null, token text not null, what text not null, leased boolean not null,
                    at timestamptz not null default clock_timestamp());
                select millrace.limit_set('key', 'ledger.*', '{"concurrency": 3}');
                """)
        try await LedgerSabotage.apply(broken, on: connection)
        if let failover {
            try await failover.open(on: connection)
            await connection.close()
            return
        }
        await connection.close()
        // Whatever Postgres calls its socket, the proxy finds it under this name.
        guard symlink("\(cluster.socketDirectory)/.s.PGSQL.\(cluster.port)", "\(directory)/pg.sock") == 0 else {
            throw Failure("the socket of the private Postgres cannot be named")
        }
        try proxy.start()
        if hasPooler { try startPooler(socket: cluster.socketDirectory) }
    }

    var workers: [Worker] {
        if failover != nil { return (1...4).map { Worker(name: "worker-\($0)", url: straightLocation) } }
        return [
            Worker(name: "proxied-1", url: url(port: 6001)), Worker(name: "proxied-2", url: url(port: 6001)),
            Worker(name: "straight", url: cluster.url()),
            Worker(name: "pooled", url: url(port: hasPooler ? 6002 : 6001)),
        ]
    }

    // MARK: Workers

    func startWorkers() {
        for worker in workers { keep(worker) }
    }

    private func keep(_ worker: Worker) {
        var environment = invocation.environment
        environment["DATABASE_URL"] = worker.url
        for name in ["MILLRACE_DIRECT_URL", "MILLRACE_QUEUES"] { environment[name] = nil }
        environment["MILLRACE_LISTEN"] = "off"
        kept.keep(
            worker.name,
            arguments: ["worker", "--ledger", straightLocation, "--parent", "\(getpid())", "--name", worker.name]
                + ["--slots", "40", "--drain-timeout", "30s"] + (broken.map { ["--break", $0.rawValue] } ?? []),
            environment: environment)
    }

    func pid(of name: String) -> pid_t? { kept.pid(of: name) }

    /// Drains the workers; what went wrong with one of them.
    func stopWorkers() async throws -> [String] { try await kept.stop() }

    /// Remembers who opened which session: it is gone from the database when its worker is.
    func noteSessions(on connection: Connection) async throws(PostgresError) {
        let found = try await connection.query(
            "select id, name, extract(epoch from started_at)::float8 from millrace.session"
        ) { row throws(PostgresError) in
            (try row.int(0), LedgerSession(worker: try row.string(1), started: try row.double(2)))
        }
        state.withLock { state in for (id, session) in found { state.sessions[id] = session } }
    }

    var sessions: [Int64: LedgerSession] { state.withLock { $0.sessions } }

    // MARK: The pooler

    private func startPooler(socket: String) throws {
        try """
        [databases]
        millrace = host=\(socket) port=\(cluster.port) user=millrace
        [pgbouncer]
        listen_addr =
        unix_socket_dir = \(directory)
        listen_port = 6002
        auth_type = any
        pool_mode = transaction
        default_pool_size = 4
        logfile = \(directory)/pooler.log
        pidfile = \(directory)/pooler.pid
        """.write(toFile: "\(directory)/pooler.ini", atomically: true, encoding: .utf8)
        chmod(directory, 0o777)
        runPooler()
    }

    private func runPooler() {
        guard let program = Self.pooler else { return }
        let user = geteuid() == 0 ? ["-u", "postgres"] : []
        var child = Subprocess(program, ["-q"] + user + ["\(directory)/pooler.ini"])
        child.hasOwnGroup = false
        if let pid = try? child.start() { state.withLock { $0.pooler = pid } }
    }

    func restartPooler() {
        let pid = state.withLock { $0.pooler }
        guard pid > 0 else { return }
        kill(pid, SIGKILL)
        _ = Subprocess.wait(for: pid)
        unlink("\(directory)/pooler.pid")
        unlink("\(directory)/.s.PGSQL.6002")
        runPooler()
    }

    func close(keep: Bool) async {
        proxy.stop()
        kept.kill()
        let pooler = state.withLock { $0.pooler }
        if pooler > 0 { kill(pooler, SIGKILL) }
        if keep {
            try? await cluster.stop(.fast, deadline: .seconds(60))
        } else {
            try? await cluster.remove(deadline: .seconds(60))
            disk?.close()
            try? await failover?.standby.remove(deadline: .seconds(60))
            try? FileManager.default.removeItem(atPath: directory)
        }
    }
}
