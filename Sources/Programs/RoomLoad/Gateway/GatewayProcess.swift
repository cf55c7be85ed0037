import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Postgres
import Synchronization
import Threads

/// A gateway in a process of its own, which can be killed and started again at the same address.
final class GatewayProcess: Sendable {
    let port: UInt16
    private let arguments: [String]
    private let environment: [String: String]
    private let directory: String
    private let child = Mutex<StartedProcess?>(nil)

    /// Starts it, and waits until it is ready.
    /// - Parameter environment: added to this process's own.
    static func start(
        _ ground: GatewayGround, arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> GatewayProcess {
        let gateway = try GatewayProcess(ground, arguments, environment)
        try await gateway.start()
        return gateway
    }

    private init(_ ground: GatewayGround, _ arguments: [String], _ more: [String: String]) throws {
        port = try Loopback.freePort()
        directory = try Scratch.directory(
            "gateway", in: Scratch.temporary, isOpen: false)
        self.arguments =
            ["gateway", "--listen", "127.0.0.1:\(port)", "--log-level", "warning", "--parent", "\(getpid())"]
            + arguments
        var variables = ground.invocation.environment
        variables["DATABASE_URL"] = ground.location
        variables["MILLRACE_ROLE_CLIENT"] = ground.role
        variables["MILLRACE_GATEWAY_JWT_SECRET"] = ground.secret
        variables.merge(more) { $1 }
        environment = variables
    }

    func start() async throws {
        let process = try StartedProcess("a gateway", arguments, environment: environment, log: directory + "/log")
        child.withLock { $0 = process }
        try await Patience.wait(
            .seconds(60), every: .milliseconds(20), else: "the gateway did not come up: \(process.said)"
        ) { [port] in
            guard process.isAlive else { throw Failure("the gateway ended: \(process.said)") }
            return await Thread.run(name: "gateway-ready") { GatewayClient(port: port).send("GET", "/readyz").status }
                == 200
        }
    }

    /// What it logged, the end of it.
    var said: String { child.withLock { $0 }?.said ?? "" }

    var isAlive: Bool { child.withLock { $0 }?.isAlive ?? false }

    /// As a crash: kill -9. Waits until it is gone.
    func kill() { child.withLock { $0 }?.kill() }

    /// Stops it as a service manager does. Throws if it did not end well.
    func stop() async throws {
        guard let process = child.withLock({ $0 }) else { return }
        let code = await process.end()
        guard code == 0 else { throw Failure("the gateway ended badly (\(code)): \(said)") }
    }

    /// Processor seconds, and resident megabytes at the most.
    var usage: (processor: Double, most: Double) {
        guard let pid = child.withLock({ $0?.pid }) else { return (0, 0) }
        let ticks = ProcessTable.ticks(of: pid)?.own ?? 0
        return (ticks / ProcessTable.ticksPerSecond, Double(ProcessTable.resident(of: pid).most) / 1_048_576)
    }
}

/// A tool of the system, run to its end.
enum GatewayTool {
    static func isThere(_ name: String) -> Bool { path(of: name) != nil }

    static func path(of name: String) -> String? {
        let places = (getenv("PATH").map { String(cString: $0) } ?? "").split(separator: ":").map(String.init)
        return (places + ["/usr/sbin", "/usr/local/sbin"]).map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// What it wrote. Throws if it ended with another code than 0.
    static func run(_ name: String, _ arguments: [String], in directory: String) async throws -> String {
        guard let program = path(of: name) else {
            throw Failure("there is no program \(name)", hint: "on Debian: apt install nghttp2-client wrk nginx")
        }
        let output = "\(directory)/\(name)-\(UInt32.random(in: .min ... .max))"
        let process = try StartedProcess(
            name, arguments, environment: ProcessEnvironment.own, log: output, program: program)
        let status = await process.end(nil)
        let said = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        guard status == 0 else { throw Failure("\(name) ended badly: \(said.suffix(1000))") }
        return said
    }
}

private enum ProcessEnvironment {
    static var own: [String: String] {
        var own: [String: String] = [:]
        for name in ["PATH", "HOME", "LANG", "TMPDIR"] { own[name] = getenv(name).map { String(cString: $0) } }
        return own
    }
}

/// What a measurement sets for the gateway.
enum UnlimitedGateway {
    /// No caller is slowed down: what the gateway can do is measured, and not what it allows.
    static let environment = [
        "MILLRACE_GATEWAY_RATES": "subject=1000000:1000000,operations=1000000:1000000,address=1000000:1000000"
    ]
}
