/// One thing the doctor looked at.
struct Check: Sendable {
    enum Result: Sendable, Equatable {
        case ok(String)
        case warning(String, advice: String)
        case problem(String, advice: String)

        var severity: Severity {
            switch self {
            case .ok: .ok
            case .warning: .degraded
            case .problem: .critical
            }
        }

        var word: String {
            switch self {
            case .ok: "ok"
            case .warning: "warning"
            case .problem: "problem"
            }
        }

        var sentence: String {
            switch self {
            case .ok(let sentence), .warning(let sentence, _), .problem(let sentence, _): sentence
            }
        }

        var advice: String? {
            switch self {
            case .ok: nil
            case .warning(_, let advice), .problem(_, let advice): advice
            }
        }
    }

    let name: String
    let result: Result

    var json: JSONValue {
        [
            "check": .string(name), "result": .string(result.word), "sentence": .string(result.sentence),
            "advice": JSONValue(result.advice),
        ]
    }
}
