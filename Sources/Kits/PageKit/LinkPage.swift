package import Listeners

/// What the pages behind signed links have in common: for a phone and without script, and nothing from elsewhere.
package enum LinkPage {
    /// Beside the pages, so that a proxy which lets those through lets this through as well.
    package static let stylesheet = (name: "page.css", response: Response.text(style, type: "text/css; charset=utf-8"))

    /// Buttons are 52 pixels high and as wide as the page; nothing loads late, so nothing moves.
    private static let style = """
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
        button.second { border-color: var(--line); background: var(--paper); color: var(--ink) }
        a { border: 1px solid var(--line); color: var(--ink); text-decoration: none }
        dl { margin: 0 }
        dt { font-weight: 600 }
        dd { margin: 0 0 .5rem; white-space: pre-line }
        dd dl, dd ol { margin: 0; padding-inline-start: 1rem; border-inline-start: 2px solid var(--line) }
        dd ol, li dl { padding-inline-start: 1.5rem }
        textarea { display: block; width: 100%; min-height: 6rem; padding: .5rem; border: 1px solid var(--line);
            border-radius: 10px; background: var(--paper); color: var(--ink); font: inherit }

        """

    package static func html(_ title: String, _ body: String, _ words: PageWords, status: Int = 200) -> Response {
        var response = Response.text(
            "<!doctype html><html lang=\"\(words.language)\" dir=\"\(words.direction)\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                + "<title>\(title)</title><link rel=\"stylesheet\" href=\"\(stylesheet.name)\"><body>\(body)</body></html>",
            status: status, type: "text/html; charset=utf-8")
        response.headers.append(
            Header(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"))
        return response
    }

    package static func unknownLink(_ words: PageWords) -> Response {
        html(words.unknownLink, "<h1>\(words.unknownLink)</h1><p>\(words.notOurs)</p>", words, status: 404)
    }

    package static func unknownAnswer(_ words: PageWords) -> Response {
        problem(words.unknownAnswer, words.noAnswerOfOurs, words)
    }

    /// What was sent cannot be taken; the way back leads to the page as it is.
    package static func problem(_ title: String, _ sentence: String, _ words: PageWords) -> Response {
        html(
            title, "<h1>\(title)</h1><p>\(sentence)</p><p><a href=\"\">\(words.back)</a></p>", words, status: 400)
    }

    /// In order, also among words that are written from right to left.
    package static func time(_ text: String) -> String { "<bdi dir=\"ltr\">\(escaped(text))</bdi>" }

    package static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }
}
