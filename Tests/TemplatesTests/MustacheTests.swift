import Templates
import Testing

/// Each rule of Mustache, in our own cases.
@Suite struct MustacheTests {
    static func render(
        _ source: String, _ data: TemplateValue = .null, _ partials: [String: String] = [:]
    ) throws -> String {
        String(decoding: try Template(source).render(data, partials: Partials(partials)), as: UTF8.self)
    }

    @Test(arguments: [
        ("no tags at all", "no tags at all"),
        ("{{name}} and {{ name }}", "Ada &amp; Bob and Ada &amp; Bob"),
        ("{{{name}}} and {{& name }}", "Ada & Bob and Ada & Bob"),
        ("{{quotes}}", "&lt;&quot;&#39;&gt;"),
        ("[{{missing}}] [{{nothing}}] [{{deep.er.est}}]", "[] [] []"),
        ("{{number}} {{yes}} {{no}}", "1.50 true false"),
        ("{{person.name.first}}", "Grace"),
        ("{{#person}}{{name.first}}{{/person}}", "Grace"),
        ("{{#person.name}}{{first}} {{number}}{{/person.name}}", "Grace 1.50"),
        ("{{#list}}<{{.}}>{{/list}}", "<1><2><3>"),
        ("{{#people}}{{name}} of {{city}};{{/people}}", "A of Rome;B of Bonn;"),
        ("{{^list}}none{{/list}}{{^empty}}none{{/empty}}", "none"),
        ("{{#empty}}some{{/empty}}{{#no}}some{{/no}}{{#nothing}}some{{/nothing}}{{#blank}}some{{/blank}}", ""),
        ("{{#yes}}y{{#no}}n{{/no}}{{^no}}m{{/no}}{{/yes}}", "ym"),
        ("a{{! not shown }}b", "ab"),
        ("{{=<% %>=}}<% number %>{{number}}<%={{ }}=%>{{number}}", "1.50{{number}}1.50"),
        ("{{#matrix}}[{{#.}}{{.}}{{/.}}]{{/matrix}}", "[12][3]"),
    ])
    func `values, sections, comments and delimiters`(_ source: String, _ expected: String) throws {
        let data: TemplateValue = [
            "name": "Ada & Bob", "quotes": "<\"'>", "nothing": nil, "number": .number("1.50"), "yes": true, "no": false,
            "person": ["name": ["first": "Grace"]], "list": [1, 2, 3], "empty": [], "blank": "",
            "people": [["name": "A", "city": "Rome"], ["name": "B"]], "city": "Bonn", "matrix": [[1, 2], [3]],
        ]
        #expect(try Self.render(source, data) == expected)
    }

    @Test(arguments: [
        ("top\n{{#yes}}\n  in\n{{/yes}}\nend\n", "top\n  in\nend\n"),
        ("top\r\n  {{#yes}}\r\nin\r\n{{/yes}}\r\nend", "top\r\nin\r\nend"),
        ("  {{! alone }}  \nnext", "next"),
        ("x {{! not alone }}\nnext", "x \nnext"),
        ("{{#yes}} {{/yes}}\n", " \n"),
        ("  {{yes}}\n", "  true\n"),
        ("end\n  {{=| |=}}", "end\n"),
        ("{{! over\n two lines }}\nnext", "next"),
    ])
    func `a tag alone in its line takes the line with it`(_ source: String, _ expected: String) throws {
        #expect(try Self.render(source, ["yes": true]) == expected)
    }

