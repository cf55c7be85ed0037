import Faults
import JSON
package import MillraceJobs
package import Postgres
package import Supervision
package import Telemetry
import Templates

/// Asks the questions of jobs. Asking twice costs tokens and changes nothing else, so a call whose outcome is unknown is made again.
package struct AIService: Sendable {
    package struct Options: Sendable {
        package var limits = AILimits()
        /// The pause when an identical question is being asked, or other calls hold the last tokens.
        package var pause = Duration.milliseconds(500)
        /// Between two looks at a batch: a tenth of its age, within these.
        package var batchPause = Duration.seconds(30)...Duration.seconds(600)
        package var mostInBatch = 1000

        package init() {}
    }

    let options: Options
    let pool: Pool
    let providers: [any AIProvider]
    let supervisor: Supervisor
    let log: Log

    package init(
        _ options: Options = Options(), pool: Pool, providers: [any AIProvider], supervisor: Supervisor, log: Log
    ) {
        self.options = options
        self.pool = pool
        self.providers = providers
        self.supervisor = supervisor
        self.log = log
    }

    /// The kinds of jobs that this service runs. Jobs of purposes that an app adds are of the kind `ai.ask`. The others of `known` are purposes that
    /// were added under an earlier schema, when each had a kind of its own: their jobs may still wait.
    package static func kinds(_ known: [AIAdmin.Purpose]) -> [String] {
        ["ai.ask"] + known.map { "ai.\($0.name)" }.filter { !["ai.ask", "ai.batch", "ai.forget"].contains($0) }
    }

    /// One run of a job that asks.
    package func run(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        guard let question = (try? JSONValue.read(args))?["question"]?.text else {
            return .discard("the arguments name no question")
        }
        let token = context.token
        switch try await pool.withConnection({ try await AIStore.take(question, token: token, on: $0) }) {
        case .done: return .done
        case .busy: return .snooze(for: options.pause)
        case .go(let question): return try await ask(question, context)
        }
    }

    private func ask(_ question: AIQuestion, _ context: Context) async throws -> Verdict {
        let run = AIRun(question: question, service: self, context: context)
        let request: AIRequest
        do throws(TemplateError) {
            request = try Self.request(question)
        } catch {
            return try await end(run, "failed", "invalid", "the prompt cannot be rendered: \(error)")
        }
        let routes = AIRoutes(providers.map { ($0.name, $0.model) }, wanted: question.model).routes
        var last = AIRun.Outcome.fault(Fault(.unavailable, "no provider is configured for this worker"))
        var away: Away?
        for (index, route) in routes.enumerated() {
            var request = request
            request.model = route.model
            last = try await run.ask(providers[route.provider], request)
            away = away ?? Away(last)
            guard last.mayAskElsewhere, index + 1 < routes.count else { break }
            log.debug(
                "asks another model",
                [("ai.purpose", question.purpose), ("ai.provider", providers[route.provider].name)])
        }
        if last.isVerdict, let away, context.attempt < context.maxAttempts {
            try await run.fail("waiting", away.reason, away.sentence)
            return .retry(after: away.wait, reason: away.sentence)
        }
        return try await conclude(run, last)
    }

    /// A provider that could not be asked now, and may do better later than one that answers badly.
    private struct Away {
        var reason: String
        var sentence: String
        var wait: Duration?

        init?(_ outcome: AIRun.Outcome) {
            switch outcome {
            case .notCalled(let refusal):
                (reason, sentence) = (refusal.kind.rawValue, refusal.description)
                wait = refusal.pause()
            case .fault(let fault) where fault.kind.retry != .never:
                (reason, sentence, wait) = (fault.kind.rawValue, fault.what, fault.wait)
            case .fault, .recorded, .waits, .quota, .refused, .unfit: return nil
            }
        }
    }

    private func conclude(_ run: AIRun, _ outcome: AIRun.Outcome) async throws -> Verdict {
        switch outcome {
        case .recorded: return .recorded
        case .waits:
            try await run.fail("waiting", "quota", "other calls hold the last tokens of the account")
            return .snooze(for: options.pause)
        case .quota: return try await end(run, "refused", "quota", "the tokens of this period are used up")
        case .refused: return try await end(run, "refused", "permission", "the model declined to answer this")
        case .unfit(let problem):
            return try await end(run, "failed", "invalid", "the answers do not fit the schema: \(problem)")
        case .notCalled(let refusal):
            try await run.fail("waiting", refusal.kind.rawValue, refusal.description)
            return .snooze(for: refusal.pause())
        case .fault(let fault):
            let canHelp = fault.kind.retry != .never
            guard canHelp, run.context.attempt < run.context.maxAttempts else {
                return try await end(run, "failed", fault.kind.rawValue, fault.what)
            }
            try await run.fail("waiting", fault.kind.rawValue, fault.what)
            return .retry(after: fault.wait, reason: fault.description)
        }
    }

    private func end(_ run: AIRun, _ status: String, _ reason: String, _ sentence: String) async throws -> Verdict {
        try await run.fail(status, reason, sentence)
        return .discard("\(reason): \(sentence)")
    }

    /// Instructions and prompt are templates of text: values are put in as they are, never read as templates.
    static func request(_ question: AIQuestion) throws(TemplateError) -> AIRequest {
        let variables = try Variables(json: question.variables)
        let input = try variables.check(TemplateValue(json: question.input))
        func text(_ part: String, _ source: String) throws(TemplateError) -> String {
            do throws(TemplateError) {
                let template = try Template(source, mode: .text, variables: variables)
                return String(decoding: try template.render(input), as: UTF8.self)
            } catch {
                throw error.inPart(part)
            }
        }
        return AIRequest(
            instructions: try text("instructions", question.instructions),
            prompt: try text("prompt", question.prompt), schema: question.schema, model: "",
            maxTokens: question.limits["max_tokens"]?.integer ?? 1000)
    }
}
