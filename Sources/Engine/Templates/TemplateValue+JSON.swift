import JSON

extension TemplateValue {
    /// Reads a JSON document. Numbers keep their digits; if a key comes twice, the last one counts.
    package init(json bytes: [UInt8]) throws(TemplateError) {
        var reader = JSONReader(bytes, rules: JSONReader.Rules(deepest: 64, allowsNUL: true))
        do throws(JSONProblem) {
            self.init(try reader.document())
        } catch {
            throw TemplateError(.data, "malformed JSON in line \(error.line) of the data: \(error.complaint)")
        }
    }

    package init(json text: String) throws(TemplateError) {
        try self.init(json: Array(text.utf8))
    }

    private init(_ value: JSONValue) {
        self =
            switch value {
            case .null: .null
            case .bool(let bool): .bool(bool)
            case .int(let number): .number(String(number))
            case .double(let number): .number(String(describing: number))
            case .number(let digits), .raw(let digits): .number(digits)
            case .string(let text): .string(text)
            case .array(let values): .list(values.map(TemplateValue.init))
            case .object(let members):
                .object(Dictionary(members.map { ($0.key, TemplateValue($0.value)) }) { _, last in last })
            }
    }
}
