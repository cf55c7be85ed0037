import Faults
import JSON
import MillraceJobs
import Postgres
import Supervision
import Synchronization
import Threads

/// One run of a question: its calls, each paid for before it is made.
struct AIRun: Sendable {
    enum Outcome: Sendable {
        case recorded
        /// No tokens are left, but calls that run now may give some back.
        case waits
        case quota
        case refused
        case unfit(String)
        case notCalled(CallRefusal)
        case fault(Fault)

        /// A model was asked, and gave no answer that can be used.
        var isVerdict: Bool {
            switch self {
            case .refused, .unfit: true
            case .recorded, .waits, .quota, .notCalled, .fault: false
            }
        }

        /// Whether another model may do better.
        var mayAskElsewhere: Bool {
            switch self {
            case .refused, .unfit, .notCalled: true
            case .fault(let fault):
                fault.kind.retry == .elsewhere
                    || [.notFound, .unsupported, .tooLarge, .permission].contains(fault.kind)
            case .recorded, .waits, .quota: false
            }
        }
    }

    let question: AIQuestion
    let service: AIService
    let context: Context

    /// Asks one model, and once more if its answer does not fit.
    func ask(_ provider: any AIProvider, _ request: AIRequest) async throws -> Outcome {
        let first = try await askOnce(provider, request)
        guard case .unfit(let problem) = first else { return first }
        var again = request
        again.prompt +=
            "\n\nAn earlier answer did not fit the schema: \(problem). Answer with nothing but JSON that fits it."
        return try await askOnce(provider, again)
    }

    private func askOnce(_ provider: any AIProvider, _ request: AIRequest) async throws -> Outcome {
        let body = provider.body(request)
        let meter = AIMeter { [context] characters in
            context.progress(stage: "asking \(provider.name)", note: "\(characters) characters")
        }
        var limits = service.options.limits
        if let seconds = question.limits["timeout_seconds"]?.integer {
            limits.total = .seconds(seconds)
        }
        let began = ContinuousClock.now
        let paid = Mutex<String?>(nil)
        do {
            let (reply, call) = try await service.supervisor.call(
                provider.name, deadline: limits.total, isRetry: context.attempt > 1
            ) { [limits] call in
                // Only a call that is made is paid for.
                let opened = try await open(request, of: provider, bytes: body.count)
                guard let id = opened.call else { throw Unpaid(waits: opened.waits) }
                paid.withLock { $0 = id }
                return (try await provider.ask(body, limits, meter: meter, call: call), id)
            }
            return try await judge(reply, call, meter, took: .now - began, provider: provider, model: request.model)
        } catch let refusal as CallRefusal {
            return .notCalled(refusal)
        } catch let unpaid as Unpaid {
            return unpaid.waits ? .waits : .quota
        } catch let fault as Fault {
            if let call = paid.withLock({ $0 }) {
                try await close(
                    call, meter.reading.hasBegun ? "unknown" : "failed", meter, fault.kind, fault.description,
                    took: .now - began)
            }
            // A lost run, or a drain: the next run of the job asks again.
            if Task.isCancelled { throw CancellationError() }
            return .fault(fault)
        }
    }

    /// The account has too few tokens left.
    private struct Unpaid: Error {
        var waits: Bool
    }

    private func open(
        _ request: AIRequest, of provider: any AIProvider, bytes: Int
    ) async throws -> (call: String?, waits: Bool) {
        let token = context.token
        // A time limit that comes meanwhile must not leave a call behind that nobody knows.
        return try await uncancelled { [question, service] in
            try await service.pool.withConnection { connection in
                try await AIStore.open(
                    question.id, token: token, provider: provider.name, model: request.model, bytes: bytes,
                    maxTokens: request.maxTokens, on: connection)
            }
        }
    }

    private func judge(
        _ reply: AIReply, _ call: String, _ meter: AIMeter, took: Duration, provider: any AIProvider, model: String
    ) async throws -> Outcome {
        if reply.end == .refused {
            try await close(call, "refused", meter, .permission, "the model declined to answer", took: took)
            return .refused
        }
        try await close(call, "answered", meter, nil, nil, took: took)
        let problem: String?
        if reply.end == .cut {
            problem = "it is longer than \(reply.text.count) characters, and was cut"
        } else if let complaint = Self.complaint(Self.bare(reply.text)) {
            problem = complaint
        } else {
            problem = try await record(Self.bare(reply.text), call, provider: provider, model: model)
        }
        return problem.map { .unfit($0) } ?? .recorded
    }

    private func record(_ answer: String, _ call: String, provider: any AIProvider, model: String) async throws
        -> String?
    {
        let token = context.token
        return try await service.pool.withConnection { [question] connection in
            try await AIStore.answer(
                question.id, token: token, call: call, answer: answer, provider: provider.name, model: model,
                on: connection)
        }
    }

    /// Some models write a fence around their JSON.
    static func bare(_ text: String) -> String {
        guard let start = text.firstIndex(where: { !$0.isWhitespace }), text[start...].hasPrefix("```") else {
            return text
        }
        guard let open = text.firstIndex(of: "{"), let close = text.lastIndex(of: "}"), open < close else {
            return text
        }
        return String(text[open...close])
    }

    /// Stricter than the database: it says where, and keeps what nests too deeply from it.
    static func complaint(_ text: String) -> String? {
        var reader = JSONReader(Array(text.utf8), rules: .init(deepest: 64, allowsRepeatedKeys: false))
        do throws(JSONProblem) {
            _ = try reader.document()
            return nil
        } catch {
            return "it is not JSON: \(error.complaint)"
        }
    }

    /// Without figures of the provider, a call that may have cost something costs what was reserved.
    private func close(
        _ call: String, _ outcome: String, _ meter: AIMeter, _ kind: ErrorClass?, _ error: String?, took: Duration
    ) async throws {
        let reading = meter.reading
        var ending = AIStore.Ending(outcome: outcome, errorClass: kind?.rawValue, error: error, took: took)
        if let tokensIn = reading.tokensIn, let tokensOut = reading.tokensOut {
            (ending.tokensIn, ending.tokensOut) = (tokensIn, tokensOut)
        } else if !reading.hasBegun {
            (ending.tokensIn, ending.tokensOut) = (0, 0)
        }
        let closing = ending
        // What it did cost is recorded also when the run is cancelled.
        try await uncancelled { [service] in
            try await service.pool.withConnection { try await AIStore.close(call, closing, on: $0) }
        }
    }

    func fail(_ status: String, _ reason: String, _ sentence: String) async throws {
        let token = context.token
        try await service.pool.withConnection { [question] connection in
            try await AIStore.fail(
                question.id, token: token, status: status, reason: reason, sentence: sentence, on: connection)
        }
    }
}
