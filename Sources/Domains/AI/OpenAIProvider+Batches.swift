import Faults
import JSON
import Supervision
import Transfers

/// A file with the requests, a batch of that file, and one or two files with the results.
extension OpenAIProvider: AIBatching {
    var hasBatches: Bool { configuration.hasBatches }

    func batchBody(_ question: AIRequest) -> [UInt8] { Array(document(question, streams: false).compact.utf8) }

    func send(
        _ requests: [AIBatchRequest], batch: String, call: Call,
        uploaded: @Sendable (_ file: String) async throws -> Void
    ) async throws -> String {
        let file = try await upload(requests, batch: batch, call: call)
        try await uploaded(file)
        let body: JSONValue = [
            "input_file_id": .string(file), "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "metadata": ["millrace_batch": .string(batch)],
        ]
        let request = batchRequest("POST", "/batches", Array(body.compact.utf8))
        return try AIBatchLines.id(try await transfer.document(request, call: call)["id"])
    }

    private func upload(_ requests: [AIBatchRequest], batch: String, call: Call) async throws -> String {
        let mark = "millrace-\(batch)"
        var body = Array(
            "--\(mark)\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--\(mark)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(mark).jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n"
                .utf8)
        for request in requests {
            let line: JSONValue = [
                "custom_id": .string(request.call), "method": "POST", "url": "/v1/chat/completions",
                "body": .raw(String(decoding: request.body, as: UTF8.self)),
            ]
            body += Array(line.compact.utf8) + [UInt8(ascii: "\n")]
        }
        body += Array("\r\n--\(mark)--\r\n".utf8)
        let request = batchRequest("POST", "/files", body, type: "multipart/form-data; boundary=\(mark)")
        return try AIBatchLines.id(try await transfer.document(request, call: call)["id"])
    }

    func find(_ batch: String, call: Call) async throws -> AIBatchFinding {
        var after = ""
        for _ in 0..<20 {
            let page = try await transfer.document(batchRequest("GET", "/batches?limit=100\(after)"), call: call)
            let listed = page["data"]?.items ?? []
            for one in listed where one["metadata"]?["millrace_batch"]?.text == batch {
                return .found(try AIBatchLines.id(one["id"]))
            }
            guard page["has_more"] == .bool(true), let last = listed.last else { return .absent }
            after = "&after=\(try AIBatchLines.id(last["id"]))"
        }
        return .unknown
    }

    func look(_ remote: String, call: Call) async throws -> AIBatchState {
        let batch = try await transfer.document(batchRequest("GET", "/batches/\(remote)"), call: call)
        switch batch["status"]?.text {
        case "completed", "expired", "cancelled":
            return .ended(
                try [batch["output_file_id"], batch["error_file_id"]]
                    .filter { $0?.text != nil }.map { try AIBatchLines.id($0) })
        case "failed": return .failed
        default: return .underWay
        }
    }

    func results(_ files: [String], call: Call) async throws -> [AIBatchResult] {
        var results: [AIBatchResult] = []
        for file in files {
            let bytes = try await transfer.whole(batchRequest("GET", "/files/\(file)/content"), call: call)
            results += AIBatchLines.read(bytes).map(Self.result)
        }
        return results
    }

    /// A batch that is not known any more has nothing to delete.
    func forget(_ remote: String, call: Call) async throws {
        let batch: JSONValue
        do {
            batch = try await transfer.document(batchRequest("GET", "/batches/\(remote)"), call: call)
        } catch let fault as Fault where fault.kind == .notFound {
            return
        }
        for key in ["input_file_id", "error_file_id", "output_file_id"] where batch[key]?.text != nil {
            try await delete(try AIBatchLines.id(batch[key]), call: call)
        }
    }

    func forgetFile(_ file: String, call: Call) async throws { try await delete(file, call: call) }

    private func delete(_ file: String, call: Call) async throws {
        try await transfer.delete(batchRequest("DELETE", "/files/\(file)"), call: call)
    }

    private static func result(_ line: JSONValue) -> AIBatchResult {
        var result = AIBatchResult(call: line["custom_id"]?.text ?? "")
        guard let response = line["response"], response["status_code"]?.integer == 200, let body = response["body"],
            let choice = body["choices"]?.items?.first
        else {
            if line["error"]?["code"]?.text == "batch_expired" { result.kind = .timeout }
            return result
        }
        result.tokensIn = body["usage"]?["prompt_tokens"]?.integer
        result.tokensOut = body["usage"]?["completion_tokens"]?.integer
        var reply = AIReply(text: choice["message"]?["content"]?.text ?? "", end: .whole)
        if choice["finish_reason"]?.text == "length" { reply.end = .cut }
        if choice["finish_reason"]?.text == "content_filter" || !(choice["message"]?["refusal"]?.text ?? "").isEmpty {
            reply.end = .refused
        }
        result.reply = reply
        return result
    }

    private func batchRequest(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, type: String = "application/json"
    ) -> HTTPRequest {
        var request = AITransfer.batchRequest(method, configuration.base, path, body, type: type)
        if let key = configuration.key { request.headers.add("Authorization", "Bearer \(key)") }
        return request
    }
}
