import Console
import FoundationEssentials
import Listeners
import Postgres
import Signatures
import Threads
import Workers

extension Command {
    static func console(of rooms: [Room]) -> Command {
        Command(
            ["console"],
            summary: "Show the console: pages of everything that runs, and why it does not",
            discussion: """
                On this machine nobody has to sign in, and the address is 127.0.0.1:8480. To be reached from elsewhere it needs \
                --listen and one of these: MILLRACE_TOKEN, users in MILLRACE_CONSOLE_USERS_FILE, or a reverse proxy that signs \
                people in and sends a web token (MILLRACE_CONSOLE_JWT_…). A worker shows the same pages with --console. It \
                works without any living worker. Where MILLRACE_DATABASES names several databases, /console has a line for each, \
                and its pages are below it, at /console/NAME; --database NAME shows one alone.

                What a visitor may do is decided by the database: give the login of DATABASE_URL the roles millrace_viewer, \
                millrace_operator and millrace_admin, which millrace migrate --print-roles makes.

                --make-user reads a password from standard input and prints a line for the file of users.
                """,
            flags: [
                .overriding(.listen, "listen", "ADDRESS:PORT", asIn: .consoleListen), Setting.token.flag,
                Setting.consoleUsers.flag, Setting.consoleRole.flag,
                Setting.consoleFrames.flag, Setting.logLevel.flag, Setting.logFormat.flag,
                .single(
                    "make-user", "NAME", environment: .none, help: "Print the line of this user, and start nothing."),
                .single(
                    "role", "ROLE", .choice(ConsoleRole.allCases.map(\.rawValue)), environment: .none,
                    fallback: "viewer",
                    help: "The role of the new user."),
            ],
            examples: [
                Example("millrace console", "on this machine"),
                Example(
                    "printf %s \"$PASSWORD\" | millrace console --make-user ada --role operator >> users", "a user"),
                Example(
                    "MILLRACE_CONSOLE_USERS_FILE=users millrace console --listen 0.0.0.0:8480", "for others, behind TLS"
                ),
            ]
        ) { invocation in
            if let name = invocation.parsed.string("make-user") { return try invocation.makeUser(name) }
            try await invocation.refuseWithout("console")
            return try await invocation.runConsole(rooms)
        }
    }
}

extension Invocation {
    fileprivate func makeUser(_ name: String) throws -> ExitCode {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try surroundings.read("-", 4096)
        } catch {
            throw Failure(.misused, "the password on standard input \(error.complaint)")
        }
        var password = String(decoding: bytes, as: UTF8.self)
        while password.hasSuffix("\n") || password.hasSuffix("\r") { password.removeLast() }
        guard password.count >= PasswordHash.shortestPassword else {
            throw Failure(
                .misused, "the password has fewer than \(PasswordHash.shortestPassword) characters",
                hint: "it is read from standard input: printf %s \"$PASSWORD\" | millrace console --make-user \(name)")
        }
        let line = "\(name):\(parsed.string("role") ?? "viewer"):\(PasswordHash.of(password))"
        do throws(ConsoleUsers.Malformed) {
            _ = try ConsoleUsers(parsing: line)
        } catch {
            throw Failure(.misused, "that user name cannot be used: \(error.reason)")
        }
        console.show(["user": .string(name), "line": .string(line)]) { console.print(line) }
        return .done
    }

    fileprivate func runConsole(_ rooms: [Room]) async throws -> ExitCode {
        if settings.databases.count > 1 { return try await runSeveralConsole(rooms) }
        let composer = try composer(rooms)
        try await composer.withSchema { _ in }
        let pool = ConsoleService.connections(composer.database, size: 8)
        let service = try composer.console(pool: pool, version: JobWorker.version, keepsHouse: true)
        return try await serve(try composer.consoleListener(service), [pool]) { await service.run() }
    }

    /// It starts whether they can be reached or not: the start page says which.
    private func runSeveralConsole(_ rooms: [Room]) async throws -> ExitCode {
        let composer = severalComposer(rooms)
        let (service, pools) = try composer.severalConsole(version: JobWorker.version)
        return try await serve(try composer.consoleListener(service), pools) { await service.run() }
    }

    /// Until a signal asks for the end.
    private func serve(
        _ listener: Listener, _ pools: [Pool], _ run: @escaping @Sendable () async -> Void
    ) async throws -> ExitCode {
        UnixSignals.onStop { _ in listener.stop() }
        console.print("the console is at http://\(listener.address)/")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await run() }
            try await listener.run()
            group.cancelAll()
        }
        for pool in pools { await pool.close() }
        return .done
    }
}
