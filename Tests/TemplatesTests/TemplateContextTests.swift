import Templates
import Testing

/// A mail's HTML: what becomes of a value depends on where it stands.
@Suite struct TemplateContextTests {
    static func html(_ source: String, _ value: String = "x", _ kind: Variables.Kind? = .text) throws -> String {
        let variables = kind.map { Variables(["v": .init(kind: $0)]) }
        let template = try Template(source, mode: .html, variables: variables)
        return String(decoding: try template.render(["v": .string(value)]), as: UTF8.self)
    }

    @Test(arguments: [
        ("<p>{{v}}</p>", "<b> & \"'`", "<p>&lt;b&gt; &amp; &quot;&#39;&#96;</p>"),
        ("<p title=\"{{v}}\">", "a\"b>", "<p title=\"a&quot;b&gt;\">"),
        ("<p title='{{v}}'>", "a'b", "<p title='a&#39;b'>"),
        ("<a href=\"{{v}}\">", "https://a.example/?x=1&y=\"", ""),
        ("<a href=\"{{v}}\">", "https://a.example/?x=1&y=2", "<a href=\"https://a.example/?x=1&amp;y=2\">"),
        ("<a href=\"https://a.example/{{v}}\">", "a/../b c", "<a href=\"https://a.example/a%2F..%2Fb%20c\">"),
        (
            "<a href=\"https://a.example/?q={{v}}#f\">", "é&\"<>'",
            "<a href=\"https://a.example/?q=%C3%A9%26%22%3C%3E%27#f\">"
        ),
        ("<img src=\"cid:{{v}}\" alt=\"\">", "logo", "<img src=\"cid:logo\" alt=\"\">"),
        ("<p style=\"color:{{v}}\">", "#12ab34", "<p style=\"color:#12ab34\">"),
        ("<style>.a { width: {{v}} }</style><p>{{v}}", "50%", "<style>.a { width: 50% }</style><p>50%"),
        ("<title>{{v}}</title>", "</title><script>", "<title>&lt;/title&gt;&lt;script&gt;</title>"),
        ("<!-- {{! ours }} --><p>{{v}}", "a", "<!--  --><p>a"),
        ("1 < 2 {{v}}", "<", "1 < 2 &lt;"),
        ("<br/>{{v}}<!doctype html>{{v}}", "a", "<br/>a<!doctype html>a"),
        (
            "<a href=\"{{#v}}{{v}}{{/v}}{{^v}}https://b.example{{/v}}\">", "https://a.example",
            "<a href=\"https://a.example\">"
        ),
        ("<!--[if mso]><table><![endif]-->{{v}}", "<", "<!--[if mso]><table><![endif]-->&lt;"),
        ("<P TITLE=\"{{v}}\"></P\n>{{v}}", "\"", "<P TITLE=\"&quot;\"></P\n>&quot;"),
    ])
    func `a value is escaped for its place`(_ source: String, _ value: String, _ expected: String) throws {
        if expected.isEmpty {
            #expect(throws: TemplateError.self) { try Self.html(source, value) }
        } else {
            #expect(try Self.html(source, value) == expected)
        }
    }

