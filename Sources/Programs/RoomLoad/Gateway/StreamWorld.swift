import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Signatures
import Synchronization
import Threads
import Workers

/// A Postgres, a gateway that is started again when it dies, a worker, and a proxy in between, of one measurement.
final class StreamWorld: Sendable {
    let directory: String
    let cluster: Cluster
    let kept: KeptWorkers
    let gatewayPort: UInt16
    /// Where clients go: the proxy, or the gateway itself.
    let port: UInt16
    private let invocation: Invocation
    private let secret = "a secret of load gateway-streams alone"
    private let proxy = Mutex<StartedProcess?>(nil)

    static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first { (path: String) in access(path, X_OK) == 0 }

    init(_ invocation: Invocation, hasProxy: Bool) throws {
        self.invocation = invocation
        directory = try Scratch.directory("streams")
        cluster = try Scratch.cluster(
            directory + "/pg", invocation, settings: ["max_connections": "120", "shared_buffers": "256MB"])
        kept = KeptWorkers(directory: directory)
        gatewayPort = try Loopback.freePort()
        port = hasProxy ? try Loopback.freePort() : gatewayPort
    }

    /// It ends with the scenario.
    static func opened(_ invocation: Invocation, hasProxy: Bool) async throws -> StreamWorld {
        let world = try StreamWorld(invocation, hasProxy: hasProxy)
        try await world.open()
        return world
    }

    var options: ConnectionOptions { ConnectionOptions(location: cluster.url(), applicationName: "load") }

    /// The same command, in this world's database.
    var inside: Invocation {
        var settings = invocation.settings
        settings.point(.databaseURL, at: cluster.url())
        return Invocation(
            parsed: invocation.parsed, settings: settings, console: invocation.console,
            surroundings: invocation.surroundings, tree: invocation.tree)
    }

    func open() async throws {
        try await cluster.open()
        let connection = try await Connection.open(options, name: "load")
        try await connection.run(script: "create role millrace_client")
        do {
            _ = try await Migrator.ofAllRooms(roles: [("client", "millrace_client")]).migrate(on: connection)
        } catch {
            throw Failure("\(error)")
        }
        try await connection.execute("select millrace.trust_claims(session_user)")
        await connection.close()
        var environment = invocation.environment
        environment["DATABASE_URL"] = cluster.url()
        environment["MILLRACE_DIRECT_URL"] = nil
        environment["MILLRACE_GATEWAY_JWT_SECRET"] = secret
        // Ten thousand clients come from one machine.
        environment["MILLRACE_GATEWAY_RATES"] = "unlimited=1000000:1000000"
        environment["MILLRACE_GATEWAY_STREAMS"] = "15000"
        kept.keep(
            "gateway",
            arguments: [
                "gateway", "--listen", "127.0.0.1:\(gatewayPort)", "--parent", "\(getpid())", "--log-level", "warning",
            ], environment: environment)
        if port != gatewayPort { try startProxy() }
        let isUp = try await Patience.waited(.seconds(60), every: .milliseconds(100)) { Self.answers(port) }
        guard isUp else {
            let log = (try? String(contentsOfFile: directory + "/gateway.log", encoding: .utf8)) ?? ""
            throw Failure("the gateway does not answer: \(log.suffix(1000))")
        }
    }

    /// A token of this person, good for a day.
    func token(_ person: Int) -> String {
        GatewayToken.signed(GatewayGround.claims("person-\(person)"), secret: secret)
    }

    private static func answers(_ port: UInt16) -> Bool {
        ConsoleClient.get("/livez", port: port).status == 200
    }

    private func startProxy() throws {
        guard let program = Self.nginx else { throw Failure("nginx is not installed") }
        try """
        worker_processes 2;
        worker_rlimit_nofile 19000;
        worker_shutdown_timeout 1s;
        daemon off;
        pid \(directory)/nginx.pid;
        error_log \(directory)/nginx.log;
        events { worker_connections 18000; }
        http {
            access_log off;
            client_body_temp_path \(directory)/t1; proxy_temp_path \(directory)/t2; fastcgi_temp_path \(directory)/t3;
            uwsgi_temp_path \(directory)/t4; scgi_temp_path \(directory)/t5;
            server {
                listen 127.0.0.1:\(port) backlog=4096 reuseport;
                location / {
                    proxy_pass http://127.0.0.1:\(gatewayPort);
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_buffering off;
                    proxy_read_timeout 1h;
                    proxy_bind $remote_addr;
                }
            }
        }
        """.write(toFile: "\(directory)/nginx.conf", atomically: true, encoding: .utf8)
        let process = try StartedProcess(
            "nginx", ["-c", "\(directory)/nginx.conf", "-p", directory, "-e", "\(directory)/nginx.log"],
            environment: invocation.environment, log: "\(directory)/nginx.out", program: program)
        proxy.withLock { $0 = process }
    }

    // MARK: Faults

    func killGateway() {
        if let pid = kept.pid(of: "gateway") { kill(pid, SIGKILL) }
    }

    func restartPostgres() async throws {
        try await cluster.close(.immediate)
        try await cluster.open()
    }

    func reloadProxy() { proxy.withLock { $0 }?.signal(SIGHUP) }

    // MARK: Load

    /// Commits changes for random people at a steady rate, and jobs beside them, until told; a lost connection is opened again. Returns how
    /// many were committed as far as it knows.
    func commit(people: Int, perSecond: Int, jobsPerSecond: Int, until isOver: @escaping @Sendable () -> Bool) async
        -> Int
    {
        await withTaskGroup(of: Int.self) { group in
            let options = options
            group.addTask {
                await Self.repeated(perSecond, options, until: isOver) { number, connection throws(PostgresError) in
                    let person = Int.random(in: 0..<people)
                    try await connection.execute(
                        """
                        with f as (insert into millrace.feed (at, topic, person, ref, change, data)
                                   values (millrace.now(), 'documents', $1, $2, 'changed', $3) returning place)
                        select millrace.feed_wake() from f
                        """,
                        [
                            .text("person-\(person)"), .text("document-\(number)"),
                            .json(
                                "{\"n\": \(number), \"t\": \(PracticeMarks.now()), \"status\": \"reading\", \"pages\": 12, \"page\": 3}"
                            ),
                        ])
                }
            }
            group.addTask {
                _ = await Self.repeated(jobsPerSecond, options, until: isOver) {
                    number, connection throws(PostgresError) in
                    try await connection.execute(
                        "select millrace.enqueue('practice.mark', $1, queue => 'load.streams')",
                        [.json("{\"n\": \(number)}")])
                }
                return 0
            }
            return await group.reduce(0, +)
        }
    }

    private static func repeated(
        _ perSecond: Int, _ options: ConnectionOptions, until isOver: @Sendable () -> Bool,
        _ body: @Sendable (Int, Connection) async throws(PostgresError) -> Void
    ) async -> Int {
        let began = PracticeMarks.now()
        let cadence = Cadence(began: began, perSecond: Double(max(1, perSecond)), calls: .max)
        var (number, done) = (0, 0)
        var connection: Connection?
        while !isOver() {
            let wait = cadence.due(number) - PracticeMarks.now()
            if wait > 0 { try? await Task.sleep(for: .nanoseconds(wait)) }
            do {
                let open: Connection
                if let connection { open = connection } else { open = try await Connection.open(options, name: "load") }
                connection = open
                try await body(number, open)
                done += 1
            } catch {
                await connection?.close()
                connection = nil
                try? await Task.sleep(for: .milliseconds(100))
            }
            number += 1
        }
        await connection?.close()
        return done
    }
}
