import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Signatures

/// The roles that a gateway needs in the scenario's database, and tokens of people who call. The roles are removed at the end.
struct GatewayGround: Sendable {
    let invocation: Invocation
    /// The common beginning of its roles' names.
    let name: String
    /// What the tokens are signed with.
    let secret: String
    /// Where the gateway logs in.
    let location: String

    /// The clients' role, which nobody logs in as.
    var role: String { name + "_client" }

    static func make(_ invocation: Invocation, on connection: Connection) async throws -> GatewayGround {
        let name = "gateway_load_\(UInt32.random(in: 1...UInt32.max))"
        let password = Hex.random(16)
        let options = try invocation.connectionOptions()
        let ground = GatewayGround(
            invocation: invocation, name: name, secret: Hex.random(32),
            location: Self.location(options.location, user: name + "_login", password: password))
        LoadGround.atEnd {
            guard let connection = try? await Connection.open(options, name: "load") else { return }
            _ = try? await ground.close(on: connection)
            await connection.close()
        }
        try await connection.execute(
            "select set_config('millrace.gateway_load', $1, false), set_config('millrace.gateway_word', $2, false)",
            [.text(name), .text(password)])
        try await connection.run(script: Self.opening)
        do {
            _ = try await Migrator.ofAllRooms(roles: [("client", ground.role), ("gateway", name + "_gateway")]).migrate(
                on: connection)
        } catch {
            throw Failure("\(error)")
        }
        return ground
    }

    private static let opening: SQL = """
        do $$ declare name text := current_setting('millrace.gateway_load');
        begin
            execute format('create role %I nologin', name || '_client');
            execute format('create role %I nologin', name || '_gateway');
            execute format('create role %I login password %L', name || '_login', current_setting('millrace.gateway_word'));
            execute format('grant %I, %I to %I', name || '_gateway', name || '_client', name || '_login');
        end $$
        """

    private func close(on connection: Connection) async throws {
        try await connection.execute(
            "delete from millrace.setting where name in ('role_client', 'role_gateway') and starts_with(value, $1)",
            [.text(name)])
        try await connection.execute("select set_config('millrace.gateway_load', $1, false)", [.text(name)])
        try await connection.run(
            script: """
                do $$ declare role text;
                begin
                    for role in select rolname from pg_roles where starts_with(rolname, current_setting('millrace.gateway_load')) order by rolname desc loop
                        execute format('drop owned by %I', role);
                        execute format('drop role %I', role);
                    end loop;
                end $$
                """)
    }

    /// The same database as another role: for libpq the last word counts.
    private static func location(_ location: String, user: String, password: String) -> String {
        guard location.contains("://") else { return "\(location) user=\(user) password=\(password)" }
        return location + (location.contains("?") ? "&" : "?") + "user=\(user)&password=\(password)"
    }

    // MARK: tokens

    /// A token of a person, as a sign-in service issues it.
    func token(_ person: String, tenant: String? = nil, expires: Int = 86_400) -> String {
        GatewayToken.signed(Self.claims(person, tenant: tenant, expires: expires), secret: secret)
    }

    static func claims(_ person: String, tenant: String? = nil, expires: Int = 86_400) -> JSONValue {
        let now = Int(Date().timeIntervalSince1970)
        var members: [JSONValue.Member] = [
            .init(key: "sub", value: .string(person)), .init(key: "aud", value: "authenticated"),
            .init(key: "role", value: "authenticated"), .init(key: "iat", value: .int(now)),
            .init(key: "exp", value: .int(now + expires)),
        ]
        if let tenant { members.append(.init(key: "tenant", value: .string(tenant))) }
        return .object(members)
    }
}

/// Web tokens that are signed with a shared secret.
enum GatewayToken {
    static func signed(_ claims: JSONValue, secret: String, header: JSONValue = ["alg": "HS256", "typ": "JWT"])
        -> String
    {
        let text =
            Base64URL.encode(Array(header.compact.utf8)) + "." + Base64URL.encode(Array(claims.compact.utf8))
        return text + "." + Base64URL.encode(HMAC.sha256(Array(text.utf8), key: Array(secret.utf8)))
    }
}

private enum Hex {
    static func random(_ bytes: Int) -> String {
        (0..<bytes).map { _ in
            let byte = UInt8.random(in: .min ... .max)
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
