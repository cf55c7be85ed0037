import Postgres
package import RoomKit
import RoomSchemas

extension Room {
    /// Who is told of events by HTTP.
    package static let webhooks = Room(
        RoomSchemas.webhooks, settings: Setting.webhooks,
        nouns: ["webhooks": "Send events to addresses by HTTP, signed, and see what came of them"],
        verbs: [
            .webhooksList, .webhooksAdd, .webhooksRotate, .webhooksRemove, .webhooksEnable, .webhooksTest,
            .webhooksRedeliver, .webhooksDeliveries,
        ],
        checks: [
            RoomCheck("webhooks") { (invocation, connection) async throws(PostgresError) in
                try await WebhookAdmin.state(on: connection, deadline: .seconds(10)).judged(
                    keys: invocation.settings.keys, knowsOrigin: invocation.settings.knowsWebhookOrigin)
            }
        ], status: .webhooks
    ) { context in
        guard context.settings.sendsWebhooks else { return RoomParts() }
        let service = context.webhooks()
        return RoomParts(
            run: { await service.run() }, gauges: { await service.tally.gauges }, serves: ["webhooks": "on"])
    }
}
