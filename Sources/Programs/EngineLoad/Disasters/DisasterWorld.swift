import Clusters
import CommandKit
import LoadKit
import MillraceQueues
import Postgres

/// A Postgres of its own with two workers, and sessions of others in it.
struct DisasterWorld: Sendable {
    let invocation: Invocation
    let directory: String
    let cluster: Cluster
    /// Where the queue is.
    let location: String
    /// How much of each disaster is made: all of it, or as much as shows it.
    let isLong: Bool
    let office: Connection
    let workers: LoadWorkers
    let pulse: DisasterPulse

    /// What disasters need that the defaults do not have: room for two hundred committers, few locks, and vacuums that come soon.
    static let settings = [
        "max_connections": "260", "max_prepared_transactions": "10", "wal_level": "logical",
        "max_locks_per_transaction": "10", "autovacuum_naptime": "5s",
    ]

    init(
        _ invocation: Invocation, directory: String, cluster: Cluster, database: String = "millrace", isLong: Bool
    ) async throws {
        (self.directory, self.cluster, self.isLong) = (directory, cluster, isLong)
        location = cluster.url(database: database)
        self.invocation = invocation.pointed(at: location)
        office = try await Connection.open(self.invocation.options(at: location), name: "load")
        workers = try await LoadWorkers.start(
            2, self.invocation, arguments: ["--slots", "4"], environment: ["DATABASE_URL": location], on: office)
        pulse = DisasterPulse(
            self.invocation.options(at: location), starts: try Starts(path: workers.marksPath, jobs: DisasterPulse.most)
        )
    }

    /// A session of somebody else, under that name.
    func session(_ application: String, user: String? = nil, at location: String? = nil) async throws -> Connection {
        let place = location ?? (user.map { cluster.url(user: $0) } ?? self.location)
        let connection = try await Connection.open(invocation.options(at: place), name: "disaster")
        try await connection.execute(
            "select set_config('application_name', $1, false), set_config('idle_in_transaction_session_timeout', '0', false)",
            [.text(application)])
        return connection
    }

    func run(_ sql: String, on connection: Connection? = nil) async throws {
        try await (connection ?? office).run(script: .shipped(Array(sql.utf8)), deadline: .seconds(120))
    }

    /// That many transactions pass, which is what makes an open one harmful.
    func pass(_ transactions: Int) async throws {
        try await run("set synchronous_commit = off")
        try await run(
            "do $$ begin for n in 1..\(transactions) loop perform pg_current_xact_id(); commit; end loop; end $$")
        try await run("reset synchronous_commit")
    }

    func pid(of connection: Connection) async throws -> Int {
        try await connection.int("select pg_backend_pid()")
    }

    func stop() async throws {
        try await workers.stop()
        await office.close()
    }
}

extension Invocation {
    /// For a database of the scenario.
    func pointed(at location: String) -> Invocation {
        var settings = settings
        settings.point(.databaseURL, at: location)
        return Invocation(
            parsed: parsed, settings: settings, console: console, surroundings: surroundings, tree: tree)
    }
}
