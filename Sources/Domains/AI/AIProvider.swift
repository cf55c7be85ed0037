package import Supervision
import Synchronization

/// A service with language models, by the format in which it is asked.
package protocol AIProvider: Sendable {
    /// As the supervisor and `millrace providers` call it.
    var name: String { get }
    /// `openai` or `anthropic`.
    var wire: String { get }
    /// The model that is asked when nobody names another.
    var model: String { get }

    /// The request's body, as it goes out.
    func body(_ question: AIRequest) -> [UInt8]

    /// - Throws: a `Fault` when there is no answer.
    func ask(_ body: [UInt8], _ limits: AILimits, meter: AIMeter, call: Call) async throws -> AIReply
}

/// What is asked of a model.
package struct AIRequest: Sendable {
    package var instructions: String
    package var prompt: String
    /// The JSON schema of the answer.
    package var schema: String
    package var model: String
    package var maxTokens: Int

    package init(instructions: String, prompt: String, schema: String, model: String, maxTokens: Int) {
        self.instructions = instructions
        self.prompt = prompt
        self.schema = schema
        self.model = model
        self.maxTokens = maxTokens
    }
}

package struct AILimits: Sendable {
    /// From the call to the end of the answer.
    package var total = Duration.seconds(120)
    /// The longest time without a byte.
    package var stall = Duration.seconds(20)

    package init() {}
}

/// A model's answer, whole.
package struct AIReply: Sendable, Equatable {
    package enum End: Sendable, Equatable {
        case whole
        /// It reached the bound of tokens.
        case cut
        /// The model, or a filter before it, does not want to answer.
        case refused
    }

    package var text: String
    package var end: End
}

/// What is known of a call while it runs, and when it ends badly: the tokens that the provider told, and how much has come.
package final class AIMeter: Sendable {
    package struct Reading: Sendable, Equatable {
        package var tokensIn: Int?
        package var tokensOut: Int?
        /// The provider has begun to work on an answer, so the call may cost something.
        package var hasBegun = false
        package var characters = 0
    }

    /// A figure above this is no count of tokens. The database believes no more either.
    static let mostTokens = 10_000_000

    private let state = Mutex(Reading())
    private let onProgress: @Sendable (Int) -> Void

    package init(onProgress: @escaping @Sendable (Int) -> Void = { _ in }) { self.onProgress = onProgress }

    package var reading: Reading { state.withLock { $0 } }

    func begin() { state.withLock { $0.hasBegun = true } }

    func told(tokensIn: Int? = nil, tokensOut: Int? = nil) {
        state.withLock { state in
            state.tokensIn = tokensIn ?? state.tokensIn
            state.tokensOut = tokensOut ?? state.tokensOut
        }
    }

    func came(_ characters: Int) {
        let all = state.withLock { state in
            state.characters += characters
            return state.characters
        }
        onProgress(all)
    }
}
