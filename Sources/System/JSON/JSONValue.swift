/// A JSON document. Objects keep the order of their keys; numbers that were read keep their digits.
package enum JSONValue: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package let key: String
        package let value: JSONValue

        package init(key: String, value: JSONValue) {
            self.key = key
            self.value = value
        }
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
    package init(_ text: String?) { self = text.map(JSONValue.string) ?? .null }
    package init(_ number: Int?) { self = number.map(JSONValue.int) ?? .null }
    package init(_ texts: [String]) { self = .array(texts.map(JSONValue.string)) }

    /// The member of an object; with a key that came twice, the last one was kept.
    package subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    package var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    package var integer: Int? {
        switch self {
        case .int(let number): number
        case .number(let digits): Int(digits)
        case .null, .bool, .double, .string, .array, .object, .raw: nil
        }
    }

    /// What kind of value it is, for sentences such as "expected an object, found a list".
    package var word: String {
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
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int) { self = .int(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(floatLiteral value: Double) { self = .double(value) }
    package init(nilLiteral: ()) { self = .null }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { Member(key: $0.0, value: $0.1) })
    }
}

extension JSONValue {
    /// nil: it is no array.
    package var items: [JSONValue]? {
        guard case .array(let items) = self else { return nil }
        return items
    }
}
