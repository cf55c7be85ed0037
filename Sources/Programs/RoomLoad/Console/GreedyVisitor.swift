import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
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
    private let child: StartedProcess

    static let form = ("Content-Type", "application/x-www-form-urlencoded")
    private static let password = "a password of this load"

    static func start(_ invocation: Invocation) async throws -> ConsoleProcess {
        let port = try Loopback.freePort()
        var variables = invocation.environment
        variables["MILLRACE_CONSOLE_USERS"] = [GreedyVisitor.name, "ordinary"].map {
            "\($0):admin:\(PasswordHash.of(password))"
        }.joined(separator: "\n")
        variables["DATABASE_URL"] = try invocation.connectionOptions().location
        // Without a role for admins they act as the console's own login.
        variables["MILLRACE_ROLE_ADMIN"] = "nobody_\(UInt32.random(in: .min ... .max))"
        let child = try StartedProcess(
            "a console", ["console", "--listen", "127.0.0.1:\(port)", "--log-level", "error"], environment: variables)
        try await Patience.wait(.seconds(60), every: .milliseconds(20), else: "the console did not come up") {
            await Thread.run(name: "console-ready") { GatewayClient(port: port).send("GET", "/livez").status } == 200
        }
        return ConsoleProcess(port: port, child: child)
    }

    private init(port: UInt16, child: StartedProcess) { (self.port, self.child) = (port, child) }

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

    func stop() async { _ = await child.end() }
}
