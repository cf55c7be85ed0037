package import Faults
package import Gateway
package import Postgres
import Signatures
package import Supervision
package import Transfers

extension Composer {
    /// Who may call the gateway: the keys, issuers and audiences of the settings. Its `run()` keeps published keys fresh.
    /// - Parameter pool: logs in as the gateway; it is asked for the claims of device tokens.
    package func gatewayAccess(
        pool: Pool, supervisor: Supervisor, change: (inout GatewayAccess.Options) -> Void = { _ in }
    ) throws(Failure) -> GatewayAccess {
        let client = HTTPClient()
        var options = try settings.gatewayTokens()
        change(&options)
        return GatewayAccess(
            options, supervisor: supervisor, log: log,
            fetch: { url in
                // Nobody can sign in without the keys, and check-ins are among what they come for.
                try await supervisor.call("jwks", deadline: Self.keySetPatience, isVital: true) { _ in
                    try await Self.keySet(at: url, client).body
                }
            },
            deviceClaims: { token in
                try await pool.withConnection { connection throws(PostgresError) in
                    try await connection.query("select millrace.sync_device_claims($1)::text", [.text(token)]) {
                        row throws(PostgresError) in row.optionalString(0).map { Array($0.utf8) }
                    }.first ?? nil
                }
            })
    }

    package static let keySetPatience = Duration.seconds(5)

    /// The answer with the keys; an answer with another status is a fault.
    package static func keySet(at url: String, _ client: HTTPClient) async throws(Fault) -> HTTPResponse {
        var request = HTTPRequest("GET", url, headers: ["Accept": "application/json"])
        request.limits.total = keySetPatience
        request.limits.bodyBytes = WebKeySet.mostBytes
        let response: HTTPResponse
        do throws(TransferError) {
            response = try await client.send(request)
        } catch {
            throw Fault(transfer: error)
        }
        guard response.status == 200 else {
            throw Fault(
                ErrorClass(http: response.status) ?? .unavailable, code: "\(response.status)",
                "the address answers \(response.status)")
        }
        return response
    }
}
