/// A JSON value: what a change carries, and what a call is given.
public enum AppValue: Sendable, Hashable {
    /// `null`, as nothing that is said explicitly.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction.
    case int(Int64)
    /// A number with a fraction, or one beyond 64 bits.
    case double(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([AppValue])
    /// Values by their names.
    case object([String: AppValue])

    /// A member of an object.
    public subscript(key: String) -> AppValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// nil, if it is something else.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// nil, if it is something else.
    public var int: Int? { if case .int(let value) = self { Int(value) } else { nil } }
    /// nil, if it is something else.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
}

extension AppValue: Codable {
    /// From its parts.
    public init(from decoder: any Decoder) throws {
        let one = try decoder.singleValueContainer()
        if one.decodeNil() {
            self = .null
        } else if let value = try? one.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? one.decode(Int64.self) {
            self = .int(value)
        } else if let value = try? one.decode(Double.self) {
            self = .double(value)
        } else if let value = try? one.decode(String.self) {
            self = .string(value)
        } else if let value = try? one.decode([AppValue].self) {
            self = .array(value)
        } else {
            self = .object(try one.decode([String: AppValue].self))
        }
    }

    /// As the same JSON.
    public func encode(to encoder: any Encoder) throws {
        var one = encoder.singleValueContainer()
        switch self {
        case .null: try one.encodeNil()
        case .bool(let value): try one.encode(value)
        case .int(let value): try one.encode(value)
        case .double(let value): try one.encode(value)
        case .string(let value): try one.encode(value)
        case .array(let value): try one.encode(value)
        case .object(let value): try one.encode(value)
        }
    }
}

extension AppValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// From its parts.
    public init(stringLiteral value: String) { self = .string(value) }
    /// From its parts.
    public init(integerLiteral value: Int64) { self = .int(value) }
    /// From its parts.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// From its parts.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// From its parts.
    public init(nilLiteral: ()) { self = .null }
    /// From its parts.
    public init(arrayLiteral elements: AppValue...) { self = .array(elements) }
    /// From its parts.
    public init(dictionaryLiteral elements: (String, AppValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
