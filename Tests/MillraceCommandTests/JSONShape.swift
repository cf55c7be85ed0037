@testable import MillraceCommand

/// The type of a JSON value as the guide writes it: `text`, `list of text`, `object (id int, name text)`.
indirect enum JSONShape: Equatable, CustomStringConvertible {
    case text, int, number, bool
    /// Anything may stand in it.
    case object, list, any
    case fields([Field])
    case entries(JSONShape)

    struct Field: Equatable {
        let name: String
        let shape: JSONShape
    }

    struct Misspelt: Error { let text: String }

    var description: String {
        switch self {
        case .text: "text"
        case .int: "int"
        case .number: "number"
        case .bool: "bool"
        case .object: "object"
        case .list: "list"
        case .any: "any"
        case .fields(let fields): "object (\(Self.spell(fields)))"
        case .entries(.fields(let fields)): "list of (\(Self.spell(fields)))"
        case .entries(let shape): "list of \(shape)"
        }
    }

    static func spell(_ fields: [Field]) -> String {
        fields.map { "\($0.name) \($0.shape)" }.joined(separator: ", ")
    }

    /// What a value looks like: what a guide without an entry for it should say.
    init(of value: JSONValue) {
        switch value {
        case .object(let members):
            self =
                members.isEmpty ? .object : .fields(members.map { Field(name: $0.key, shape: JSONShape(of: $0.value)) })
        case .array(let items): self = items.first.map { .entries(JSONShape(of: $0)) } ?? .list
        case .string: self = .text
        case .bool: self = .bool
        case .null: self = .any
        default: self = value.integer == nil ? .number : .int
        }
    }

    /// What is wrong with a value of this shape; `place` names it. A field may be null, and may not be missing.
    func problems(with value: JSONValue, at place: String) -> [String] {
        switch (self, value) {
        case (.any, _), (_, .null), (.text, .string), (.bool, .bool), (.object, .object), (.list, .array): return []
        case (.int, _) where value.integer != nil: return []
        case (.number, _) where JSONShape(of: value) == .number || value.integer != nil: return []
        case (.fields(let fields), .object(let members)):
            let printed = members.map(\.key)
            let missing = fields.map(\.name).filter { !printed.contains($0) }.map { "\(place).\($0) is missing" }
            let unknown = printed.filter { name in !fields.contains { $0.name == name } }
                .map { "\(place).\($0) is not in the guide" }
            return missing + unknown
                + fields.flatMap { field in
                    value[field.name].map { field.shape.problems(with: $0, at: "\(place).\(field.name)") } ?? []
                }
        case (.entries(let shape), .array(let items)):
            if case .fields = shape, items.isEmpty { return ["\(place) has no entry to compare"] }
            return items.enumerated().flatMap { shape.problems(with: $1, at: "\(place)[\($0)]") }
        default: return ["\(place) is not \(self) but \(JSONShape(of: value))"]
        }
    }
}

extension JSONShape {
    /// Reads `id int, jobs list of (id int)`.
    static func fields(in text: String) throws -> [Field] {
        var rest = Substring(text)
        let fields = try fields(&rest)
        guard rest.isEmpty else { throw Misspelt(text: String(rest)) }
        return fields
    }

    private static func fields(_ rest: inout Substring) throws -> [Field] {
        var fields: [Field] = []
        while !rest.isEmpty, rest.first != ")" {
            let name = word(&rest)
            fields.append(Field(name: name, shape: try shape(&rest)))
            if rest.first == "," { rest = rest.dropFirst() }
            skip(&rest)
        }
        return fields
    }

    private static func shape(_ rest: inout Substring) throws -> JSONShape {
        if rest.first == "(" { return try group(&rest) }
        switch word(&rest) {
        case "text": return .text
        case "int": return .int
        case "number": return .number
        case "bool": return .bool
        case "any": return .any
        case "object": return rest.first == "(" ? try group(&rest) : .object
        case "list":
            guard rest.hasPrefix("of ") else { return .list }
            _ = word(&rest)
            return .entries(try shape(&rest))
        case let other: throw Misspelt(text: "\(other) \(rest)")
        }
    }

    private static func group(_ rest: inout Substring) throws -> JSONShape {
        rest = rest.dropFirst()
        let inner = try fields(&rest)
        guard rest.first == ")" else { throw Misspelt(text: String(rest)) }
        rest = rest.dropFirst()
        skip(&rest)
        return .fields(inner)
    }

    private static func word(_ rest: inout Substring) -> String {
        let word = rest.prefix { $0 != " " && $0 != "," && $0 != "(" && $0 != ")" }
        rest = rest.dropFirst(word.count)
        skip(&rest)
        return String(word)
    }

    private static func skip(_ rest: inout Substring) {
        rest = rest.drop { $0 == " " }
    }
}
