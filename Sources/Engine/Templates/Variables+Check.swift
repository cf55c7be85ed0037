extension Variables {
    /// `{"user_name": {"type": "text", "required": true, "max": 200}}`
    package init(json bytes: [UInt8]) throws(TemplateError) {
        guard case .object(let members) = try TemplateValue(json: bytes) else {
            throw TemplateError(.data, "the variables are not an object", hint: Self.example)
        }
        self.init(try Self.described(members, asFields: false))
    }

    private static func described(
        _ members: [String: TemplateValue], asFields: Bool
    ) throws(TemplateError) -> [String: Variable] {
        var all: [String: Variable] = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard isName(name) else {
                throw TemplateError(
                    .data, "a variable's name is malformed",
                    hint: "a name has 1 to 64 letters, digits and _, and begins with a letter or _")
            }
            let variable = try variable(name, value)
            guard (variable.kind == .list) == !variable.fields.isEmpty, !asFields || variable.kind != .list else {
                throw TemplateError(
                    .data,
                    "the variable \(name) is a list without fields, a list in a list, or has fields and is not a list",
                    hint: #"such as {"rows": {"type": "list", "of": {"item": {}, "price": {"type": "number"}}}}"#,
                    variable: name)
            }
            all[name] = variable
        }
        return all
    }

    private static let example = #"such as {"user_name": {"type": "text", "required": true, "max": 200}}"#

    static func isName(_ name: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "_") || (byte | 0x20) &- 97 < 26 }
        return (1...64).contains(name.utf8.count) && name.utf8.first.map(isLetter) == true
            && name.utf8.allSatisfy { isLetter($0) || $0 &- 48 < 10 }
    }

    private static func variable(_ name: String, _ value: TemplateValue) throws(TemplateError) -> Variable {
        func problem(_ complaint: String) -> TemplateError {
            TemplateError(.data, "the variable \(name) \(complaint)", hint: example, variable: name)
        }
        guard case .object(let members) = value else { throw problem("is not described by an object") }
        var variable = Variable()
        for (key, value) in members {
            switch (key, value) {
            case ("type", .string(let word)):
                guard let kind = Kind(rawValue: word) else {
                    throw problem("has a type that is not one of text, url, number, html, list")
                }
                variable.kind = kind
            case ("required", .bool(let required)): variable.required = required
            case ("max", .number(let digits)):
                guard let max = Int(digits), (1...1_000_000).contains(max) else {
                    throw problem("has a max that is not a whole number from 1 to 1000000")
                }
                variable.max = max
            case ("of", .object(let fields)): variable.fields = try described(fields, asFields: true)
            case ("type", _), ("required", _), ("max", _), ("of", _): throw problem("has a malformed \(key)")
            default: throw problem("has an unknown field; known are type, required, max and of")
            }
        }
        return variable
    }

    /// Only the declared values, each checked against its type. An error names the variable and never its value.
    package func check(_ data: TemplateValue) throws(TemplateError) -> TemplateValue {
        guard case .object(let given) = data else {
            throw TemplateError(.data, "the data are not an object", hint: #"such as {"user_name": "Ada"}"#)
        }
        return .object(try Self.checked(all, given))
    }

    private static func checked(
        _ all: [String: Variable], _ given: [String: TemplateValue]
    ) throws(TemplateError) -> [String: TemplateValue] {
        var checked: [String: TemplateValue] = [:]
        for (name, variable) in all.sorted(by: { $0.key < $1.key }) {
            func problem(_ complaint: String, _ hint: String? = nil) -> TemplateError {
                TemplateError(.data, "the variable \(name) \(complaint)", hint: hint, variable: name)
            }
            let value = given[name] ?? .null
            if variable.kind == .list {
                checked[name] = try entries(value, of: variable, name)
                continue
            }
            let text: String
            switch value {
            case .null: text = ""
            case .string(let string): text = string
            case .number(let digits): text = digits
            case .bool(let bool) where variable.kind == .text: text = bool ? "true" : ""
            case .bool, .list, .object, .lambda: throw problem("is not of the type \(variable.kind.rawValue)")
            }
            guard text.contains(where: { !$0.isWhitespace }) else {
                if variable.required { throw problem("is missing", "the template requires it") }
                continue
            }
            if let max = variable.max, text.count > max { throw problem("is longer than \(max) characters") }
            switch variable.kind {
            case .text, .html, .list: break
            case .number:
                guard Self.isNumber(text) else { throw problem("is not a number") }
            case .url:
                guard Address.isSafe(Array(text.utf8)) else {
                    throw problem(
                        "is not an address that a mail may link to",
                        "give one that begins with https:, http:, mailto: or tel:")
                }
            }
            checked[name] = .string(text)
        }
        return checked
    }

    /// Each field stands in each entry, so that an empty one is not looked for outside the list.
    private static func entries(
        _ value: TemplateValue, of variable: Variable, _ name: String
    ) throws(TemplateError) -> TemplateValue {
        func problem(_ complaint: String, _ hint: String? = nil) -> TemplateError {
            TemplateError(.data, "the variable \(name) \(complaint)", hint: hint, variable: name)
        }
        let given: [TemplateValue]
        switch value {
        case .null: given = []
        case .list(let entries): given = entries
        case .string, .number, .bool, .object, .lambda: throw problem("is not of the type list")
        }
        if variable.required, given.isEmpty { throw problem("is missing", "the template requires it") }
        guard given.count <= variable.max ?? 10_000 else {
            throw problem("has more than \(variable.max ?? 10_000) entries")
        }
        var entries: [TemplateValue] = []
        for entry in given {
            guard case .object(let members) = entry else { throw problem("has an entry that is not an object") }
            var fields = variable.fields.mapValues { _ in TemplateValue.null }
            fields.merge(try checked(variable.fields, members)) { $1 }
            entries.append(.object(fields))
        }
        return .list(entries)
    }

    private static func isNumber(_ text: String) -> Bool {
        guard text.utf8.count <= 64, case .number? = try? TemplateValue(json: text) else { return false }
        return true
    }
}
