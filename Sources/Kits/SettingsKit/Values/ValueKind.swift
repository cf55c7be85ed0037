/// A value after reading, before a verb uses it.
package enum Value: Sendable, Equatable {
    case text(String)
    case integer(Int)
    case duration(Duration)
    case boolean(Bool)
}

/// Why a value was refused: the end of a sentence that starts with the flag's or the variable's name.
package struct ValueRefusal: Error, Equatable, CustomStringConvertible {
    package let complaint: String

    package init(complaint: String) {
        self.complaint = complaint
    }

    package var description: String { complaint }
}

/// The values that a flag, an argument or a setting accepts, and their description.
package enum ValueKind: Sendable {
    case text
    /// A file's name; the shells complete it.
    case path
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>)
    case boolean
    /// On as soon as it is set to anything, as `NO_COLOR` is.
    case presence
    case choice([String])
    /// A complaint repeats the value only where it cannot be a secret.
    case custom(expects: String, complaint: @Sendable (String) -> String?)

    package var expectation: String {
        switch self {
        case .text: "a text"
        case .path: "a file name"
        case .integer(let range) where range.upperBound == .max: "a whole number of at least \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .duration(let range):
            "a duration such as 500ms, 90s, 5m, 2h or 1d, from \(DurationText.spell(range.lowerBound)) "
                + "to \(DurationText.spell(range.upperBound))"
        case .boolean: "1, true, yes or on, or else 0, false, no or off"
        case .presence: "anything"
        case .choice(let names): names.count == 1 ? names[0] : Self.oneOf(names)
        case .custom(let expects, _): expects
        }
    }

    package var choices: [String] {
        guard case .choice(let names) = self else { return [] }
        return names
    }

    package func read(_ text: String, secret: Bool = false) throws(ValueRefusal) -> Value {
        if text.unicodeScalars.contains("\0") { throw ValueRefusal(complaint: "must not contain a NUL character") }
        if case .custom(_, let complaint) = self {
            if let complaint = complaint(text) { throw ValueRefusal(complaint: complaint) }
            return .text(text)
        }
        if let value = plainly(text) { return value }
        let given = secret ? "" : ", not \(Secrets.quoted(text))"
        let guess = Suggestions.closest(to: text, among: choices).map { "; did you mean \($0)?" } ?? ""
        throw ValueRefusal(complaint: "takes \(expectation)\(given)\(secret ? "" : guess)")
    }

    private func plainly(_ text: String) -> Value? {
        switch self {
        case .text, .custom: return .text(text)
        case .path: return text.isEmpty ? nil : .text(text)
        case .integer(let range):
            guard let number = Int(text), !text.hasPrefix("+"), range.contains(number) else { return nil }
            return .integer(number)
        case .duration(let range):
            guard let duration = DurationText.read(text), range.contains(duration) else { return nil }
            return .duration(duration)
        case .boolean: return Self.truth(text).map(Value.boolean)
        case .presence: return .boolean(!text.isEmpty)
        case .choice(let names): return names.contains(text) ? .text(text) : nil
        }
    }

    private static func truth(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "1", "true", "yes", "on": true
        case "0", "false", "no", "off": false
        default: nil
        }
    }

    package static func oneOf(_ names: [String]) -> String {
        guard let last = names.last else { return "nothing" }
        guard names.count > 1 else { return last }
        return names.dropLast().joined(separator: ", ") + " or " + last
    }
}