    @Test func `partials keep the indentation of their tag, and values in them do not get it`() throws {
        let partials = ["item": "- {{text}}\n- again\n", "tree": "{{n}}{{#kids}}({{>tree}}){{/kids}}"]
        #expect(
            try Self.render("list:\n  {{>item}}\nend", ["text": "a\nb"], partials) == "list:\n  - a\nb\n  - again\nend")
        #expect(try Self.render("[{{>item}}] {{>absent}}", ["text": "x"], partials) == "[- x\n- again\n] ")
        #expect(
            try Self.render(
                "{{>tree}}", ["n": 1, "kids": [["n": 2, "kids": []], ["n": 3, "kids": [["n": 4, "kids": []]]]]],
                partials)
                == "1(2)(3(4))")
    }

    @Test func `a partial may be named by the data`() throws {
        let partials = ["one": "first {{x}}", "two": "second {{x}}"]
        let data: TemplateValue = ["which": "two", "all": [["name": "one"], ["name": "two"]], "x": "!"]
        #expect(try Self.render("{{>*which}}", data, partials) == "second !")
        #expect(try Self.render("{{#all}}{{> * name }};{{/all}}", data, partials) == "first !;second !;")
        #expect(try Self.render("[{{>*absent}}]", data, partials) == "[]")
        #expect(
            try Self.render(
                "{{<*which}}{{$b}}mine{{/b}}{{/*which}}", ["which": "p"], ["p": "<{{$b}}theirs{{/b}}>"]) == "<mine>")
    }

    @Test func `a child fills the blocks of its parent, and the outermost has the last word`() throws {
        let partials = [
            "page": "<{{$title}}untitled{{/title}}|{{$body}}empty{{/body}}>",
            "article": "{{<page}}{{$title}}article{{/title}}{{/page}}",
        ]
        #expect(try Self.render("{{$title}}own {{n}}{{/title}}", ["n": 1]) == "own 1")
        #expect(
            try Self.render("{{<page}}ignored{{$body}}b {{n}}{{/body}}{{/page}}", ["n": 2], partials)
                == "<untitled|b 2>")
        #expect(try Self.render("{{<article}}{{$body}}b{{/body}}{{/article}}", nil, partials) == "<article|b>")
        #expect(try Self.render("{{<article}}{{$title}}t{{/title}}{{/article}}", nil, partials) == "<t|empty>")
        #expect(
            try Self.render("{{<page}}{{$body}}1{{/body}}{{/page}}{{<page}}{{/page}}", nil, partials)
                == "<untitled|1><untitled|empty>")
        #expect(
            try Self.render(
                "{{#a}}{{<p}}{{$b}}{{v}}{{/b}}{{/p}}{{/a}}", ["a": [["v": 1], ["v": 2]]], ["p": "({{$b}}{{/b}})"])
                == "(1)(2)")
    }

    @Test func `a block takes on the indentation of the place that it fills`() throws {
        let child = "{{<parent}}{{$b}}\n      one\n        two\n{{/b}}{{/parent}}\n"
        #expect(try Self.render(child, nil, ["parent": "a:\n  {{$b}}\n  {{/b}}\nend\n"]) == "a:\n  one\n    two\nend\n")
        #expect(
            try Self.render(child, nil, ["parent": "a:\n{{$b}}\n    default\n{{/b}}\nend\n"])
                == "a:\n    one\n      two\nend\n")
        #expect(
            try Self.render(" {{<parent}}{{/parent}}\n", nil, ["parent": "x\n {{$b}}\n y\n {{/b}}\n"]) == " x\n  y\n")
    }

    @Test func `a lambda for a value returns a template, rendered with what is known there`() throws {
        let data: TemplateValue = [
            "planet": "wor<ld", "hello": .lambda { raw in raw == nil ? "hello {{planet}}" : "raw" },
        ]
        #expect(try Self.render("{{hello}}", data) == "hello wor&amp;lt;ld")
        #expect(try Self.render("{{{hello}}}", data) == "hello wor&lt;ld")
        #expect(try Self.render("{{=| |=}}|&hello|", data) == "hello wor&lt;ld")  // the answer has the usual delimiters
        #expect(try Self.render("{{n}}", ["n": .lambda { _ in 7 }]) == "7")
    }

    @Test func `a lambda for a section gets its source and answers in its delimiters`() throws {
        let twice = TemplateValue.lambda { .string(($0 ?? "") + "/" + ($0 ?? "")) }
        #expect(try Self.render("{{#twice}}{{x}}!{{/twice}}", ["twice": twice, "x": "y"]) == "y!/y!")
        #expect(try Self.render("{{= | | =}}|#twice||x||/twice|", ["twice": twice, "x": "y"]) == "y/y")
        #expect(try Self.render("{{^twice}}no{{/twice}}", ["twice": twice]).isEmpty)
        #expect(try Self.render("{{#off}}no{{/off}}", ["off": .lambda { _ in false }]).isEmpty)
        #expect(try Self.render("{{#list}}{{.}},{{/list}}", ["list": .lambda { _ in [1, 2] }]) == "1,2,")
        #expect(
            try Self.render(
                "{{#each}}{{#wrap}}{{.}}{{/wrap}}{{/each}}",
                ["each": [1, 2], "wrap": .lambda { .string("<\($0 ?? "")>") }])
                == "<1><2>")
    }

    @Test func `a lambda is called again each time`() throws {
        final class Counter: @unchecked Sendable { var n = 0 }  // rendering is on one thread
        let counter = Counter()
        let data: TemplateValue = [
            "n": .lambda { _ in
                counter.n += 1; return .number("\(counter.n)")
            }
        ]
        #expect(try Self.render("{{n}} {{{n}}} {{n}}", data) == "1 2 3")
    }

    @Test func `what is rendered is not read again`() throws {
        #expect(try Self.render("{{x}} {{{x}}}", ["x": "{{y}}", "y": "no"]) == "{{y}} {{y}}")
        #expect(try Self.render("{{#list}}{{.}}{{/list}}", ["list": ["{{y}}"], "y": "no"]) == "{{y}}")
    }

    @Test(arguments: [
        ("a\n  {{#x}}", 2, 3, "never closed"), ("{{/x}}", 1, 1, "closes nothing"),
        ("{{#a}}{{#b}}\n{{/a}}", 2, 1, "line 1"),
        ("é {{x", 1, 3, "never closed"), ("{{{x}}", 1, 1, "never closed"), ("{{}}", 1, 1, "no name"),
        ("{{a b}}", 1, 1, "space"), ("{{=x=}}", 1, 1, "delimiters"), ("{{= = = =}}", 1, 1, "delimiters"),
        ("{{#a}}x{{/ *a}}", 1, 8, "should be closed"),
    ])
    func `what is malformed is refused with its place`(
        _ source: String, _ line: Int, _ column: Int, _ says: String
    ) throws {
        let error = #expect(throws: TemplateError.self) { try Template(source) }
        #expect(error?.kind == .syntax && error?.line == line && error?.column == column)
        #expect(error?.description.contains(says) == true, "\(error?.description ?? "-")")
    }

    @Test func `depth, size and time are limited`() throws {
        var limits = Limits()
        limits.depth = 20
        limits.output = 10_000
        limits.source = 2_000
        func refusal(_ source: String, _ data: TemplateValue = nil, _ partials: [String: String] = [:]) throws -> String
        {
            let error = #expect(throws: TemplateError.self) {
                try Template(source, limits: limits).render(data, partials: Partials(partials))
            }
            #expect(error?.kind == .limit)
            return error?.sentence ?? ""
        }
        #expect(try refusal("{{>again}}", nil, ["again": "x{{>again}}"]).contains("deep"))
        #expect(
            try refusal(String(repeating: "{{#a}}", count: 21) + String(repeating: "{{/a}}", count: 21)).contains(
                "deep"))
        #expect(try refusal(String(repeating: "x", count: 2_001)).contains("bytes"))
        let many = TemplateValue.list(Array(repeating: 1, count: 2_000))
        #expect(try refusal("{{#many}}0123456789{{/many}}", ["many": many]).contains("bytes"))
        limits.time = .zero
        #expect(try refusal("{{#many}}{{/many}}", ["many": many]).contains("longer"))
    }

    @Test func `documents keep the digits of their numbers`() throws {
        let data = try TemplateValue(json: #"{"n": 1.10, "e": 1e3, "s": "\u00e9\ud83d\ude00\n", "l": [null, true]}"#)
        #expect(try Self.render("{{n}} {{e}} {{s}}{{#l}}{{.}}{{/l}}", data) == "1.10 1e3 é😀\ntrue")
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\" 1}", "01", "\"\\ud800\"", "\"\u{1}\"", "nul", "1 2", "{\"a\":1,}", "-", "1.",
    ])
    func `a malformed document is refused`(_ text: String) {
        #expect(throws: TemplateError.self) { try TemplateValue(json: text) }
    }
}
