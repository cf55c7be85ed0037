import JSON
import Templates

/// Reading a page's data, which come from Postgres as JSON.
extension TemplateValue {
    /// A text, a number or a boolean as text; nil for null, lists and objects.
    var plainText: String? {
        switch self {
        case .string(let text), .number(let text): text
        case .bool(let value): value ? "true" : "false"
        case .null, .list, .object, .lambda: nil
        }
    }

    func text(_ name: String) -> String? { self[name]?.plainText }

    func int(_ name: String) -> Int? { double(name).map { Int($0) } }

    func double(_ name: String) -> Double? { self[name]?.plainText.flatMap(Double.init) }

    func isTrue(_ name: String) -> Bool { text(name) == "true" }

    func list(_ name: String) -> [TemplateValue] { self[name]?.elements ?? [] }

    var elements: [TemplateValue] {
        guard case .list(let values) = self else { return [] }
        return values
    }

    var members: [String: TemplateValue] {
        guard case .object(let members) = self else { return [:] }
        return members
    }

    /// Indented JSON, its keys in order.
    var pretty: String { spelled(indent: "") }

    private func spelled(indent: String) -> String {
        let inner = indent + "  "
        switch self {
        case .null, .lambda: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .number(let text): return text
        case .string(let text): return JSONText.quoted(text)
        case .list(let values):
            guard !values.isEmpty else { return "[]" }
            return "[\n" + values.map { inner + $0.spelled(indent: inner) }.joined(separator: ",\n") + "\n\(indent)]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let lines = members.sorted { $0.key < $1.key }.map {
                inner + JSONText.quoted($0.key) + ": " + $0.value.spelled(indent: inner)
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        }
    }
}
