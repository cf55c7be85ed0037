package import Pages
package import Sandbox

/// Why a stage failed.
package struct DocumentFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package var reason: Reason
    /// For an operator; it contains nothing from the document.
    package var sentence: String
    /// Whether a retry may succeed: a program crashed or was killed, but the document may be readable.
    package var mayGoWell: Bool
    package var isCancelled = false
    /// A program was killed from outside, or the machine was too busy for it. That says nothing about the document.
    package var isKilled: Bool { reason == .killed }
    package var usage: Usage

    package init(_ refusal: DocumentRefusal, mayGoWell: Bool = false, usage: Usage = Usage()) {
        reason = refusal.reason
        sentence = refusal.sentence
        self.mayGoWell = mayGoWell
        self.usage = usage
    }

    package var description: String { "\(reason.rawValue): \(sentence)" }

    package init(_ failure: ChildFailure) {
        let reason: Reason
        switch failure.reason {
        case .refused(let word): reason = Reason(rawValue: word) ?? .malformed
        case .memory: reason = .memory
        case .cpu, .timeout: reason = .timeout
        case .fileSize: reason = .tooLarge
        case .misspoke, .crash, .exited: reason = .crash
        case .killed, .starved: reason = .killed
        case .cancelled, .cannotStart: reason = .internal
        }
        self.init(DocumentRefusal(reason, failure.sentence), mayGoWell: !failure.isDeterministic, usage: failure.usage)
        isCancelled = failure.reason == .cancelled
    }
}

/// A document was not fetched, because nothing is fetched from its place now: it may be after `wait`.
package struct FetchRefusal: Error, Sendable, Equatable {
    package var wait: Duration

    package init(wait: Duration) {
        self.wait = wait
    }
}

/// The result of a stage, and what it used.
package struct Worked<Value: Sendable>: Sendable {
    package var value: Value
    package var usage: Usage
    /// The layers of the child's sandbox that the kernel refused.
    package var refusedLayers: UInt32 = 0

    package init(_ value: Value, _ usage: Usage, refusedLayers: UInt32 = 0) {
        self.value = value
        self.usage = usage
        self.refusedLayers = refusedLayers
    }
}
