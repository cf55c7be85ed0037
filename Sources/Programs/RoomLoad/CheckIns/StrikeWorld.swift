import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres

/// A private Postgres, two workers that serve check-ins, send notices and answer links, and a provider with a ledger.
final class StrikeWorld: Sendable {
    /// What a scenario needs of it.
    struct Plan: Sendable {
        var workers = 2
        var lease = Duration.seconds(8)
        var slots = 4
        var failover: Failover.Mode?
        /// Points at which a fault can strike; they cost a lock each.
        var hasPoints = false
        /// A mail server on this machine, HOST:PORT.
        var smtp: String?
    }

    let directory: String
    let cluster: Cluster
    /// nil: there is one Postgres, which comes back whenever it was stopped.
    let failover: Failover?
    let provider: StrikeProvider
    let names: [String]
    let plan: Plan
    /// The ports of the workers' listeners, in the order of their names.
    let ports: [UInt16]
    private let invocation: Invocation
    private let kept: KeptWorkers

    init(_ invocation: Invocation, _ plan: Plan) throws {
        self.invocation = invocation
        self.plan = plan
        names = (1...plan.workers).map { "strike-\($0)" }
        directory = try Scratch.directory("strike")
        kept = KeptWorkers(directory: directory)
        cluster = try Scratch.cluster(
            directory + "/pg", invocation, settings: ["max_connections": "100", "shared_buffers": "64MB"])
        let standby = directory + "/pg2"
        failover = plan.failover.map { [cluster] in Failover($0, primary: cluster, directory: standby) }
        provider = try StrikeProvider()
        ports = try names.map { _ in try Loopback.freePort() }
    }

    private var location: String { failover?.location ?? cluster.url() }

    func options(_ name: String) -> ConnectionOptions {
        ConnectionOptions(location: location, statementDeadline: .seconds(60), applicationName: name)
    }

    /// Comes when Postgres does.
    func connect(_ name: String = "strike") async throws(PostgresError) -> Connection {
        let patience = ContinuousClock.now + .seconds(120)
        while true {
            do throws(PostgresError) {
                return try await Connection.open(options(name), name: "strike")
            } catch {
                guard ContinuousClock.now < patience, !Task.isCancelled else { throw error }
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    func open() async throws {
        try await cluster.open()
        let connection = try await connect()
        _ = try await Migrator.ofAllRooms().migrate(on: connection)
        if plan.hasPoints { try await StrikePoint.install(on: connection) }
        try await failover?.open(on: connection)
        await connection.close()
    }

    // MARK: Workers

    func startWorkers() {
        for (name, port) in zip(names, ports) {
            var environment = invocation.environment.filter { name, _ in
                !["MILLRACE_", "EMAIL_", "RESEND_", "SUPABASE_"].contains { name.hasPrefix($0) }
            }
            environment["DATABASE_URL"] = location + (failover == nil ? "&" : " ") + "application_name=\(name)"
            environment["MILLRACE_SMS_URL"] = provider.url(for: name)
            environment["MILLRACE_LISTEN"] = "127.0.0.1:\(port)"
            environment["MILLRACE_PUBLIC_URL"] = "http://127.0.0.1:\(ports[0])"
            environment["MILLRACE_SECRET"] = "a secret of the harness's own"
            environment["MILLRACE_MAIL_OUTBOX"] = directory + "/outbox"
            if let smtp = plan.smtp {
                environment["MILLRACE_MAIL_SMTP_URL"] = "smtp://\(smtp)?tls=none"
                environment["EMAIL_SERVICE_PROVIDER"] = "smtp"
                environment["EMAIL_FROM_ADDRESS"] = "load@example.net"
            }
            kept.keep(
                name,
                arguments: [
                    "worker", "--checkins", "--parent", "\(getpid())", "--name", name, "--slots", "\(plan.slots)",
                    "--alarm-lease", DurationText.spell(plan.lease), "--log-level", "warning",
                ],
                environment: environment)
        }
    }

    func pid(of name: String) -> pid_t? { kept.pid(of: name) }

    /// Until both workers are there, with the connections of their check-in services and lanes.
    func settle(on connection: Connection) async throws {
        let areAtWork = try await Patience.waited(.seconds(180)) {
            let atWork = try await connection.int(
                """
                select count(*) from (select application_name from pg_stat_activity where application_name like 'strike-_'
                                       group by 1 having count(*) >= 3 and bool_or(query like '%watch_step%') and bool_or(query like '%notice_next%')) w
                """)
            return atWork == names.count && names.allSatisfy { pid(of: $0) != nil }
        }
        guard areAtWork else { throw Failure("the workers did not come to work: \(said)") }
    }

    /// The end of the workers' logs.
    private var said: String {
        names.map { name in
            "\(name): "
                + ((try? String(contentsOfFile: "\(directory)/\(name).log", encoding: .utf8)) ?? "nothing").suffix(600)
        }.joined(separator: "\n")
    }

    func stopWorkers() async throws -> [String] { try await kept.stop() }

    // MARK: Faults

    /// Strikes the worker of this name, or Postgres. `release` lets stopped transactions continue; it is called at the right moment.
    func strike(
        _ fault: StrikeFault, worker name: String, release: @Sendable () async throws -> Void
    ) async throws {
        switch fault {
        case .kill, .vanish:
            guard let pid = pid(of: name) else { throw Failure("\(name) is gone already") }
            kill(pid, SIGKILL)
            while self.pid(of: name) == pid { try await Task.sleep(for: .milliseconds(5)) }
            if fault == .vanish {
                // Those of the one that was killed: its successor is not there yet, or loses its connections as well.
                let connection = try await connect()
                try await connection.execute(
                    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = $1",
                    [.text(name)]
                )
                await connection.close()
            }
            try await release()
        case .pause, .freeze:
            guard let pid = pid(of: name) else { throw Failure("\(name) is gone already") }
            kill(pid, SIGSTOP)
            try await release()
            try await Task.sleep(for: fault == .pause ? .seconds(1) : plan.lease + .seconds(2))
            kill(pid, SIGCONT)
        case .stop, .crash:
            try await cluster.close(fault == .stop ? .fast : .immediate)
            try await release()
            try await cluster.open()
        }
    }
}
