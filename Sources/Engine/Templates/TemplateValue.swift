/// The data of a template. A lambda can come only from code: a JSON document has none.
package indirect enum TemplateValue: Sendable {
    case null
    case bool(Bool)
    /// A number in the form in which it is shown.
    case number(String)
    case string(String)
    case list([TemplateValue])
    case object([String: TemplateValue])
    /// Called with the source of its section, or with nil where it stands for a value. A string that it returns is a template.
    case lambda(@Sendable (String?) -> TemplateValue)
}

extension TemplateValue {
    /// Null, false, an empty text and an empty list: their section is left out.
    var isFalse: Bool {
        switch self {
        case .null: true
        case .bool(let value): !value
        case .string(let text): text.isEmpty
        case .list(let values): values.isEmpty
        case .number, .object, .lambda: false
        }
    }

    package subscript(name: String) -> TemplateValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }
}

extension TemplateValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int) { self = .number("\(value)") }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(nilLiteral: ()) { self = .null }
    package init(arrayLiteral elements: TemplateValue...) { self = .list(elements) }
    package init(dictionaryLiteral elements: (String, TemplateValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}
