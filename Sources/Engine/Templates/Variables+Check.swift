extension Variables {
    /// `{"user_name": {"type": "text", "required": true, "max": 200}}`
    package init(json bytes: [UInt8]) throws(TemplateError) {
        guard case .object(let members) = try TemplateValue(json: bytes) else {
            throw TemplateError(.data, "the variables are not an object", hint: Self.example)
        }
        var all: [String: Variable] = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard Self.isName(name) else {
                throw TemplateError(
                    .data, "a variable's name is malformed",
                    hint: "a name has 1 to 64 letters, digits and _, and begins with a letter or _")
            }
            all[name] = try Self.variable(name, value)
        }
        self.init(all)
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
                    throw problem("has a type that is none of text, url, number, html")
                }
                variable.kind = kind
            case ("required", .bool(let required)): variable.required = required
            case ("max", .number(let digits)):
                guard let max = Int(digits), (1...1_000_000).contains(max) else {
                    throw problem("has a max that is not a whole number from 1 to 1000000")
                }
                variable.max = max
            case ("type", _), ("required", _), ("max", _): throw problem("has a malformed \(key)")
            default: throw problem("has an unknown field; known are type, required and max")
            }
        }
        return variable
    }

    /// Only the declared values, each checked against its type. An error names the variable and never its value.
    package func check(_ data: TemplateValue) throws(TemplateError) -> TemplateValue {
        guard case .object(let given) = data else {
            throw TemplateError(.data, "the data are not an object", hint: #"such as {"user_name": "Ada"}"#)
        }
        var checked: [String: TemplateValue] = [:]
        for (name, variable) in all.sorted(by: { $0.key < $1.key }) {
            func problem(_ complaint: String, _ hint: String? = nil) -> TemplateError {
                TemplateError(.data, "the variable \(name) \(complaint)", hint: hint, variable: name)
            }
            let value = given[name] ?? .null
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
            case .text, .html: break
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
        return .object(checked)
    }

    private static func isNumber(_ text: String) -> Bool {
        guard text.utf8.count <= 64, case .number? = try? TemplateValue(json: text) else { return false }
        return true
    }
}
