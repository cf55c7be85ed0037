import Composition
import Gateway
import Listeners
import Postgres
import Supervision
import Threads
import Workers

extension Command {
    static let gateway = Command(
        ["gateway"],
        summary: "Serve apps over HTTP: calls, streams, and work done offline",
        discussion: """
            Each request shows a web token (JWT) of your sign-in, or a device's token. Say whose tokens are accepted with \
            MILLRACE_GATEWAY_JWT_SECRET or SUPABASE_JWT_SECRET (HS256), or with the addresses of published keys in \
            MILLRACE_GATEWAY_JWKS_URLS. What a caller may do is decided by the database: each call is made as the clients' \
            role with the token's claims. Put a proxy with TLS before it. A worker serves the same with --gateway.

            The login of DATABASE_URL needs the roles millrace_gateway and millrace_client, which millrace migrate \
            --print-roles makes.
            """,
        flags: [
            .overriding(.listen, "listen", "ADDRESS:PORT", asIn: .gatewayListen), Setting.gatewayOrigins.flag,
            Setting.gatewayProxies.flag, Setting.gatewayRates.flag, Setting.gatewayPool.flag,
            Setting.gatewayStreams.flag, Setting.directURL.flag, Setting.logLevel.flag, Setting.logFormat.flag,
            .single(
                "parent", "PID", .integer(0...Int(Int32.max)), environment: .none, hidden: true,
                help: "End when this process ends."),
        ],
        examples: [
            Example("MILLRACE_GATEWAY_JWT_SECRET_FILE=secret millrace gateway", "on this machine, tokens with HS256"),
            Example(
                "MILLRACE_GATEWAY_JWKS_URLS=https://login.example.com/.well-known/jwks.json millrace gateway",
                "tokens by published keys"),
        ]
    ) { invocation in try await invocation.runGateway() }
}

extension Invocation {
    fileprivate func runGateway() async throws -> ExitCode {
        dieWithParent(parsed.integer("parent") ?? 0)
        try await refuseWithout("gateway")
        let composer = try composer()
        try await composer.withSchema { _ in }
        let hearing = NotificationHub(composer.direct ?? composer.database)
        let supervisor = composer.supervisor(name: "gateway", hearing: hearing)
        let gateway = try composer.gateway(supervisor: supervisor, hearing: hearing, version: JobWorker.version)
        try await gateway.checkLogin()
        UnixSignals.onStop { _ in gateway.listener.stop() }
        console.print("the gateway is at http://\(gateway.listener.address)/v1")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await supervisor.run() }
            try await gateway.run()
            group.cancelAll()
        }
        return .done
    }
}
