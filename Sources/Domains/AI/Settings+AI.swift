package import SettingsKit

extension Setting {
    package static let ai: [Setting] = [
        aiOpenAIURL, aiOpenAIKey, aiOpenAIModel, aiAnthropicURL, aiAnthropicKey, aiAnthropicModel, aiOrder, aiTimeout,
        aiStall, aiKeep, aiSlots, aiBatches,
    ]

    package static let aiOpenAIURL = Setting(
        "ai-openai-url", .custom(expects: "a URL such as https://api.openai.com/v1", complaint: webComplaint),
        fallback: "https://api.openai.com/v1", valueName: "URL",
        help: "The server to ask in OpenAI's format; llama.cpp, Ollama and vLLM speak it too.")
    package static let aiOpenAIKey = Setting(
        "ai-openai-key", .text, secrecy: .hidden, valueName: "KEY", help: "Its key; some servers want none.")
    package static let aiOpenAIModel = Setting(
        "ai-openai-model", .custom(expects: "a model's name", complaint: modelComplaint), valueName: "MODEL",
        help: "The model to ask there. Without one this format is not used.")
    package static let aiAnthropicURL = Setting(
        "ai-anthropic-url", .custom(expects: "a URL such as https://api.anthropic.com", complaint: webComplaint),
        fallback: "https://api.anthropic.com", valueName: "URL", help: "The server to ask in Anthropic's format."
    )
    package static let aiAnthropicKey = Setting(
        "ai-anthropic-key", .text, secrecy: .hidden, valueName: "KEY", help: "Its key.")
    package static let aiAnthropicModel = Setting(
        "ai-anthropic-model", .custom(expects: "a model's name", complaint: modelComplaint), valueName: "MODEL",
        help: "The model to ask there. Without one this format is not used.")
    package static let aiOrder = Setting(
        "ai-order", .choice(["openai,anthropic", "anthropic,openai"]), fallback: "openai,anthropic",
        valueName: "ORDER", help: "Which is asked first if both are configured; the other stands in.")
    package static let aiTimeout = Setting(
        "ai-timeout", .duration(.seconds(1) ... .seconds(3600)), fallback: "120s", valueName: "DURATION",
        help: "How long one answer may take.")
    package static let aiStall = Setting(
        "ai-stall", .duration(.seconds(1) ... .seconds(600)), fallback: "20s", valueName: "DURATION",
        help: "How long an answer may stall.")
    package static let aiKeep = Setting(
        "ai-keep", .duration(.seconds(86_400) ... .seconds(86_400 * 3650)), fallback: "30d", valueName: "DURATION",
        help: "How long questions and answers are kept, and reused for identical questions; in whole days.")
    package static let aiSlots = Setting(
        "ai-slots", .integer(1...1000), fallback: "8", valueName: "N", help: "How many questions a worker asks at once."
    )

    package static let aiBatches = Setting(
        "ai-batches", .choice(["auto", "off", "on"]), fallback: "auto", valueName: "WHEN",
        help:
            "Whether questions that may wait are asked in batches: auto: with api.openai.com and api.anthropic.com; on: with every server."
    )

    private static func modelComplaint(_ text: String) -> String? {
        (1...200).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            ? nil : "takes a model's name without spaces"
    }
}

extension Settings {
    /// Whether the server at `url` is asked in batches.
    package func aiHasBatches(_ url: String) -> Bool {
        switch string(.aiBatches) {
        case "on": true
        case "off": false
        default: ["https://api.openai.com/", "https://api.anthropic.com/"].contains { (url + "/").hasPrefix($0) }
        }
    }

    /// The formats in which this worker can ask, in their order.
    package var aiFormats: [String] {
        let formats = [("openai", Setting.aiOpenAIModel), ("anthropic", Setting.aiAnthropicModel)]
            .filter { text($0.1) != nil }.map(\.0)
        return string(.aiOrder).hasPrefix("anthropic") ? formats.reversed() : formats
    }
}
