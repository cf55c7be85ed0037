/// A JSON document. Objects keep the order of their keys; numbers that were read keep their digits.
enum JSONValue: Sendable, Equatable {
    struct Member: Sendable, Equatable {
        let key: String
        let value: JSONValue
    }

    case null
    case bool(Bool)
    case int(Int)
    case double(Double)
    /// A number as it stood in the document.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([Member])
    /// JSON from elsewhere, Postgres for instance, written as it is.
    case raw(String)
}

extension JSONValue {
    /// Null where there is nothing.
    init(_ text: String?) { self = text.map(JSONValue.string) ?? .null }
    init(_ number: Int?) { self = number.map(JSONValue.int) ?? .null }
    init(_ texts: [String]) { self = .array(texts.map(JSONValue.string)) }

    /// The member of an object; with a key that came twice, the last one was kept.
    subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    var integer: Int? {
        switch self {
        case .int(let number): number
        case .number(let digits): Int(digits)
        case .null, .bool, .double, .string, .array, .object, .raw: nil
        }
    }

    /// What kind of value it is, for sentences such as "expected an object, found a list".
    var word: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .int, .double, .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        case .raw: "a document"
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .int(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(floatLiteral value: Double) { self = .double(value) }
    init(nilLiteral: ()) { self = .null }
    init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { Member(key: $0.0, value: $0.1) })
    }
}

extension JSONValue {
    /// nil: it is no array.
    var items: [JSONValue]? {
        guard case .array(let items) = self else { return nil }
        return items
    }
}
