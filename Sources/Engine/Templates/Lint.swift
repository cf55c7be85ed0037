/// A finding about a mail template before it is published.
package struct LintFinding: Sendable, Equatable {
    /// subject, html, text or variables.
    package var part: String
    package var line: Int
    package var sentence: String
    package var hint: String
}

package enum Lint {
    /// How much of a mail's HTML Gmail shows.
    package static let mostHTML = 102 * 1024

    package static func findings(_ source: MailSource) -> [LintFinding] {
        var findings: [LintFinding] = []
        func found(_ part: String, _ error: TemplateError) {
            findings.append(
                LintFinding(part: part, line: error.line ?? 1, sentence: error.sentence, hint: error.hint ?? "mend it"))
        }
        var variables: Variables?
        do throws(TemplateError) {
            variables = try Variables(json: source.variables)
        } catch {
            found("variables", error)
        }
        var used: Set<String> = []
        for (part, text) in [("subject", source.subject), ("html", source.html ?? ""), ("text", source.plain)] {
            do throws(TemplateError) {
                let program = try Program(Array(text.utf8), limits: Limits())
                used.formUnion(program.paths.map(\.text))
                findings += self.findings(program, part, variables)
            } catch {
                found(part, error)
            }
        }
        findings += shape(source)
        if let variables, !findings.contains(where: { $0.sentence.contains("never closed") }) {
            for name in variables.all.keys.sorted() where !used.contains(name) {
                findings.append(
                    LintFinding(
                        part: "variables", line: 1, sentence: "the variable \(name) is declared but never used",
                        hint: "take it out, or use it"))
            }
        }
        return findings
    }

    private static func findings(_ program: Program, _ part: String, _ variables: Variables?) -> [LintFinding] {
        var problems: [TemplateError] = program.mailProblems(variables)
        var findings: [LintFinding] = []
        if part == "html" {
            let review = program.review(variables)
            problems += review.problems
            for (notice, place) in review.notices {
                guard let (sentence, hint) = words(for: notice) else { continue }
                findings.append(
                    LintFinding(
                        part: part, line: SourcePosition(program.source, place).line, sentence: sentence, hint: hint))
            }
        }
        findings += problems.map {
            LintFinding(part: part, line: $0.line ?? 1, sentence: $0.sentence, hint: $0.hint ?? "mend it")
        }
        return findings.sorted { $0.line < $1.line }
    }

    private static let unwanted: Set<String> = [
        "script", "form", "input", "button", "select", "textarea", "iframe", "frame", "object", "embed", "applet",
        "video", "audio", "base", "link",
    ]

    private static func words(for notice: Markup.Notice) -> (String, String)? {
        switch notice {
        case .element(let name):
            unwanted.contains(name)
                ? ("<\(name)> does nothing in a mail, or makes it suspect", "take it out; link to a page instead") : nil
        case .handler(let name): ("the attribute \(name) is code", "take it out: no mail reader runs it")
        case .remote(let name):
            (
                "<\(name)> is fetched from outside, which tells who read the mail",
                "attach it and use cid:, or do without"
            )
        case .address:
            ("an address that begins with javascript:, vbscript: or data: runs code", "link to a page with https:")
        case .imageWithoutText:
            ("an image has no alt text", "describe in alt what it shows; alt=\"\" where it is only decoration")
        }
    }

    private static func shape(_ source: MailSource) -> [LintFinding] {
        var findings: [LintFinding] = []
        func add(_ part: String, _ sentence: String, _ hint: String) {
            findings.append(LintFinding(part: part, line: 1, sentence: sentence, hint: hint))
        }
        func isBlank(_ text: String) -> Bool { !text.contains { !$0.isWhitespace } }
        if isBlank(source.subject) { add("subject", "there is no subject", "write one line") }
        if source.subject.unicodeScalars.contains(where: { $0.value < 0x20 }) {
            add("subject", "the subject has a line break or another control character", "write one line")
        }
        if source.subject.count > 998 { add("subject", "the subject is longer than 998 characters", "shorten it") }
        if isBlank(source.plain) {
            add("text", "there is no text part", "give the same in plain text: some mail programs show nothing else")
        }
        for (part, text) in [("html", source.html ?? ""), ("text", source.plain)] where text.utf8.count > mostHTML {
            add(
                part, "it has \(text.utf8.count) bytes, more than \(mostHTML)",
                "Gmail cuts off what is longer: take something out")
        }
        if let html = source.html {
            if isBlank(html) { add("html", "the HTML part is empty", "write it, or do without") }
            if LocaleChain.isRightToLeft(source.locale), !html.contains("dir=\"rtl\"") {
                add(
                    "html", "\(source.locale) is written from right to left, and the HTML does not say so",
                    "write <html lang=\"\(source.locale)\" dir=\"rtl\">")
            }
        }
        return findings
    }
}
