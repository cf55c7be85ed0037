package import Clusters
import CommandKit
import Glibc
package import Postgres

/// A second Postgres that follows the first, and takes its place in the middle of the load.
package struct Failover: Sendable {
    package enum Mode: String, CaseIterable, Sendable {
        /// A commit is answered when the standby has it, too.
        case synchronous
        case asynchronous
    }

    package let mode: Mode
    package let primary: Cluster
    package let standby: Cluster

    package init(_ mode: Mode, primary: Cluster, directory: String) {
        self.mode = mode
        self.primary = primary
        standby = Cluster(
            directory: directory, binaries: primary.binaries, settings: primary.settings, port: primary.port,
            following: primary)
    }

    /// The one of the two that accepts writes now.
    package var location: String {
        "host=\(primary.socketDirectory),\(standby.socketDirectory) port=\(primary.port),\(standby.port) "
            + "user=millrace dbname=millrace target_session_attrs=read-write"
    }

    package func open(on connection: Connection) async throws {
        LoadGround.atEnd { [standby] in
            if standby.isRunning() { try? await standby.stop(.immediate, deadline: .seconds(60)) }
        }
        try await standby.open(within: .seconds(120))
        guard mode == .synchronous else { return }
        try await connection.execute("alter system set synchronous_standby_names = '*'")
        try await connection.execute("select pg_reload_conf()")
        try await Patience.wait(.seconds(30), else: "the standby does not follow synchronously") {
            try await connection.truth("select exists (select from pg_stat_replication where sync_state = 'sync')")
        }
    }

    /// The primary crashes and is gone for good; the standby is promoted. Returns when that was done. An asynchronous standby is made to
    /// lag by a second, as over a slow link: what was committed in that second is lost with the primary.
    package func strike() async throws -> Double {
        let receiver = mode == .asynchronous ? try await receiverProcess() : nil
        if let receiver {
            kill(receiver, SIGSTOP)
            try await Task.sleep(for: .seconds(1))
        }
        try await primary.close(.immediate, within: .seconds(60))
        if let receiver { kill(receiver, SIGCONT) }
        let connection = try await Connection.open(ConnectionOptions(location: standby.url()), name: "failover")
        // Nobody follows the new one: it must not wait for a standby.
        try await connection.execute("select pg_promote(true, 60)")
        let promoted = MachineClock.now()
        try await connection.execute("alter system reset synchronous_standby_names")
        try await connection.execute("select pg_reload_conf()")
        await connection.close()
        return promoted
    }

    private func receiverProcess() async throws -> pid_t? {
        let connection = try await Connection.open(ConnectionOptions(location: standby.url()), name: "failover")
        let pid = try await connection.query("select pid from pg_stat_wal_receiver") { row throws(PostgresError) in
            pid_t(try row.int(0))
        }.first
        await connection.close()
        return pid
    }

}
