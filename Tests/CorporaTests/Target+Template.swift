import Templates

extension Target {
    private static let limits = {
        var limits = Limits()
        limits.output = 100_000
        limits.depth = 30
        return limits
    }()

    /// The value of every variable: all characters that could break out of their place.
    private static let hostile = "<b x=\"1\" y='2'>`&</b> --> javascript:"

    /// A template, which is also its own partial; in a mail its data must leave its tags unchanged.
    func template(_ bytes: [UInt8]) -> String? {
        let data: TemplateValue = [
            "a": .string(Self.hostile), "b": true, "c": ["x", .string(Self.hostile)],
            "d": ["a": 1, "b": ["c": "deep"]], "e": [], "f": nil,
            "url": "https://a.example/?x=1&y=2", "name": "self",
        ]
        let partials = Partials { $0 == "self" ? bytes : nil }
        if let plain = try? Template(bytes, limits: Self.limits) {
            let first = try? plain.render(data, partials: partials)
            let second = try? plain.render(data, partials: partials)
            if let first, let second, first != second { return "another output the second time" }
        }
        _ = try? Template(bytes, mode: .text, limits: Self.limits).render(data)
        guard let mail = try? Template(bytes, mode: .html, limits: Self.limits) else { return nil }
        guard let hostile = try? mail.render(["a": .string(Self.hostile)]), let tame = try? mail.render(["a": "x"])
        else {
            return nil
        }
        func shape(_ output: [UInt8]) -> [UInt8] { output.filter { "<>\"'`".utf8.contains($0) } }
        return shape(hostile) == shape(tame) ? nil : "a value changes the tags"
    }
}
