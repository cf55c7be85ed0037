import FoundationEssentials
import JSON
package import Listeners
package import Postgres
package import Signatures
import Subscriptions
package import Telemetry

/// The HTTP routes for stores. Each checks who has signed a message before anything in it is read.
package struct SubscriptionRoutes: Sendable {
    package let pool: Pool
    package let log: Log
    /// nil: not configured, and there is no such route.
    package var stripe: [StripeSignature.Secret]?
    package var apple: AppStoreSignature?

    package init(pool: Pool, log: Log) {
        self.pool = pool
        self.log = log
    }

    package var all: [Route] {
        var routes: [Route] = []
        if let stripe {
            routes.append(
                Route(.post, "/v1/webhooks/stripe", access: .verified, limit: 262_144) { request in
                    try await hear(request, from: stripe)
                })
        }
        if let apple {
            routes.append(
                Route(.post, "/v1/webhooks/app-store", access: .verified, limit: 262_144) { request in
                    try await hear(request, from: apple)
                })
        }
        return routes
    }

    private func hear(
        _ request: Listeners.Request, from secrets: [StripeSignature.Secret]
    ) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        let header = request.headers.first { $0.name.lowercased() == "stripe-signature" }?.value
        do throws(StripeSignature.Refusal) {
            try StripeSignature.verify(body, header: header, with: secrets, at: .now)
        } catch {
            return refuse("stripe", error.rawValue)
        }
        return try await record("stripe", body)
    }

    private func hear(_ request: Listeners.Request, from apple: AppStoreSignature) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let signed = (try? JSONValue.read(body))?["signedPayload"]?.text else {
            return .text("this is no notification\n", status: 400)
        }
        let event: JSONValue
        do throws(AppStoreSignature.Refusal) {
            event = try apple.notification(signed, at: .now)
        } catch {
            return refuse("app store", error.rawValue)
        }
        return try await record("apple", Array(event.compact.utf8))
    }

    private func refuse(_ store: String, _ why: String) -> Listeners.Response {
        log.warning("a store's message was refused", [("store", store), ("why", why)])
        return .text("\(why)\n", status: 401)
    }

    /// 200 only when it is committed, so that the store sends it again otherwise.
    private func record(_ store: String, _ event: [UInt8]) async throws -> Listeners.Response {
        let said: String
        do {
            said = try await pool.withConnection { connection throws(PostgresError) in
                try await SubscriptionAdmin.hear(store, event: event, on: connection)
            }
        } catch let error as PostgresError where error.sqlState?.hasPrefix("22") == true {
            return .text("this is no event\n", status: 400)
        }
        log.debug("heard of a subscription", [("store", store), ("said", said)])
        return .json("{\"said\":\"\(said)\"}\n")
    }
}
