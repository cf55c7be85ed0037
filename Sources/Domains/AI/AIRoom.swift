import Postgres
package import RoomKit
import RoomSchemas

extension Room {
    /// Questions to language models.
    package static let ai = Room(
        RoomSchemas.ai, settings: Setting.ai,
        nouns: [
            "ai": "Ask language models, see what was asked and what it cost, and switch them on",
            "ai purpose": "Show a purpose for which models are asked, or add one",
        ],
        verbs: [.aiList, .aiShow, .aiAsk, .aiPurposes, .aiPurposeShow, .aiPurposePut, .aiSwitch],
        checks: [
            RoomCheck("AI") { (_, connection) async throws(PostgresError) in
                try await AIAdmin.troubles(on: connection, deadline: .seconds(5)).judged
            }
        ]
    ) { context in
        let settings = context.settings
        let bounds = ["ai": min(settings.integer(.aiSlots), settings.slots)]
        guard !settings.aiFormats.isEmpty else { return RoomParts(bounds: bounds) }
        return RoomParts(
            handlers: try await context.aiHandlers(), bounds: bounds, gauges: { await context.aiGauges() },
            serves: ["ai": settings.aiFormats.joined(separator: ",")])
    }
}
