import CommandKit
import Glibc
package import Postgres

/// The database server's usage: WAL, and CPU time if it runs on this machine.
package struct ServerMeter: Sendable {
    package struct Reading: Sendable {
        package var wal: Double
        /// Seconds; nil when the server is elsewhere or its processes cannot be seen.
        package var processor: Double?

        package static func - (after: Reading, before: Reading) -> Reading {
            var processor: Double?
            if let late = after.processor, let early = before.processor { processor = late - early }
            return Reading(wal: after.wal - before.wal, processor: processor)
        }

        package static func + (one: Reading, other: Reading) -> Reading {
            var processor: Double?
            if let first = one.processor, let second = other.processor { processor = first + second }
            return Reading(wal: one.wal + other.wal, processor: processor)
        }
    }

    package let connection: Connection
    private let postmaster: pid_t?

    package init(on connection: Connection) async throws(PostgresError) {
        self.connection = connection
        let backend = try await connection.query("select pg_backend_pid()") { row throws(PostgresError) in
            pid_t(try row.int(0))
        }.first
        postmaster = backend.flatMap { backend in
            guard ProcessTable.name(of: backend).hasPrefix("postgres"), let ticks = ProcessTable.ticks(of: backend),
                ProcessTable.name(of: ticks.parent).hasPrefix("postgres")
            else { return nil }
            return ticks.parent
        }
    }

    package func read() async throws(PostgresError) -> Reading {
        let wal = try await connection.double("select (pg_current_wal_insert_lsn() - '0/0')::float8")
        return Reading(wal: wal, processor: processor())
    }

    /// The postmaster has waited for those that have ended; the others are its children. One that ends between the two looks is in
    /// neither, so we look until none did.
    private func processor() -> Double? {
        guard let postmaster else { return nil }
        for _ in 0..<100 {
            guard let own = ProcessTable.ticks(of: postmaster) else { return nil }
            var ticks = own.own + own.children
            for pid in ProcessTable.all() {
                if let one = ProcessTable.ticks(of: pid), one.parent == postmaster { ticks += one.own + one.children }
            }
            if ProcessTable.ticks(of: postmaster)?.children == own.children {
                return ticks / ProcessTable.ticksPerSecond
            }
        }
        return nil
    }
}
