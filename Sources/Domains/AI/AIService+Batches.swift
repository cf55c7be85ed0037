import Faults
import JSON
package import MillraceJobs
import Postgres
import Supervision

/// Jobs of the kind `ai.batch`: one gathers the questions that may wait, and one sends each batch and reads its results.
extension AIService {
    package func runBatch(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        let named = try? JSONValue.read(args)
        if let provider = named?["provider"]?.text {
            guard let batching = batching(provider) else { return Self.notHere(provider) }
            return try await gather(batching, context)
        }
        guard let batch = named?["batch"]?.text else { return .discard("the arguments name no provider and no batch") }
        let token = context.token
        let taken = try await pool.withConnection { try await AIBatchStore.take(token, batch, on: $0) }
        guard taken.what != "done" else { return .done }
        guard let provider = batching(taken.provider) else { return Self.notHere(taken.provider) }
        let run = AIBatchRun(id: batch, provider: provider, service: self, context: context)
        return try await taken.what == "send" ? run.send(taken) : run.look(taken)
    }

    private func batching(_ name: String) -> (any AIBatching)? {
        let provider = providers.first { $0.name == name } as? any AIBatching
        return provider.flatMap { $0.hasBatches ? $0 : nil }
    }

    private static func notHere(_ provider: String) -> Verdict {
        .retry(after: .seconds(60), reason: "this worker has no batches of \(provider)")
    }

    /// A provider takes only one model in a batch.
    private func gather(_ provider: any AIBatching, _ context: Context) async throws -> Verdict {
        let token = context.token
        var last: Int64 = 0
        var groups: [String: (calls: [JSONValue], bytes: Int)] = [:]
        while true {
            let after = last
            let next = try await pool.withConnection { connection in
                try await AIBatchStore.next(token, provider: provider.name, after: after, most: 200, on: connection)
            }
            guard let end = next.last else { break }
            last = end.seq
            for question in next.compactMap(\.question) {
                let (model, call, bytes) = plan(question, provider)
                groups[model, default: ([], 0)].calls.append(call)
                groups[model, default: ([], 0)].bytes += bytes
                if let group = groups[model], group.calls.count >= options.mostInBatch || group.bytes > 32 << 20 {
                    try await open(group.calls, provider, token)
                    groups[model] = nil
                }
            }
        }
        for model in groups.keys.sorted() { try await open(groups[model]?.calls ?? [], provider, token) }
        return .done
    }

    /// One whose prompt cannot be rendered goes the single way, which says so.
    private func plan(
        _ question: AIQuestion, _ provider: any AIBatching
    ) -> (model: String, call: JSONValue, bytes: Int) {
        let routes = AIRoutes([(provider.name, provider.model)], wanted: question.model).routes
        let model = routes.first?.model ?? provider.model
        guard var request = try? Self.request(question) else {
            return (model, ["question": .string(question.id), "single": true], 0)
        }
        request.model = model
        let bytes = provider.batchBody(request).count
        return (
            model,
            [
                "question": .string(question.id), "model": .string(model), "bytes": .int(bytes),
                "max_tokens": .int(request.maxTokens),
            ], bytes
        )
    }

    private func open(_ calls: [JSONValue], _ provider: any AIBatching, _ token: String) async throws {
        try await pool.withConnection { connection in
            try await AIBatchStore.open(token, provider: provider.name, calls: calls, on: connection)
        }
    }
}
