import CommandKit
import FoundationEssentials
import Glibc
import Postgres
import Synchronization
import Threads

/// A gateway in a process of its own, which can be killed and started again at the same address.
final class GatewayProcess: Sendable {
    let port: UInt16
    private let arguments: [String]
    private let environment: [String: String]
    private let directory: String
    private let child = Mutex<pid_t?>(nil)

    /// Starts it, and waits until it is ready.
    /// - Parameter environment: added to this process's own.
    static func start(
        _ ground: GatewayGround, arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> GatewayProcess {
        let gateway = try GatewayProcess(ground, arguments, environment)
        LoadGround.atEnd { gateway.kill() }
        try await gateway.start()
        return gateway
    }

    private init(_ ground: GatewayGround, _ arguments: [String], _ more: [String: String]) throws {
        port = try Loopback.freePort()
        directory = try Scratch.directory(
            "gateway", in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp", isOpen: false)
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
        let log = open(directory + "/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        guard let pid = OwnProgram.spawn(arguments, environment: environment, output: log) else {
            throw Failure("a gateway could not be started")
        }
        child.withLock { $0 = pid }
        let deadline = ContinuousClock.now + .seconds(60)
        while await Thread.run(
            name: "gateway-ready", { [port] in GatewayClient(port: port).send("GET", "/readyz").status }) != 200
        {
            guard ContinuousClock.now < deadline, isAlive else {
                throw Failure("the gateway did not come up: \(said)")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// What it logged, the end of it.
    var said: String { String(((try? String(contentsOfFile: directory + "/log", encoding: .utf8)) ?? "").suffix(3000)) }

    var isAlive: Bool {
        guard let pid = child.withLock({ $0 }) else { return false }
        var information = siginfo_t()
        let gone = waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo != 0
        return !gone
    }

    /// As a crash: kill -9. Waits until it is gone.
    func kill() {
        guard
            let pid = child.withLock({ child in
                defer { child = nil }; return child
            })
        else { return }
        Glibc.kill(pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }

    /// Stops it as a service manager does. Throws if it did not end well.
    func stop() async throws {
        guard
            let pid = child.withLock({ child in
                defer { child = nil }; return child
            })
        else { return }
        Glibc.kill(pid, SIGTERM)
        let status = await Thread.run(name: "gateway-stop") {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return status
        }
        guard status == 0 else { throw Failure("the gateway ended badly (status \(status)): \(said)") }
    }

    /// Processor seconds, and resident megabytes at the most.
    var usage: (processor: Double, most: Double) {
        guard let pid = child.withLock({ $0 }) else { return (0, 0) }
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
        let log = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(log) }
        guard let pid = OwnProgram.spawn(arguments, environment: ProcessEnvironment.own, output: log, instead: program)
        else { throw Failure("\(name) could not be started") }
        let status = await Thread.run(name: "gateway-tool") {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return status
        }
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
