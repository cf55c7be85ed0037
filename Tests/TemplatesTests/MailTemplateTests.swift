import Templates
import Testing

@Suite struct MailTemplateTests {
    static func source(
        subject: String = "Hello {{name}}", html: String? = "<p>{{name}}</p>", plain: String = "Hello {{name}}",
        variables: String = #"{"name": {"required": true, "max": 5}}"#, locale: String = "en"
    ) -> MailSource {
        MailSource(
            name: "hello", locale: locale, version: 3, subject: subject, html: html, plain: plain,
            variables: Array(variables.utf8))
    }

    @Test func `a mail is a subject, HTML and text`() throws {
        let mail = try MailTemplate(Self.source()).render(["name": "<A>", "other": ["x"]])
        #expect(
            mail
                == RenderedMail(
                    subject: "Hello <A>", html: "<p>&lt;A&gt;</p>", text: "Hello <A>", version: 3, locale: "en"))
        #expect(try MailTemplate(Self.source(html: nil)).render(["name": "A"]).html == nil)
    }

    @Test(arguments: [
        (#"{}"#, "missing"), (#"{"name": null}"#, "missing"), (#"{"name": " "}"#, "missing"),
        (#"{"name": "secret"}"#, "longer"),
        (#"{"name": []}"#, "type"), (#"{"name": {"a": 1}}"#, "type"),
    ])
    func `what is required and of what kind is checked, and the refusal names the variable alone`(
        _ data: String, _ says: String
    ) throws {
        let error = #expect(throws: TemplateError.self) {
            try MailTemplate(Self.source()).render(TemplateValue(json: data))
        }
        #expect(error?.kind == .data && error?.variable == "name" && error?.sentence.contains(says) == true)
        #expect(error?.description.contains("secret") == false)
        #expect(throws: TemplateError.self) { try MailTemplate(Self.source()).render([1]) }
    }

    @Test func `a list is gone through, and each entry has its own fields`() throws {
        let template = try MailTemplate(
            Self.source(
                html:
                    "<ul>{{#rows}}<li>{{item}}{{#note}} ({{note}}){{/note}} {{name}}</li>{{/rows}}</ul>{{^rows}}none{{/rows}}",
                plain: "{{#rows}}{{item}};{{/rows}}",
                variables:
                    #"{"name": {}, "note": {}, "rows": {"type": "list", "max": 3, "of": {"item": {"required": true, "max": 5}, "note": {}, "n": {"type": "number"}}}}"#
            ))
        let mail = try template.render([
            "name": "A", "note": "outer", "rows": [["item": "<x>", "note": "n"], ["item": 7, "other": "z"]],
        ])
        // A field that is empty is not looked for outside.
        #expect(mail.html == "<ul><li>&lt;x&gt; (n) A</li><li>7 A</li></ul>" && mail.text == "<x>;7;")
        #expect(try template.render(["name": "A"]).html == "<ul></ul>none")
        for (rows, says) in [
            ("1", "is not of the type list"), (#"["a"]"#, "an entry that is not an object"),
            (#"[{}]"#, "item is missing"),
            (#"[{"item": "longer"}]"#, "item is longer"), (#"[{"item": "a", "n": "x"}]"#, "n is not a number"),
            (#"[{"item": "a"}, {"item": "a"}, {"item": "a"}, {"item": "a"}]"#, "has more than 3 entries"),
        ] {
            let error = #expect(throws: TemplateError.self) {
                try template.render(TemplateValue(json: #"{"name": "A", "rows": \#(rows)}"#))
            }
            #expect(error?.sentence.contains(says) == true, "\(error?.sentence ?? "-")")
        }
    }

    @Test(arguments: [
        ("{{rows}}", "the variable rows is a list"), ("{{#rows}}{{.}}{{/rows}}", "a dot stands for an entry"),
        ("{{item}}", "the variable item is not declared"), ("{{#rows}}{{price}}{{/rows}}", "price is not declared"),
        ("{{#rows}}{{{item}}}{{/rows}}", "the variable item stands unescaped"), ("{{rows.item}}", "is not declared"),
    ])
    func `a template uses a list as a list, and its fields within`(_ html: String, _ says: String) {
        let error = #expect(throws: TemplateError.self) {
            try MailTemplate(
                Self.source(
                    subject: "s", html: html, plain: "t",
                    variables: #"{"rows": {"type": "list", "of": {"item": {}, "mark": {"type": "html"}}}}"#))
        }
        #expect(error?.sentence.contains(says) == true, "\(error?.sentence ?? "-")")
    }

    @Test func `kinds are checked`() throws {
        let variables = Variables(["n": .init(kind: .number), "u": .init(kind: .url), "t": .init()])
        #expect(throws: Never.self) { try variables.check(["n": "1.5", "u": "https://a.example", "t": 7]) }
        #expect(throws: Never.self) { try variables.check(["n": 2]) }
        for data: TemplateValue in [["n": "x"], ["n": "1 2"], ["n": true], ["u": "ftp://a"], ["u": []]] {
            #expect(throws: TemplateError.self) { try variables.check(data) }
        }
    }

    @Test(arguments: ["a\r\nBcc: x@y.example", "a\nb", "a\u{85}b", "a\u{2028}b", "a\u{0}", "\r"])
    func `no value makes a subject of several lines`(_ value: String) throws {
        let template = try MailTemplate(Self.source(variables: #"{"name": {}}"#))
        let error = #expect(throws: TemplateError.self) { try template.render(["name": .string(value + "x")]) }
        #expect(error?.part == "subject" && error?.kind == .data)
    }

    @Test(arguments: [
        "[]", "x", #"{"1a": {}}"#, #"{"a": 1}"#, #"{"a": {"type": "date"}}"#, #"{"a": {"required": 1}}"#,
        #"{"a": {"max": 0}}"#,
        #"{"a": {"max": 1.5}}"#, #"{"a": {"maximum": 5}}"#, #"{"a": {"type": "list"}}"#, #"{"a": {"of": {"b": {}}}}"#,
        #"{"a": {"type": "list", "of": {}}}"#,
        #"{"a": {"type": "list", "of": {"b": {"type": "list", "of": {"c": {}}}}}}"#,
    ])
    func `malformed variables are refused`(_ json: String) {
        #expect(throws: TemplateError.self) { try Variables(json: Array(json.utf8)) }
    }

    @Test(arguments: [
        ("pt-BR", "de", ["pt-BR", "pt", "de", "en"]), ("en", "en", ["en"]),
        ("zh-Hant-TW", "en-GB", ["zh-Hant-TW", "zh-Hant", "zh", "en-GB", "en"]),
    ])
    func `a locale leads to its language, to the default and to English`(
        _ locale: String, _ fallback: String, _ chain: [String]
    ) {
        #expect(LocaleChain.of(locale, fallback: fallback) == chain)
    }

    @Test func `locales are of one form`() {
        for good in ["en", "pt-BR", "zh-Hant-TW", "es-419", "ckb", "sr-Latn"] { #expect(LocaleChain.isLocale(good)) }
        for bad in ["", "e", "EN", "en_US", "en-us", "en-", "en-US-x", "../en", "en\n"] {
            #expect(!LocaleChain.isLocale(bad))
        }
    }
}

@Suite struct LintTests {
    @Test func `a good template has no findings`() {
        #expect(Lint.findings(MailTemplateTests.source()).isEmpty)
    }

    @Test(arguments: [
        ("html", 2, "declared", "<p>\n{{who}} {{name}}</p>"),
        ("html", 1, "never closed", "<p>{{#name}}"),
        ("html", 1, "unescaped", "<p>{{{name}}}</p>"),
        ("html", 1, "runs code", "<a href=\"javascript:x()\">{{name}}</a>"),
        ("html", 1, "quotes", "<p title={{name}}>"),
        ("html", 2, "outside", "{{name}}\n<img src=\"https://a.example/i.png\" alt=\"x\">"),
        ("html", 1, "alt", "{{name}}<img src=\"cid:i\">"),
        ("html", 3, "<script>", "{{name}}\n\n<script>x</script>"),
        ("html", 1, "<form>", "{{name}}<form></form>"),
        ("html", 1, "onclick", "{{name}}<p onclick=\"x\"></p>"),
        ("html", 1, "outside", "{{name}}<body background=\"//a.example/i.png\">"),
        ("html", 1, "<link>", "{{name}}<link rel=\"stylesheet\" href=\"https://a.example/s.css\">"),
        ("html", 1, "cannot include another one", "{{name}}{{>footer}}"),
    ])
    func `each finding has its place and what to do`(
        _ part: String, _ line: Int, _ says: String, _ html: String
    ) throws {
        let findings = Lint.findings(MailTemplateTests.source(html: html))
        let found = findings.filter { $0.sentence.contains(says) }
        #expect(found.contains { $0.part == part && $0.line == line && !$0.hint.isEmpty }, "\(findings)")
    }

    @Test func `the whole is looked at too`() {
        func says(_ source: MailSource, _ part: String, _ text: String) -> Bool {
            Lint.findings(source).contains { $0.part == part && $0.sentence.contains(text) }
        }
        #expect(says(MailTemplateTests.source(plain: " \n"), "text", "no text part"))
        #expect(says(MailTemplateTests.source(subject: "a\nb {{name}}"), "subject", "line break"))
        #expect(says(MailTemplateTests.source(subject: ""), "subject", "no subject"))
        #expect(
            says(
                MailTemplateTests.source(html: "{{name}}" + String(repeating: "x", count: 104_448)), "html",
                "more than 104448"))
        #expect(says(MailTemplateTests.source(locale: "ar"), "html", "right to left"))
        #expect(says(MailTemplateTests.source(variables: "[]"), "variables", "object"))
        #expect(says(MailTemplateTests.source(variables: #"{"name": {}, "idle": {}}"#), "variables", "idle"))
        // All of them, not only the first.
        let two = Lint.findings(MailTemplateTests.source(html: "{{a}}\n{{b}}\n<p {{name}}>"))
        #expect(two.filter { $0.part == "html" }.map(\.line) == [1, 2, 3])
    }
}
