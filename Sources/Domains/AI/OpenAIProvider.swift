import Faults
import JSON
package import Supervision
package import Transfers

/// Chat completions as OpenAI has them, and llama.cpp, Ollama and vLLM after it.
package struct OpenAIProvider: AIProvider {
    package struct Configuration: Sendable {
        /// With the version, such as https://api.openai.com/v1.
        package var base: String
        /// nil for servers that want none.
        package var key: String?
        package var model: String

        /// OpenAI has batches; servers that imitate it mostly have none.
        package var hasBatches = false

        package init(base: String, key: String?, model: String) {
            self.base = base
            self.key = key
            self.model = model
        }
    }

    package let name: String
    package let wire = "openai"
    package var model: String { configuration.model }
    let configuration: Configuration
    let transfer: AITransfer

    package init(_ configuration: Configuration, name: String = "openai", client: HTTPClient) {
        self.name = name
        self.configuration = configuration
        transfer = AITransfer(client: client)
    }

    package func body(_ question: AIRequest) -> [UInt8] { Array(document(question, streams: true).compact.utf8) }

    func document(_ question: AIRequest, streams: Bool) -> JSONValue {
        // OpenAI's own newer models know only the first; servers that imitate it know the second.
        let bound = configuration.base.contains("//api.openai.com") ? "max_completion_tokens" : "max_tokens"
        let stream: [JSONValue.Member] = [
            .init(key: "stream", value: true),
            .init(key: "stream_options", value: ["include_usage": true]),
        ]
        return .object(
            [.init(key: "model", value: .string(question.model))] + (streams ? stream : []) + [
                .init(key: bound, value: .int(question.maxTokens)),
                .init(
                    key: "messages",
                    value: [
                        ["role": "system", "content": .string(question.instructions)],
                        ["role": "user", "content": .string(question.prompt)],
                    ]),
                .init(
                    key: "response_format",
                    value: [
                        "type": "json_schema",
                        "json_schema": ["name": "answer", "strict": false, "schema": .raw(question.schema)],
                    ]),
            ])
    }

    package func ask(_ body: [UInt8], _ limits: AILimits, meter: AIMeter, call: Call) async throws -> AIReply {
        var request = AITransfer.request(configuration.base, "/chat/completions", body)
        if let key = configuration.key { request.headers.add("Authorization", "Bearer \(key)") }
        var reply = AIReply(text: "", end: .whole)
        var finish: String?
        try await transfer.run(request, limits, meter: meter, call: call) { event in
            if event.data == "[DONE]" { return finish != nil }
            let chunk = try JSONValue.read(event.data)
            if let error = chunk["error"], error != .null { throw AIPace.fault(inStream: error) }
            if let usage = chunk["usage"], let tokens = usage["prompt_tokens"]?.integer {
                meter.told(tokensIn: tokens, tokensOut: usage["completion_tokens"]?.integer)
            }
            guard let choice = chunk["choices"]?.items?.first else { return false }
            finish = choice["finish_reason"]?.text ?? finish
            if let text = choice["delta"]?["content"]?.text, !text.isEmpty {
                reply.text += text
                meter.came(text.count)
            }
            if let refusal = choice["delta"]?["refusal"]?.text, !refusal.isEmpty { reply.end = .refused }
            return false
        }
        switch finish {
        case "content_filter": reply.end = .refused
        case "length" where reply.end == .whole: reply.end = .cut
        default: break
        }
        return reply
    }
}

extension OpenAIProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "a provider of the format openai" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
