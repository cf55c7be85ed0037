package import JSON
package import Listeners

/// The pages behind a contact's signed link, for a phone and without script. In English or German, as the reader's profile says.
package enum AlarmPage {
    /// Asks once more: an answer by mistake would end the alarm for everybody.
    static let asksWhetherSafe = "ask_safe"

    static func isAnswer(_ name: String) -> Bool { ["on_my_way", "acknowledged", "cannot", "safe"].contains(name) }

    package static func alarm(_ facts: JSONValue) -> Response {
        let words = PageWords(facts)
        var body = "<h1>\(escaped(facts["title"]?.text ?? ""))</h1><p>\(escaped(facts["body"]?.text ?? ""))</p>"
        if case .array(let answers)? = facts["answers"], !answers.isEmpty {
            body += "<h2>\(words.answersSoFar)</h2><ul>"
            for one in answers {
                let name = one["name"]?.text ?? one["contact"]?.text ?? ""
                let time = one["local"]?.text ?? one["at"]?.text ?? ""
                body += "<li>\(escaped(name)): \(words.label(one["answer"]?.text ?? "")) (\(escaped(time)))</li>"
            }
            body += "</ul>"
        }
        if facts["state"]?.text != "resolved" {
            body +=
                "<h2>\(words.yourAnswer)</h2>"
                + form(
                    ["on_my_way", "acknowledged", "cannot"].map { ($0, words.label($0)) }
                        + [(asksWhetherSafe, words.label("safe"))])
        }
        return html(facts["test"] == .bool(true) ? words.test : words.alarm, body, words)
    }

    static func safetyQuestion(_ facts: JSONValue) -> Response {
        let words = PageWords(facts)
        return html(
            words.alarm,
            "<h1>\(words.isItTrue)</h1><p>\(words.thenItEnds)</p>"
                + form([("safe", words.yesSafe)]) + "<p><a href=\"\">\(words.back)</a></p>", words)
    }

    package static func consent(_ facts: JSONValue) -> Response {
        let words = PageWords(facts)
        let never = ("never", words.neverAgain)
        switch facts["consent"]?.text {
        case "never":
            return html(words.beingAContact, "<h1>\(words.never)</h1><p>\(words.nobodyCanAsk)</p>", words)
        case "over":
            return html(
                words.beingAContact, "<h1>\(words.beingAContact)</h1><p>\(words.questionIsOver)</p>" + form([never]),
                words)
        case let consent:
            let person = escaped(facts["name"]?.text ?? facts["person"]?.text ?? "")
            let said = consent == "given" ? words.saidYes : consent == "declined" ? words.saidNo : nil
            return html(
                words.beingAContact,
                "<h1>\(words.beingAContact(of: person))</h1><p>\(words.asks(person))</p>"
                    + (said.map { "<p>\($0)</p>" } ?? "")
                    + form([("yes", words.yesTellMe), ("no", words.no), never]), words)
        }
    }

    static func unknownLink(_ words: PageWords) -> Response {
        html(words.unknownLink, "<h1>\(words.unknownLink)</h1><p>\(words.notOurs)</p>", words, status: 404)
    }

    static func unknownAnswer(_ words: PageWords) -> Response {
        html(
            words.unknownAnswer,
            "<h1>\(words.unknownAnswer)</h1><p>\(words.noAnswerOfOurs)</p><p><a href=\"\">\(words.back)</a></p>", words,
            status: 400)
    }

    /// Beside the pages, so that a proxy which lets those through lets this through as well.
    static let stylesheet = (name: "page.css", response: Response.text(style, type: "text/css; charset=utf-8"))

    /// Buttons are 52 pixels high and as wide as the page; nothing loads late, so nothing moves.
    static let style = """
        :root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #bbb; --accent: #0b57d0; --on: #fff }
        @media (prefers-color-scheme: dark) {
            :root { --ink: #eee; --paper: #121212; --line: #555; --accent: #a8c7fa; --on: #062e6f }
        }
        * { box-sizing: border-box }
        body { margin: 0 auto; max-width: 34rem; padding: 1.25rem; color: var(--ink); background: var(--paper);
            font: 1.0625rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
        h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem }
        h2 { font-size: 1.125rem; margin: 1.5rem 0 .5rem }
        form p { margin: .75rem 0 }
        button, a { display: block; width: 100%; min-height: 52px; padding: 14px; border-radius: 10px; text-align: center;
            font: inherit; font-weight: 600 }
        button { border: 1px solid var(--accent); background: var(--accent); color: var(--on) }
        a { border: 1px solid var(--line); color: var(--ink); text-decoration: none }

        """

    private static func form(_ answers: [(name: String, label: String)]) -> String {
        "<form method=\"post\">"
            + answers.map { "<p><button name=\"answer\" value=\"\($0.name)\">\($0.label)</button></p>" }.joined()
            + "</form>"
    }

    package static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }

    private static func html(_ title: String, _ body: String, _ words: PageWords, status: Int = 200) -> Response {
        var response = Response.text(
            "<!doctype html><html lang=\"\(words.language)\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                + "<title>\(title)</title><link rel=\"stylesheet\" href=\"\(stylesheet.name)\"><body>\(body)</body></html>",
            status: status, type: "text/html; charset=utf-8")
        response.headers.append(
            Header(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"))
        return response
    }
}
