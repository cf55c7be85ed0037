package import JSON

/// One thing the doctor looked at.
public struct Check: Sendable {
    /// How it is, in a sentence; and what to do.
    public enum Result: Sendable, Equatable {
        /// All is well.
        case ok(String)
        /// Somebody should look at it.
        case warning(String, advice: String)
        /// Something does not work.
        case problem(String, advice: String)

        package var word: String {
            switch self {
            case .ok: "ok"
            case .warning: "warning"
            case .problem: "problem"
            }
        }

        package var sentence: String {
            switch self {
            case .ok(let sentence), .warning(let sentence, _), .problem(let sentence, _): sentence
            }
        }

        package var advice: String? {
            switch self {
            case .ok: nil
            case .warning(_, let advice), .problem(_, let advice): advice
            }
        }
    }

    package let subject: String
    package let result: Result

    package init(_ subject: String, result: Result) {
        self.subject = subject
        self.result = result
    }

    package var json: JSONValue {
        [
            "check": .string(subject), "result": .string(result.word), "sentence": .string(result.sentence),
            "advice": JSONValue(result.advice),
        ]
    }
}
