import Clusters
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// What `status` says of connections: a worker that cannot open what ends its jobs takes none.
@Suite struct ConnectionsLeftTests {
    private static func status(_ url: String) async -> Outcome { await millrace("status", "--database-url", url) }

    /// A worker and an operator's login, and a server with fifteen places for those who are no superusers.
    private static func withShortage(_ body: (Cluster, Connection) async throws -> Void) async throws {
        try await withCluster(settings: ["max_connections": "16", "superuser_reserved_connections": "1"]) { cluster in
            let observer = try await Connection.open(ConnectionOptions(location: cluster.url()), name: "observer")
            try await observer.run("create role millrace_worker; create role millrace_admin")
            _ = try await Migrator.ofAllRooms().migrate(on: observer)
            try await observer.run(
                """
                create role app login in role millrace_worker;
                create role operator login in role millrace_admin connection limit 1
                """)
            try await body(cluster, observer)
            await observer.close()
        }
    }

    @Test func `fewer connections than a worker needs are degraded, for every role that asks`() async throws {
        try await Self.withShortage { cluster, _ in
            let options = ConnectionOptions(location: cluster.url())
            // The observer's, these five and the one of `status`: eight are left, which is enough.
            var others: [Connection] = []
            for _ in 0..<5 { others.append(try await Connection.open(options, name: "other")) }
            try await eventually("eight are enough") { await Self.status(cluster.url()).code == .done }
            others.append(try await Connection.open(options, name: "other"))
            let said = "the database has 7 connections left, and a worker needs 8 to start"
            try await eventually("seven are too few") {
                let outcome = await Self.status(cluster.url())
                return outcome.code == .degraded && outcome.output.hasPrefix("DEGRADED  \(said); ")
            }
            // One who may not see what kind of sessions others have.
            try await eventually("the worker's role counts them too") {
                await Self.status(cluster.url(user: "app")).output.contains(said)
            }
            let json = try JSONValue.read(
                await millrace("status", "--json", "--database-url", cluster.url()).output)
            #expect(json["connections"]?["limit"]?.text == "server" && json["connections"]?["name"] == .null)
            for other in others { await other.close() }
        }
    }

    @Test func `the limits of a worker's role and of the database count`() async throws {
        try await Self.withShortage { cluster, observer in
            // An operator's login may have one connection, and no worker works with it.
            #expect(await Self.status(cluster.url()).code == .done)
            try await observer.run("alter role app connection limit 9")
            let options = ConnectionOptions(location: cluster.url(user: "app"))
            let one = try await Connection.open(options, name: "other")
            #expect(await Self.status(cluster.url()).code == .done)  // eight are left
            let two = try await Connection.open(options, name: "other")
            let role = await Self.status(cluster.url())
            #expect(
                role.code == .degraded
                    && role.output.hasPrefix(
                        "DEGRADED  the role app has 7 connections left of its own limit, and a worker needs 8 to start; "
                    ), "\(role.output)")
            try await observer.run("alter role app connection limit -1; alter database millrace connection limit 9")
            try await eventually("the database's own limit is told") {
                // The observer's, the two and the one of `status`.
                let outcome = await Self.status(cluster.url())
                return outcome.code == .degraded
                    && outcome.output.hasPrefix(
                        "DEGRADED  the database millrace has 5 connections left of its own limit, and a worker needs 8 to start; "
                    )
            }
            let json = try JSONValue.read(
                await millrace("status", "--json", "--database-url", cluster.url()).output)
            #expect(json["connections"]?["limit"]?.text == "database")
            #expect(json["connections"]?["name"]?.text == "millrace")
            await one.close()
            await two.close()
        }
    }

    @Test func `a login that does everything counts once its worker is seen`() async throws {
        try await Self.withShortage { cluster, observer in
            let url = cluster.url(user: "operator")
            try await observer.run("alter role operator connection limit 9")
            let options = ConnectionOptions(location: url)
            let console = try await Connection.open(options, name: "console")
            let worker = try await Connection.open(options, name: "worker")
            #expect(await Self.status(url).code == .done)
            try await worker.run(
                "select millrace.session_open(3000000000, 'w', 'h', 1, '0', null, '{}', 1, false), pg_advisory_lock(3000000000)"
            )
            let outcome = await Self.status(url)
            #expect(outcome.output.contains("the role operator has"), "\(outcome.output)")
            for connection in [console, worker] { await connection.close() }
        }
    }
}
