import Clusters
import CommandKit
import Faults
import Glibc
import LoadKit
import Postgres
import Supervision

/// A private Postgres, a scripted provider, and processes that call it through their supervisors.
final class SupervisorWorld: Sendable {
    static let name = "scripted"

    let cluster: Cluster
    let provider: ScriptedProvider
    private let invocation: Invocation
    private let directory: String

    init(_ invocation: Invocation) async throws {
        self.invocation = invocation
        provider = try ScriptedProvider()
        (directory, cluster) = try await Scratch.postgres(
            "supervisor", invocation, settings: ["max_connections": "60"])
    }

    func connect() async throws -> Connection {
        try await Connection.open(ConnectionOptions(location: cluster.url()), name: "load")
    }

    /// A process that calls `port` through its supervisor, either at a fixed rate a second or in a fixed number of loops.
    func start(
        _ name: String, port: UInt16, rate: Int = 0, loops: Int = 0, _ settings: [String: String]
    ) throws -> StartedProcess {
        var environment = invocation.environment.filter { !$0.key.hasPrefix("MILLRACE_") }
        environment["DATABASE_URL"] = cluster.url()
        environment["MILLRACE_LOG_LEVEL"] = "error"
        environment.merge(settings) { $1 }
        let arguments = [
            "load", "supervisor", "--member", "\(port)", "--name", name, "--rate", "\(rate)", "--loops", "\(loops)",
            "--parent", "\(getpid())",
        ]
        return try StartedProcess("a member of the fleet", arguments, environment: environment)
    }

    func close() async {
        provider.stop()
        try? await cluster.remove(deadline: .seconds(60))
        rmdir(directory)
    }
}

/// The work of such a process until it is killed.
struct SupervisorMember: Sendable {
    let supervisor: Supervisor
    let port: UInt16

    func run(rate: Int, loops: Int) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await supervisor.run() }
            for _ in 0..<loops {
                group.addTask { while !Task.isCancelled { await call() } }
            }
            guard rate > 0 else { return }
            let began = ContinuousClock.now
            var count = 0
            while !Task.isCancelled {
                count += 1
                try? await Task.sleep(until: began + .seconds(1) * count / rate)
                group.addTask { await call() }
            }
        }
    }

    private func call() async {
        do {
            try await supervisor.call(SupervisorWorld.name) { call in try await PlainRequest.send(to: port, as: call) }
        } catch {
            // A loop must not spin on a door that is shut; the provider counts what counts.
            if let refusal = error as? Supervision.CallRefusal {
                try? await Task.sleep(for: min(refusal.wait, .milliseconds(20)))
            }
        }
    }
}
