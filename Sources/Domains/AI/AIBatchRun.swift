import Faults
import JSON
import MillraceJobs
import Postgres
import Supervision
import Telemetry

/// One run of the job of a batch.
struct AIBatchRun: Sendable {
    let id: String
    let provider: any AIBatching
    let service: AIService
    let context: Context

    /// Sends the batch. That it may be with the provider is on record before it leaves.
    func send(_ taken: AIBatchStore.Taken) async throws -> Verdict {
        let token = context.token
        do {
            if taken.isAgain {
                switch try await call({ [provider, id] call in try await provider.find(id, call: call) }) {
                case .found(let remote): return try await sent(remote)
                case .absent: break
                case .unknown:
                    service.log.warning(
                        "nobody knows whether a batch was sent; its questions are asked again, and may cost twice",
                        [("ai.batch", id), ("ai.provider", provider.name)])
                    return try await end("lost")
                }
            }
            let requests = try await requests()
            guard !requests.isEmpty else { return try await end("failed") }
            let remote = try await call(isRetry: context.attempt > 1) { [provider, id, service] call in
                try await service.pool.withConnection { try await AIBatchStore.sending(token, id, true, on: $0) }
                return try await provider.send(requests, batch: id, call: call) { [service] file in
                    try await service.pool.withConnection { connection in
                        try await AIBatchStore.uploaded(token, id, file, on: connection)
                    }
                }
            }
            return try await sent(remote)
        } catch let refusal as CallRefusal {
            return .snooze(for: refusal.pause(atMost: .seconds(300)))
        } catch let fault as Fault {
            return try await notSent(fault)
        }
    }

    private func notSent(_ fault: Fault) async throws -> Verdict {
        // A lost run, or a drain: the next run looks whether it was sent.
        if Task.isCancelled { throw CancellationError() }
        switch fault.kind {
        case .throttled, .unavailable:
            let token = context.token
            try await service.pool.withConnection { [id] in
                try await AIBatchStore.sending(token, id, false, on: $0)
            }
        case .transient, .timeout, .unknown, .cancelled: break
        case .quota, .authentication, .permission, .notFound, .conflict, .invalid, .tooLarge, .unsupported,
            .internal:
            service.log.warning(
                "the provider takes no batch; its questions are asked one by one",
                [("ai.batch", id), ("ai.provider", provider.name), ("error", fault.description)])
            return try await end("failed")
        }
        return .retry(after: fault.wait ?? service.options.batchPause.lowerBound, reason: fault.description)
    }

    private func sent(_ remote: String) async throws -> Verdict {
        let token = context.token
        try await service.pool.withConnection { [id] in try await AIBatchStore.sent(token, id, remote, on: $0) }
        return .snooze(for: service.options.batchPause.lowerBound)
    }

    private func requests() async throws -> [AIBatchRequest] {
        let token = context.token
        let calls = try await service.pool.withConnection { [id] in try await AIBatchStore.calls(token, id, on: $0) }
        return calls.compactMap { one in
            guard var request = try? AIService.request(one.question) else { return nil }
            request.model = one.model
            return AIBatchRequest(call: one.call, body: provider.batchBody(request))
        }
    }

    /// Looks whether it has ended. A day has passed twice: the questions have been asked one by one meanwhile.
    func look(_ taken: AIBatchStore.Taken) async throws -> Verdict {
        if taken.age > 2 * 86_400 { return try await end("lost") }
        let pause = service.options.batchPause
        let next = min(max(pause.lowerBound, .seconds(taken.age / 10)), pause.upperBound)
        do {
            switch try await call({ [provider] call in try await provider.look(taken.remote, call: call) }) {
            case .underWay: return .snooze(for: next)
            case .failed: return try await end("failed")
            case .ended(let files):
                try await record(
                    try await call { [provider] call in try await provider.results(files, call: call) })
                return try await end("ended")
            }
        } catch let refusal as CallRefusal {
            return .snooze(for: refusal.pause(atMost: .seconds(300)))
        } catch let fault as Fault {
            if Task.isCancelled { throw CancellationError() }
            if fault.kind == .notFound { return try await end("lost") }
            service.log.debug("cannot look at a batch", [("ai.batch", id), ("error", fault.description)])
            return .snooze(for: max(fault.wait ?? next, next))
        }
    }

    private func record(_ results: [AIBatchResult]) async throws {
        let token = context.token
        let documents = results.compactMap(\.document)
        for start in stride(from: 0, to: documents.count, by: 50) {
            let part = Array(documents[start..<min(start + 50, documents.count)])
            try await service.pool.withConnection { [id] in try await AIBatchStore.record(token, id, part, on: $0) }
        }
    }

    /// From here on a job of the kind `ai.forget` deletes at the provider what it was asked and has answered.
    private func end(_ status: String) async throws -> Verdict {
        let token = context.token
        try await service.pool.withConnection { [id] in try await AIBatchStore.end(token, id, status, on: $0) }
        return .done
    }

    /// Looking is no retry: it takes nothing of their budget.
    private func call<Value: Sendable>(
        isRetry: Bool = false, _ body: @escaping @Sendable (Call) async throws -> Value
    ) async throws -> Value {
        try await service.supervisor.call(provider.name, deadline: .seconds(300), isRetry: isRetry) {
            try await body($0)
        }
    }
}
