import Faults
import JSON
package import Supervision
package import Transfers

/// Messages as Anthropic has them. The answer is the input of a tool that the model is made to call.
package struct AnthropicProvider: AIProvider {
    package struct Configuration: Sendable {
        package var base = "https://api.anthropic.com"
        package var key: String
        package var model: String
        package var hasBatches = false

        package init(key: String, model: String) {
            self.key = key
            self.model = model
        }
    }

    package let name: String
    package let wire = "anthropic"
    package var model: String { configuration.model }
    let configuration: Configuration
    let transfer: AITransfer

    package init(_ configuration: Configuration, name: String = "anthropic", client: HTTPClient) {
        self.name = name
        self.configuration = configuration
        transfer = AITransfer(client: client)
    }

    package func body(_ question: AIRequest) -> [UInt8] { Array(document(question, streams: true).compact.utf8) }

    func document(_ question: AIRequest, streams: Bool) -> JSONValue {
        let stream: [JSONValue.Member] = [.init(key: "stream", value: true)]
        return .object(
            [.init(key: "model", value: .string(question.model))] + (streams ? stream : []) + [
                .init(key: "max_tokens", value: .int(question.maxTokens)),
                .init(key: "system", value: .string(question.instructions)),
                .init(key: "messages", value: [["role": "user", "content": .string(question.prompt)]]),
                .init(
                    key: "tools",
                    value: [
                        [
                            "name": "answer", "description": "Gives the answer.", "input_schema": .raw(question.schema),
                        ]
                    ]),
                .init(key: "tool_choice", value: ["type": "tool", "name": "answer"]),
            ])
    }

    package func ask(_ body: [UInt8], _ limits: AILimits, meter: AIMeter, call: Call) async throws -> AIReply {
        var request = AITransfer.request(configuration.base, "/v1/messages", body)
        request.headers.add("anthropic-version", "2023-06-01")
        request.headers.add("x-api-key", configuration.key)
        var reply = AIReply(text: "", end: .whole)
        var stop: String?
        try await transfer.run(request, limits, meter: meter, call: call) { event in
            let said = try JSONValue.read(event.data)
            switch said["type"]?.text {
            case "error": throw AIPace.fault(inStream: said["error"] ?? .null)
            case "message_start": meter.told(tokensIn: Self.inputs(said["message"]?["usage"]))
            case "content_block_delta":
                // Text beside the tool's input is no part of the answer.
                guard let text = said["delta"]?["partial_json"]?.text else { break }
                reply.text += text
                meter.came(text.count)
            case "message_delta":
                stop = said["delta"]?["stop_reason"]?.text ?? stop
                if let tokens = said["usage"]?["output_tokens"]?.integer { meter.told(tokensOut: tokens) }
            case "message_stop": return stop != nil
            default: break
            }
            return false
        }
        switch stop {
        case "refusal": reply.end = .refused
        case "max_tokens": reply.end = .cut
        default: break
        }
        return reply
    }

    /// What is read from a cache, or written into it, is counted apart. nil: not told, or not to be believed.
    static func inputs(_ usage: JSONValue?) -> Int? {
        guard let plain = usage?["input_tokens"]?.integer else { return nil }
        var sum = 0
        for part in [
            plain, usage?["cache_creation_input_tokens"]?.integer ?? 0, usage?["cache_read_input_tokens"]?.integer ?? 0,
        ] {
            guard part >= 0, part <= AIMeter.mostTokens else { return nil }
            sum += part
        }
        return sum
    }
}

extension AnthropicProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "a provider of the format anthropic" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
