import Faults
import JSON
import Supervision
import Transfers

/// One request has them all. A batch has no place for a name of ours, so one that was perhaps sent cannot be found.
extension AnthropicProvider: AIBatching {
    var hasBatches: Bool { configuration.hasBatches }

    func batchBody(_ question: AIRequest) -> [UInt8] { Array(document(question, streams: false).compact.utf8) }

    func send(
        _ requests: [AIBatchRequest], batch: String, call: Call,
        uploaded: @Sendable (_ file: String) async throws -> Void
    ) async throws -> String {
        let list = requests.map { request -> JSONValue in
            ["custom_id": .string(request.call), "params": .raw(String(decoding: request.body, as: UTF8.self))]
        }
        let body = JSONValue.object([.init(key: "requests", value: .array(list))])
        let request = batchRequest("POST", "", Array(body.compact.utf8))
        return try AIBatchLines.id(try await transfer.document(request, call: call)["id"])
    }

    func find(_ batch: String, call: Call) async throws -> AIBatchFinding { .unknown }

    func look(_ remote: String, call: Call) async throws -> AIBatchState {
        let batch = try await transfer.document(batchRequest("GET", "/\(remote)"), call: call)
        // The address that the answer names is not used: the key goes to the server that is configured.
        return batch["processing_status"]?.text == "ended" ? .ended([remote]) : .underWay
    }

    func results(_ files: [String], call: Call) async throws -> [AIBatchResult] {
        var results: [AIBatchResult] = []
        for remote in files {
            let bytes = try await transfer.whole(batchRequest("GET", "/\(remote)/results"), call: call)
            results += AIBatchLines.read(bytes).map(Self.result)
        }
        return results
    }

    func forget(_ remote: String, call: Call) async throws {
        try await transfer.delete(batchRequest("DELETE", "/\(remote)"), call: call)
    }

    /// A batch has no files here.
    func forgetFile(_ file: String, call: Call) async throws {}

    private static func result(_ line: JSONValue) -> AIBatchResult {
        var result = AIBatchResult(call: line["custom_id"]?.text ?? "")
        guard line["result"]?["type"]?.text == "succeeded", let message = line["result"]?["message"] else {
            if line["result"]?["type"]?.text == "expired" { result.kind = .timeout }
            return result
        }
        result.tokensIn = inputs(message["usage"])
        result.tokensOut = message["usage"]?["output_tokens"]?.integer
        let tool = message["content"]?.items?.first { $0["type"]?.text == "tool_use" }
        var reply = AIReply(text: tool?["input"]?.compact ?? "", end: .whole)
        if message["stop_reason"]?.text == "max_tokens" { reply.end = .cut }
        if message["stop_reason"]?.text == "refusal" { reply.end = .refused }
        result.reply = reply
        return result
    }

    private func batchRequest(_ method: String, _ path: String, _ body: [UInt8]? = nil) -> HTTPRequest {
        var request = AITransfer.batchRequest(
            method, configuration.base, "/v1/messages/batches" + path, body, type: "application/json")
        request.headers.add("anthropic-version", "2023-06-01")
        request.headers.add("x-api-key", configuration.key)
        return request
    }
}
