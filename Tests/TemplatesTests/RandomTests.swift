import Templates
import TestSupport
import Testing

/// Templates that nobody would write, the same ones in every run.
@Suite struct RandomTests {
    static let pieces = [
        "{{v}}", "{{v}}", "{{{v}}}", "{{&v}}", "{{#v}}", "{{/v}}", "{{^v}}", "{{.}}", "{{! c }}", "{{=<% %>=}}",
        "<%v%>", "<%={{ }}=%>",
        "{{>v}}", "{{<v}}", "{{$v}}", "<p ", "<a href=", "title=", "style=", "onclick=", "\"", "'", "`", ">", "</p>",
        "<", "</", "/>", "=",
        "<!--", "-->", "<!", "<?", "<script>", "</script>", "<style>", "</style>", "<title>", "</title>",
        "https://a.example/", "?q=", "#",
        "javascript:", " ", "\n", "\r\n", "  ", "x", "é", "<img src=", "alt=", "{{", "}}", "&", ";", "\0",
    ]

    /// Where the tags, attributes and their quotes of a reader of HTML begin and end.
    static func shape(_ output: [UInt8]) -> [UInt8] { output.filter { "<>\"'`".utf8.contains($0) } }

    @Test(arguments: 0..<8) func `no template crashes, and no value changes the tags of one that is accepted`(
        _ seed: Int
    ) throws {
        var random = SeededRandom(seed)
        var limits = Limits()
        limits.depth = 20
        limits.output = 50_000
        var accepted = 0
        for _ in 0..<4_000 {
            let source = (0..<(1 + random.below(12))).map { _ in Self.pieces[random.below(Self.pieces.count)] }.joined()
            let partials = Partials(["v": source])
            let data: TemplateValue = ["v": ["a", "<b>", ["v": "c"]]]
            if let plain = try? Template(source, limits: limits) {
                let first = try? plain.render(data, partials: partials)
                let second = try? plain.render(data, partials: partials)
                #expect(first == second, "\(source.debugDescription)")
            }
            guard let mail = try? Template(source, mode: .html, limits: limits) else { continue }
            guard let tame = try? mail.render(["v": "x"]) else { continue }
            for value in ["<i>", "\"", "'", "` =x", "javascript:", "--><script>", "</title></style></script>", "a b=c"]
            {
                guard let hostile = try? mail.render(["v": .string(value)]) else { continue }
                accepted += 1
                #expect(Self.shape(hostile) == Self.shape(tame), "\(source.debugDescription) with \(value)")
            }
        }
        #expect(accepted > 100)
    }
}
