import MillraceJobs
import Postgres
import RoomKit
import Telemetry
import Transfers
import Workers

extension RoomContext {
    /// The models that this worker can ask, in their order; none is configured: it asks nobody.
    private var aiProviders: [any AIProvider] {
        let client = HTTPClient()
        var providers: [any AIProvider] = []
        if let model = settings.text(.aiOpenAIModel) {
            var configuration = OpenAIProvider.Configuration(
                base: settings.string(.aiOpenAIURL), key: settings.text(.aiOpenAIKey), model: model)
            configuration.hasBatches = settings.aiHasBatches(configuration.base)
            providers.append(OpenAIProvider(configuration, client: client))
        }
        if let model = settings.text(.aiAnthropicModel) {
            var configuration = AnthropicProvider.Configuration(
                key: settings.text(.aiAnthropicKey) ?? "", model: model)
            configuration.base = settings.string(.aiAnthropicURL)
            configuration.hasBatches = settings.aiHasBatches(configuration.base)
            providers.append(AnthropicProvider(configuration, client: client))
        }
        return settings.string(.aiOrder).hasPrefix("anthropic") ? providers.reversed() : providers
    }

    /// A handler for each built-in purpose, and one for all that apps add, also while the worker runs. The database hears what can be asked before the first job is taken.
    func aiHandlers() async throws -> [Handler] {
        let providers = aiProviders
        if settings.text(.aiAnthropicModel) != nil, settings.text(.aiAnthropicKey) == nil {
            throw Failure(.misused, "MILLRACE_AI_ANTHROPIC_MODEL needs MILLRACE_AI_ANTHROPIC_KEY too")
        }
        var options = AIService.Options()
        options.limits.total = settings.duration(.aiTimeout)
        options.limits.stall = settings.duration(.aiStall)
        let service = AIService(options, pool: pool, providers: providers, supervisor: supervisor, log: log)
        let days = Int(settings.duration(.aiKeep).components.seconds / 86_400)
        let purposes = try await withSchema { connection in
            try await AIAdmin.tell(providers, keepDays: max(1, days), on: connection)
            return try await AIAdmin.purposes(on: connection)
        }
        let retries = RetryPolicy(attempts: 8, base: .seconds(2), cap: .minutes(10))
        let batches = Handler(kind: "ai.batch", queue: "ai", retries: retries) { args, context in
            try await service.runBatch(args, context)
        }
        let forgetting = Handler(kind: "ai.forget", queue: "ai", retries: retries) { args, context in
            try await service.runForget(args, context)
        }
        return [batches, forgetting]
            + AIService.kinds(purposes).map { kind in
                Handler(
                    kind: kind, queue: "ai", retries: retries
                ) { args, context in try await service.run(args, context) }
            }
    }

    /// What was asked in the last hour, of all workers.
    func aiGauges() async -> [RoomGauge] {
        let state: AIAdmin.State
        do {
            state = try await pool.withConnection { try await AIAdmin.state(on: $0) }
        } catch {
            log.debug("cannot count questions to models for /metrics", [("error", "\(error)")])
            return []
        }
        return [
            RoomGauge(
                name: "ai_questions_open", help: "Questions to models that wait or are being asked, of all workers.",
                value: Double(state.open)),
            RoomGauge(
                name: "ai_questions_last_hour", help: "Questions that ended in the last hour, by outcome.",
                values: [
                    ("asked", state.answered - state.fromStore), ("store", state.fromStore),
                    ("refused", state.refused), ("failed", state.failed),
                ].map { (labels: RoomGauge.labels([("outcome", $0.0)]), value: Double($0.1)) }),
            RoomGauge(
                name: "ai_tokens_last_hour", help: "Tokens of these questions.",
                values: [
                    ("{direction=\"in\"}", Double(state.tokensIn)), ("{direction=\"out\"}", Double(state.tokensOut)),
                ]),
            RoomGauge(
                name: "ai_undeleted", help: "Batches and files that could not be deleted at providers yet.",
                value: Double(state.undeleted)),
        ]
    }
}
