import CommandKit
import FoundationEssentials
import Glibc
import Postgres
import Signatures
import Synchronization
import Threads

/// What a visitor of the console may ask for too often.
enum GreedyVisitor {
    static let name = "greedy"

    struct Kind: Sendable {
        let name: String
        let flood: @Sendable (_ cookie: String, _ port: UInt16) -> GreedyFlood
    }

    /// The pages that read most, live pages that are opened again and again, and wrong passwords.
    static let floods: [Kind] = [
        Kind(name: "pages") { cookie, _ in
            let pages = [
                "/console", "/console?span=14d", "/console/jobs?state=ready", "/console/storage", "/console/past",
                "/console/search?q=load", "/console/audit",
            ]
            return GreedyFlood(name: "pages") { client, caller, number in
                client.send("GET", pages[(caller + number) % pages.count], headers: [("Cookie", cookie)]).status
            }
        },
        Kind(name: "live pages") { cookie, port in
            GreedyFlood(name: "live pages") { _, _, _ in
                GatewayClient.stream(
                    "/console/live?topic=fleet", token: "", headers: [("Cookie", cookie)], port: port
                ) { !$0.isEmpty }.answer.status
            }
        },
        Kind(name: "wrong passwords") { _, _ in
            GreedyFlood(name: "wrong passwords") { client, caller, number in
                client.send(
                    "POST", "/console/signin", headers: [ConsoleProcess.form],
                    body: "name=n\(caller)&secret=guess\(number)"
                ).status
            }
        },
    ]
}

/// A console in a process of its own, with two users who may do everything.
final class ConsoleProcess: Sendable {
    let port: UInt16
    private let child = Mutex<pid_t?>(nil)

    static let form = ("Content-Type", "application/x-www-form-urlencoded")
    private static let password = "a password of this load"

    static func start(_ invocation: Invocation) async throws -> ConsoleProcess {
        let console = try ConsoleProcess()
        LoadGround.atEnd { try? await console.stop() }
        var variables = invocation.environment
        variables["MILLRACE_CONSOLE_USERS"] = [GreedyVisitor.name, "ordinary"].map {
            "\($0):admin:\(PasswordHash.of(password))"
        }.joined(separator: "\n")
        variables["DATABASE_URL"] = try invocation.connectionOptions().location
        // Without a role for admins they act as the console's own login.
        variables["MILLRACE_ROLE_ADMIN"] = "nobody_\(UInt32.random(in: .min ... .max))"
        let arguments = ["console", "--listen", "127.0.0.1:\(console.port)", "--log-level", "error"]
        guard let pid = OwnProgram.spawn(arguments, environment: variables) else {
            throw Failure("a console could not be started")
        }
        console.child.withLock { $0 = pid }
        let deadline = ContinuousClock.now + .seconds(60)
        while await Thread.run(
            name: "console-ready", { [port = console.port] in GatewayClient(port: port).send("GET", "/livez").status })
            != 200
        {
            guard ContinuousClock.now < deadline else { throw Failure("the console did not come up") }
            try await Task.sleep(for: .milliseconds(20))
        }
        return console
    }

    private init() throws { port = try Loopback.freePort() }

    /// The cookie of a user.
    func signIn(_ name: String) throws -> String {
        let secret = Self.password.replacing(" ", with: "+")
        let answer = GatewayClient(port: port).send(
            "POST", "/console/signin", headers: [Self.form], body: "name=\(name)&secret=\(secret)")
        guard let cookie = answer.headers["set-cookie"]?.split(separator: ";").first else {
            throw Failure("nobody signs in at the console: \(answer.status) \(answer.text.suffix(500))")
        }
        return String(cookie)
    }

    func stop() async throws {
        guard
            let pid = child.withLock({ child in
                defer { child = nil }; return child
            })
        else { return }
        kill(pid, SIGTERM)
        await Thread.run(name: "console-stop") {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        }
    }
}
