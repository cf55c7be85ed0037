import Fakes
import Faults
import JSON
import MillraceJobs
import Postgres
import Supervision
import Telemetry
import TestSupport
import Transfers
import Workers

@testable import AI

/// The room in a database of its own, with a worker that asks fakes.
struct AIBench: Sendable {
    let database: TestDatabase
    let connection: Connection
    let fake: FakeModels

    /// Tells the database of providers, and switches the tenant on.
    func configure(_ tenant: String = "shop") async throws {
        try await connection.run(
            """
            select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "small"}]');
            select millrace.ai_switch('tenant', '\(tenant)', true);
            """)
    }

    @discardableResult
    func ask(
        _ purpose: String = "sentiment", _ input: String = #"{"text": "We had a fine day."}"#, tenant: String = "shop",
        _ more: String = ""
    ) async throws -> String {
        try await connection.value(
            "select millrace.ai_ask('\(purpose)', \(Self.quoted(input)), '\(tenant)'\(more.isEmpty ? "" : ", \(more)"))"
        )
            ?? ""
    }

    func status(_ id: String) async throws -> String {
        try await connection.value("select status from millrace.ai_question where id = '\(id)'") ?? "gone"
    }

    func ended(_ count: Int) async throws {
        try await eventually("\(count) questions have ended") {
            try await connection.int("select count(*) from millrace.ai_question where ended_at is not null") >= count
        }
    }

    func used(_ name: String = "ai_tokens", tenant: String = "shop") async throws -> Int {
        try await connection.int(
            "select coalesce((select used from millrace.quotas where tenant = '\(tenant)' and name = '\(name)'), 0)")
    }

    /// Runs a worker beside `body`, and drains it.
    @discardableResult
    func withWorker<Value: Sendable>(
        base: String? = nil, anthropicToo: Bool = false, onlyAnthropic: Bool = false, supervisor: Supervisor? = nil,
        _ change: (inout AIService.Options) -> Void = { _ in },
        _ body: () async throws -> Value
    ) async throws -> Value {
        let client = HTTPClient()
        var first = OpenAIProvider.Configuration(base: base ?? fake.url + "/v1", key: "k-secret", model: "small")
        first.hasBatches = true  // they are used where the database was told of them
        let openai = OpenAIProvider(first, client: client)
        var configuration = AnthropicProvider.Configuration(key: "k-secret", model: "large")
        configuration.base = fake.url
        configuration.hasBatches = true
        let anthropic = AnthropicProvider(configuration, client: client)
        var options = AIService.Options()
        options.pause = .milliseconds(10)
        options.batchPause = .milliseconds(10) ... .milliseconds(20)
        change(&options)
        var supervision = Supervisor.Options()
        supervision.retryShare = 1
        supervision.breaker.failures = 1000
        let pool = Pool(database.options, size: 4)
        let service = AIService(
            options, pool: pool,
            providers: onlyAnthropic ? [anthropic] : anthropicToo ? [openai, anthropic] : [openai],
            supervisor: supervisor ?? Supervisor(supervision, log: .silent), log: .silent)
        let purposes = try await AIAdmin.purposes(on: connection)
        let worker = JobWorker(
            options: JobWorker.Options(database: database.options, name: "ai"),
            handlers: AIService.kinds(purposes).map { kind in
                Handler(
                    kind: kind, queue: "ai",
                    retries: RetryPolicy(attempts: 4, base: .milliseconds(1), cap: .milliseconds(2))
                ) { args, context in try await service.run(args, context) }
            } + [
                Handler(
                    kind: "ai.batch", queue: "ai",
                    retries: RetryPolicy(attempts: 4, base: .milliseconds(1), cap: .milliseconds(2))
                ) { args, context in try await service.runBatch(args, context) },
                Handler(
                    kind: "ai.forget", queue: "ai",
                    retries: RetryPolicy(attempts: 4, base: .milliseconds(1), cap: .milliseconds(2))
                ) { args, context in try await service.runForget(args, context) },
            ], log: .silent)
        let running = Task { try await worker.run() }
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        worker.drain()
        _ = try await running.value
        client.close()
        return try outcome.get()
    }

    static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }
}

/// What a model that behaves answers for each built-in purpose.
let goodAnswers: [String: String] = [
    "sentiment": #"{"sentiment": "positive", "concern": "none"}"#,
    "flash_card": #"{"question": "Which game has knights that jump over others?"}"#,
    "hobby_intro": #"{"title": "Chess", "intro": "A game for two."}"#,
    "coaching_tip": #"{"tip": "Eat together.", "action": "Set the table."}"#,
    "conversation_tone": #"{"score": 0.5, "tone": "warm"}"#,
    "document_analysis":
        #"{"summary": "About cells.", "key_points": ["Cells divide."], "questions": [{"question": "What divides?", "answer": "Cells."}]}"#,
]

func withAI(
    _ behaviour: @escaping @Sendable (FakeModels.Asked) -> FakeModels.Behaviour = { _ in
        .answer(goodAnswers["sentiment"] ?? "")
    }, template: Template = .migrated, _ body: (AIBench) async throws -> Void
) async throws {
    try await withDatabase(template) { database in
        let connection = try await database.connect()
        let fake = try FakeModels(behaviour)
        defer { fake.stop() }
        try await body(AIBench(database: database, connection: connection, fake: fake))
        await connection.close()
    }
}
