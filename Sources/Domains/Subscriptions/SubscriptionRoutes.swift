import FoundationEssentials
import JSON
package import Listeners
package import Postgres
package import Signatures
package import Telemetry

/// The HTTP routes for stores. Each checks who has signed a message before anything in it is read.
package struct SubscriptionRoutes: Sendable {
    package let pool: Pool
    package let log: Log
    /// nil: not configured, and what comes is only counted.
    package var stripe: [StripeSignature.Secret]?
    package var apple: AppStoreSignature?
    package let tally = SharedStoreMessageTally()

    package init(pool: Pool, log: Log) {
        self.pool = pool
        self.log = log
    }

    package var all: [Route] {
        [
            Route(.post, "/v1/webhooks/stripe", access: .verified, limit: 262_144) { request in
                guard let stripe else { return try await pass(request, "stripe") }
                return try await hear(request, from: stripe)
            },
            Route(.post, "/v1/webhooks/app-store", access: .verified, limit: 262_144) { request in
                guard let apple else { return try await pass(request, "apple") }
                return try await hear(request, from: apple)
            },
        ]
    }

    /// Nothing here can check it. doctor says so, because a store keeps on sending.
    private func pass(_ request: Listeners.Request, _ store: String) async throws -> Listeners.Response {
        _ = try await request.body.collect()
        return await refuse(store, "the settings of this store are missing", status: 404)
    }

    private func hear(
        _ request: Listeners.Request, from secrets: [StripeSignature.Secret]
    ) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        let header = request.headers.first { $0.name.lowercased() == "stripe-signature" }?.value
        do throws(StripeSignature.Refusal) {
            try StripeSignature.verify(body, header: header, with: secrets, at: .now)
        } catch {
            return await refuse("stripe", error.rawValue)
        }
        return try await record("stripe", body)
    }

    private func hear(_ request: Listeners.Request, from apple: AppStoreSignature) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let signed = (try? JSONValue.read(body))?["signedPayload"]?.text else {
            return await refuse("apple", "this is not a notification", status: 400)
        }
        let event: JSONValue
        do throws(AppStoreSignature.Refusal) {
            event = try apple.notification(signed, at: .now)
        } catch {
            return await refuse("apple", error.rawValue)
        }
        return try await record("apple", Array(event.compact.utf8))
    }

    private func refuse(_ store: String, _ why: String, status: Int = 401) async -> Listeners.Response {
        log.warning("a store's message was refused", [("store", store), ("why", why)])
        if let messages = tally.refuse(.init(store: store, why: why)) {
            do {
                try await pool.withConnection { connection throws(PostgresError) in
                    try await SubscriptionAdmin.refused(store, why: why, messages: messages, on: connection)
                }
            } catch {
                log.debug("a refusal could not be written down", [("store", store), ("error", "\(error)")])
            }
        }
        return .text("\(why)\n", status: status)
    }

    /// 200 only when it is committed, so that the store sends it again otherwise.
    private func record(_ store: String, _ event: [UInt8]) async throws -> Listeners.Response {
        let said: String
        do {
            said = try await pool.withConnection { connection throws(PostgresError) in
                try await SubscriptionAdmin.hear(store, event: event, on: connection)
            }
        } catch let error as PostgresError where error.sqlState?.hasPrefix("22") == true {
            return await refuse(store, "this is not an event", status: 400)
        } catch {
            tally.add(.failed, of: store)
            throw error
        }
        tally.add(.init(rawValue: said) ?? .ignored, of: store)
        log.debug("heard of a subscription", [("store", store), ("said", said)])
        return .json("{\"said\":\"\(said)\"}\n")
    }
}