    @Test(arguments: [
        "javascript:alert(1)", " javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)",
        "\u{1}javascript:x",
        "data:text/html,x", "vbscript:x", "//evil.example", "/relative", "http:evil", "https:///evil", "https://a b",
        "https://a\"b", "https:\\\\a", "x", "https:",
    ])
    func `an address that may run code or lead astray is refused, and the value is not told`(_ value: String) throws {
        let error = #expect(throws: TemplateError.self) { try Self.html("<a href=\"{{v}}\">", value) }
        #expect(error?.kind == .data && error?.variable == "v")
        #expect(error.map { !"\($0)".contains(value) || value == "x" || value == "https:" } == true)
        #expect(throws: TemplateError.self) {
            try Variables(["v": .init(kind: .url)]).check(["v": .string(value)])
        }
    }

    @Test(arguments: [
        "<{{v}}>", "<a{{v}}>", "<a {{v}}>", "<a x{{v}}=\"\">", "<a x {{v}}>", "</{{v}}>", "<script>{{v}}</script>",
        "<script>\"</scrip\" + {{v}}</script>", "<p onclick=\"{{v}}\">", "<img srcset=\"{{v}}\" alt=\"\">",
        "<!-- {{v}} -->",
        "<!doctype {{v}}>", "<iframe srcdoc=\"{{v}}\">", "<meta http-equiv=\"refresh\" content=\"{{v}}\">",
        "<p style=color:{{v}}>", "<a href=\"javascript:{{v}}\">", "<a href=\" data:{{v}}\">",
        "<!--[if mso]>{{v}}<![endif]-->",
        "<style><{{v}}</style>", "<iframe>{{v}}</iframe>",
    ])
    func `where no value is safe none may stand`(_ source: String) throws {
        let error = #expect(throws: TemplateError.self) { try Template(source, mode: .html) }
        #expect(error?.kind == .context && error?.line == 1, "\(error?.description ?? "-")")
    }

    @Test(arguments: [
        "<p title={{v}} class=\"{{v}}\">", "<p title=x{{v}} id=i>", "<p title= {{v}}>", "<p title=\n{{v}}>",
        "<a href={{v}}>",
        "<p title={{v}}>", "<p title={{#v}}{{v}}{{/v}} class=\"{{v}}\">", "<a href=https://a.example/{{v}}>",
    ])
    func `a value stands in no attribute without quotes, where an empty one would swallow the next`(
        _ source: String
    ) throws {
        let error = #expect(throws: TemplateError.self) { try Template(source, mode: .html) }
        #expect(
            error?.kind == .context && error?.sentence.contains("without quotes") == true,
            "\(error?.description ?? "-")")
    }

    @Test(arguments: [
        "<svg><a><animate attributeName=\"href\" values=\"{{v}}\"/></a></svg>",
        "<animate attributeName=href values={{v}}>",
        "<svg><set attributeName=\"href\" to=\"{{v}}\"/></svg>", "<set to=\"{{v}}\">", "<animate from=\"{{v}}\">",
        "<animate by=\"{{v}}\">", "<animateTransform values=\"{{v}}\">", "<svg><a xlink:href=\"{{v}}\">",
        "<a xlink:href=\"{{v}}\">", "<a xlink:href=\"https://a.example/{{v}}\">", "<svg><text>{{v}}</text></svg>",
        "<svg title=\"{{v}}\">", "<math href=\"{{v}}\">", "<math><mi title=\"{{v}}\">", "<a ping=\"{{v}}\">",
        "<button formaction=\"{{v}}\">", "<form action=\"{{v}}\">", "<img imagesrcset=\"{{v}}\">",
        "<p onfoo=\"{{v}}\">",
        "<p attributeName=\"{{v}}\">", "<p unheard-of=\"{{v}}\">", "<a target=\"{{v}}\">", "<a rel=\"{{v}}\">",
        "<input type=\"{{v}}\">",
        "<base href=\"{{v}}\">", "<script src=\"{{v}}\"></script>", "<iframe src=\"{{v}}\">", "<object data=\"{{v}}\">",
        "<param value=\"{{v}}\">", "<link href=\"{{v}}\">", "<embed src=\"{{v}}\">", "<SVG><G TITLE=\"{{v}}\">",
        "<p style=\"background:url({{v}})\">", "<p style=\"background:url(https://a.example{{v}})\">",
        "<p style=\"background:url&#40;https://a.example{{v}})\">", "<p style=\"font:'{{v}}'\">",
        "<style>a { background: url(https://a.example{{v}}) }</style>", "<style>/* {{v}} */</style>",
        "<style>@import \"https://a.example{{v}}\"</style>", "<p style=\"width:expr\\65 ssion{{v}}\">",
    ])
    func `a value stands only in attributes that are known to take text or an address`(_ source: String) throws {
        let error = #expect(throws: TemplateError.self) { try Template(source, mode: .html) }
        #expect(error?.kind == .context && error?.line == 1, "\(error?.description ?? "-")")
    }

    @Test(arguments: [
        "https://shop.example{{v}}", "https://shop.example{{v}}/", "https://{{v}}", "https://{{v}}.example/",
        "https:{{v}}",
        "https:/{{v}}", "https:\\{{v}}", "HTTPS://a.example{{v}}", "ht\ttps://a.example{{v}}", "https://u@{{v}}/",
        "https://{{v}}@shop.example/", "https://shop.example:{{v}}/", "//{{v}}", "//shop.example{{v}}", "/\\{{v}}",
        "/ /{{v}}",
        "java{{v}}", "java{{v}}:x", "javascript&colon;{{v}}", "https&colon;//a.example{{v}}",
        "https://a.example&#46;{{v}}/",
        "https:///{{v}}", "https:?{{v}}", "app:{{v}}", "app://{{v}}", "{{v}}{{v}}", "{{v}}.example/{{v}}{{v}}//{{v}}",
        "{{v}}//{{v}}", "{{v}}/{{v}}/{{v}}", "/{{v}}/{{v}}", "{{#v}}https://a.example{{/v}}{{v}}",
        "https://a.example{{#v}}/x{{/v}}{{v}}", "{{#v}}https:{{/v}}//{{v}}", "{{#v}}https:{{/v}}/{{v}}",
        "{{#v}}/{{/v}}/{{v}}", "vbscript:{{v}}", "data:,{{v}}",
    ])
    func `no value decides where an address leads`(_ address: String) throws {
        let error = #expect(throws: TemplateError.self) { try Template("<a href=\"\(address)\">", mode: .html) }
        #expect(error?.kind == .context, "\(error?.description ?? "-")")
    }

    @Test(arguments: [
        ("https://shop.example/{{v}}", "https://shop.example/.evil.example"),
        ("https://shop.example?{{v}}", "https://shop.example?.evil.example"),
        ("https://shop.example#{{v}}", "https://shop.example#.evil.example"),
        ("https://shop.example:8443/a/{{v}}/{{v}}", "https://shop.example:8443/a/.evil.example/.evil.example"),
        ("mailto:{{v}}@shop.example", "mailto:.evil.example@shop.example"), ("cid:{{v}}", "cid:.evil.example"),
        ("/{{v}}", "/.evil.example"), ("/a/{{v}}/{{v}}", "/a/.evil.example/.evil.example"),
        ("#{{v}}", "#.evil.example"),
        ("a/{{v}}", "a/.evil.example"), ("app://open/{{v}}", "app://open/.evil.example"),
        ("{{#v}}https://a.example{{/v}}?{{v}}", "https://a.example?.evil.example"),
        ("https://a.example/{{#v}}x/{{/v}}{{v}}", "https://a.example/x/.evil.example"),
    ])
    func `a value behind the host stays behind it`(_ address: String, _ expected: String) throws {
        #expect(try Self.html("<a href=\"\(address)\">", ".evil.example") == "<a href=\"\(expected)\">")
    }

    @Test func `a whole address may go on behind its host`() throws {
        for (address, expected) in [
            ("{{v}}/x?y={{v}}", "https://a.example/x?y=https%3A%2F%2Fa.example"),
            ("{{v}}/{{v}}", "https://a.example/https%3A%2F%2Fa.example"),
            ("{{#v}}{{v}}{{/v}}/x/{{v}}", "https://a.example/x/https%3A%2F%2Fa.example"),
        ] {
            #expect(try Self.html("<a href=\"\(address)\">", "https://a.example") == "<a href=\"\(expected)\">")
        }
    }

    @Test func `known attributes take values, and foreign elements end`() throws {
        for name in ["title", "alt", "id", "class", "width", "bgcolor", "aria-label", "data-x"] {
            #expect(try Self.html("<td \(name)=\"{{v}}\">", "\"") == "<td \(name)=\"&quot;\">")
        }
        #expect(try Self.html("<svg><path d=\"M0\"/></svg><p>{{v}}", "<") == "<svg><path d=\"M0\"/></svg><p>&lt;")
        #expect(try Self.html("<style>@media (x) { a { width: {{v}} } }</style>", "1px").contains("width: 1px"))
    }

    @Test(arguments: [
        "<p title=\"{{#v}}a\">{{/v}}", "{{#v}}<p title={{/v}}x>", "<a {{#v}}href=\"{{/v}}x\">", "<!-- {{#v}}-->{{/v}}",
        "<a href=\"{{#v}}https://a.example/{{/v}}{{v}}\">", "<p title=\"x", "<p", "<!-- x",
    ])
    func `sections and tags do not cut into each other`(_ source: String) throws {
        #expect(throws: TemplateError.self) { try Template(source, mode: .html) }
    }

    @Test(arguments: ["javascript:x", "red; background: url(x)", "expression(1)", "a\"b", "/*"])
    func `a style takes plain values alone`(_ value: String) throws {
        let error = #expect(throws: TemplateError.self) { try Self.html("<p style=\"color:{{v}}\">", value) }
        #expect(error?.variable == "v")
    }

    @Test func `markup stands unescaped only where it is declared, and only in the text`() throws {
        #expect(try Self.html("<p>{{{v}}}</p>", "<b>x</b>", .html) == "<p><b>x</b></p>")
        #expect(try Self.html("<p>{{v}}</p>", "<b>", .html) == "<p>&lt;b&gt;</p>")
        #expect(try Self.html("{{#v}}{{{.}}}{{/v}}", "<b>", .html) == "<b>")
        for (source, kind) in [
            ("<p>{{{v}}}</p>", Variables.Kind.text), ("<p>{{&v}}</p>", .url), ("<p title=\"{{{v}}}\">", .html),
        ] {
            let error = #expect(throws: TemplateError.self) { try Self.html(source, "x", kind) }
            #expect(error?.kind == .context && error?.variable == "v")
        }
        #expect(throws: TemplateError.self) { try Self.html("{{{v}}}", "x", nil) }
    }

    @Test func `a mail calls no other template, knows what it declares, and takes no lambda`() throws {
        for source in ["{{>other}}", "{{<other}}{{/other}}", "{{>*v}}", "{{w}}", "{{v.w}}"] {
            for mode in [Templates.Template.Mode.html, .text] {
                #expect(throws: TemplateError.self) {
                    try Template(source, mode: mode, variables: Variables(["v": .init()]))
                }
            }
        }
        let error = #expect(throws: TemplateError.self) {
            try Template("a\n {{w}}", mode: .text, variables: Variables([:]))
        }
        #expect(error?.variable == "w" && error?.line == 2)
        #expect(throws: TemplateError.self) {
            try Template("{{v}}", mode: .text).render(["v": .lambda { _ in "{{secret}}" }])
        }
    }

    @Test func `a text stands as it is`() throws {
        let template = try Template("{{v}} {{{v}}}", mode: .text)
        #expect(String(decoding: try template.render(["v": "<&\"'>"]), as: UTF8.self) == "<&\"'> <&\"'>")
    }

    /// Whatever is put in, the tags of the result are those of the template.
    @Test func `no value adds a tag or an attribute`() throws {
        let source = "<p title=\"{{v}}\" id=\"{{v}}\">{{v}}<a href='https://a.example/?q={{v}}'>{{v}}</a></p>"
        let template = try Template(source, mode: .html)
        func shape(_ value: String) throws -> [Character] {
            String(decoding: try template.render(["v": .string(value)]), as: UTF8.self).filter {
                "<>\"'`".contains($0)
            }
        }
        let plain = try shape("x")
        for value in [
            "<script>", "\"><img src=x onerror=1>", "'", "`", "a b c", "=\n\t", "\u{0}", "é<", "\\\"", "&#34;>",
        ] {
            #expect(try shape(value) == plain, "\(value)")
        }
    }
}
