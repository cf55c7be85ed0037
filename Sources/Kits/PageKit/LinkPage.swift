package import Listeners

/// What the pages behind signed links have in common: for a phone and without script, and nothing from elsewhere.
package enum LinkPage {
    /// Beside the pages, so that a proxy which lets those through lets this through as well.
    package static let stylesheet = (name: "page.css", response: Response.text(style, type: "text/css; charset=utf-8"))

    /// Buttons are 52 pixels high; nothing loads late, so nothing moves. The colours are those of the console, see its DESIGN.md.
    private static let style = """
        :root { color-scheme: light dark; --ink: #171a21; --quiet: #596273; --paper: #fff; --sheet: #f6f7f9; --line: #dcdfe5;
            --edge: #858d9b; --accent: #4149c2; --on: #fff; --bad: #b32318; --bad-tint: #fdebe9; --good: #17703c; --good-tint: #e6f4eb }
        @media (prefers-color-scheme: dark) {
            :root { --ink: #e7e9ee; --quiet: #9aa3b3; --paper: #15181e; --sheet: #0e1014; --line: #2c313c; --edge: #6d7686;
                --accent: #a9b2ff; --on: #12142e; --bad: #ff9187; --bad-tint: #351815; --good: #5ed08b; --good-tint: #11271a }
        }
        * { box-sizing: border-box }
        html { scrollbar-gutter: stable }
        body { margin: 0; min-height: 100vh; color: var(--ink); background: var(--sheet); overflow-wrap: anywhere;
            font: 1.0625rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif }
        body > * { max-width: 36rem; margin-inline: auto; padding-inline: 1.25rem }
        h1, h2, p, dl, ul, ol { margin: 0 }
        h1 { font-size: 1.625rem; line-height: 1.25; letter-spacing: -.01em; margin-block: 0 .75rem; text-wrap: balance }
        h2 { font-size: 1.0625rem; margin-block: 1.75rem .5rem }
        p + p { margin-block-start: .75rem }
        .skip { position: absolute; inset-inline-start: -999px; padding: 1rem; background: var(--paper) }
        .skip:focus { inset-inline-start: 0; top: 0 }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
        header { display: flex; align-items: center; gap: .75rem; padding-block: 1rem; color: var(--quiet); font-size: .9375rem; line-height: 1.35 }
        header strong { display: block; color: var(--ink); font-size: 1.0625rem }
        .seal { flex: none; width: 2.5rem; height: 2.5rem; border-radius: 10px; display: grid; place-items: center;
            background: var(--accent); color: var(--on); font-weight: 700; font-size: 1.125rem }
        main { background: var(--paper); padding-block: 1.5rem; border-block: 1px solid var(--line) }
        main:focus { outline: none }
        footer { padding-block: 1.25rem 2rem; color: var(--quiet); font-size: .9375rem }
        footer a[aria-current] { color: var(--ink); font-weight: 600; text-decoration: none }
        footer nav { display: flex; flex-wrap: wrap }
        footer a { color: inherit; display: inline-block; vertical-align: middle; min-height: 44px; min-width: 44px; padding-block: .65rem; margin-inline-end: .75rem }
        .quiet { color: var(--quiet); font-size: .9375rem }
        .tag { display: inline-flex; align-items: center; gap: .5rem; padding: .1rem .7rem; border-radius: 1rem; margin-block-end: .75rem;
            font-weight: 600; font-size: .9375rem; background: var(--sheet) }
        .tag::before { content: ""; width: .6rem; height: .6rem; border-radius: 50%; background: currentcolor }
        .tag.bad { color: var(--bad); background: var(--bad-tint) }
        .tag.good { color: var(--good); background: var(--good-tint) }
        blockquote { margin: 1rem 0 0; padding: .75rem 1rem; background: var(--sheet); border-inline-start: 4px solid var(--edge); border-radius: 6px }
        blockquote p + p, blockquote .quiet + p { margin-block-start: .15rem }
        blockquote > :last-child { white-space: pre-line }
        .urgent { margin-block-start: 1.25rem; padding: .9rem 1rem; border: 1px solid var(--bad); border-radius: 10px }
        form { margin: 0 }
        form p, .answers, form + .quiet { margin-block-start: .75rem }
        button, .button { display: flex; align-items: center; justify-content: center; width: 100%; min-height: 52px; padding: 12px 16px;
            border-radius: 10px; text-align: center; font: inherit; font-weight: 600; text-decoration: none; cursor: pointer;
            border: 1px solid var(--edge); background: var(--paper); color: var(--ink) }
        button:hover, .button:hover { background: var(--sheet) }
        .first, .first:hover { border-color: var(--accent); background: var(--accent); color: var(--on) }
        .call, .call:hover { border-color: var(--bad); background: var(--paper); color: var(--bad); margin-block-start: .6rem }
        .aside { margin-block-start: 1.75rem; padding-block-start: 1.25rem; border-block-start: 1px solid var(--line) }
        .aside button { font-weight: 400 }
        .grave { border-color: var(--bad); color: var(--bad) }
        .pair { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; margin-block-start: .75rem }
        .bar { position: sticky; bottom: 0; background: var(--paper); border-block-start: 1px solid var(--line); margin: 1.25rem -1.25rem 0;
            padding: .75rem 1.25rem }
        summary { min-height: 44px; padding-block: .6rem; cursor: pointer; color: var(--quiet) }
        ul.plain { padding-inline-start: 1.25rem; margin-block: .75rem }
        .plain li { margin-block: .25rem }
        dl.facts { display: grid; grid-template-columns: fit-content(40%) minmax(0, 1fr); gap: .35rem 1.25rem }
        dt { color: var(--quiet) }
        dd { margin: 0; white-space: pre-line }
        dd dl.facts { gap: .35rem .85rem; padding-inline-start: .85rem; border-inline-start: 2px solid var(--line) }
        dd ol { padding-inline-start: 1.5rem }
        time, .sum { font-variant-numeric: tabular-nums }
        textarea { display: block; width: 100%; min-height: 5rem; padding: .6rem .75rem; border: 1px solid var(--edge); border-radius: 10px;
            background: var(--paper); color: var(--ink); font: inherit }
        @media (min-width: 40rem) {
            body { padding-block: 2rem }
            body > * { padding-inline: 2rem }
            main { border: 1px solid var(--line); border-radius: 14px; padding-block: 2rem }
            .bar { position: static; margin-inline: 0; padding-inline: 0 }
        }
        @media print { .bar, form, .skip { display: none } }

        """

    /// - Parameter title: the heading, without marks in it: what a reader hears first.
    package static func html(_ title: String, _ body: String, _ frame: PageFrame, status: Int = 200) -> Response {
        let words = frame.words
        var response = Response.text(
            "<!doctype html><html lang=\"\(words.language)\" dir=\"\(words.direction)\"><head><meta charset=\"utf-8\">"
                + "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>\(title)</title>"
                + "<link rel=\"stylesheet\" href=\"\(stylesheet.name)\"></head><body>"
                + "<a class=\"skip\" href=\"#main\">\(words.skip)</a>\(banner(frame))"
                + "<main id=\"main\" tabindex=\"-1\">\(body)</main>\(foot(frame))</body></html>",
            status: status, type: "text/html; charset=utf-8")
        response.headers.append(
            Header(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"))
        return response
    }

    /// Who is asking.
    private static func banner(_ frame: PageFrame) -> String {
        guard let name = frame.host.name, let first = name.first(where: \.isLetter) else {
            return "<header><span>\(frame.words.personalPage)</span></header>"
        }
        return "<header><span class=\"seal\" aria-hidden=\"true\">\(escaped(String(first).uppercased()))</span>"
            + "<span><strong><bdi>\(escaped(name))</bdi></strong>\(frame.words.personalPage)</span></header>"
    }

    /// Whom to write to, and the other languages.
    private static func foot(_ frame: PageFrame) -> String {
        var out = "<footer>"
        if let contact = frame.host.contact {
            let name = frame.host.name.map { shown($0) } ?? frame.words.theOperator
            let address = escaped(contact)
            out +=
                "<p>\(frame.words.questionsTo(name)) <a href=\"mailto:\(address)\"><bdi dir=\"ltr\">\(address)</bdi></a></p>"
        }
        if let path = frame.path {
            out +=
                "<nav aria-label=\"\(frame.words.languages)\">"
                + PageWords.languages.map {
                    "<a href=\"\(escaped(path))?language=\($0)\" lang=\"\($0)\" hreflang=\"\($0)\"\($0 == frame.words.language ? " aria-current=\"page\"" : "")>\(PageWords.name(of: $0))</a>"
                }.joined() + "</nav>"
        }
        return out + (frame.host.contact == nil && frame.path == nil ? "<p>\(frame.words.onlyForYou)</p>" : "")
            + "</footer>"
    }

    package static func unknownLink(_ frame: PageFrame) -> Response {
        let words = frame.words
        return html(words.unknownLink, "<h1>\(words.unknownLink)</h1><p>\(words.notOurs)</p>", frame, status: 404)
    }

    package static func unknownAnswer(_ frame: PageFrame, back: String) -> Response {
        problem(frame.words.unknownAnswer, frame.words.noAnswerOfOurs, frame, back: back)
    }

    /// What was sent cannot be taken; the way back leads to the page as it is.
    package static func problem(_ title: String, _ sentence: String, _ frame: PageFrame, back: String) -> Response {
        html(
            title, "<h1>\(title)</h1><p>\(sentence)</p><p>\(backLink(frame, to: back))</p>", frame, status: 400)
    }

    package static func backLink(_ frame: PageFrame, to path: String) -> String {
        "<a class=\"button\" href=\"\(escaped(path))\">\(frame.words.back)</a>"
    }

    /// A button that answers. The first is what most people came for; a plain one is as good; a grave one cannot be taken back.
    package enum Weight: String {
        case first
        case plain = ""
        case grave
    }

    package static func button(_ answer: String, _ label: String, _ weight: Weight = .plain) -> String {
        let style = weight == .plain ? "" : " class=\"\(weight.rawValue)\""
        return "<button\(style) name=\"answer\" value=\"\(answer)\">\(label)</button>"
    }

    /// A form of such buttons, one below the other.
    package static func answers(_ buttons: [String]) -> String {
        "<form method=\"post\">" + buttons.map { "<p>\($0)</p>" }.joined() + "</form>"
    }

    /// Where to call, if somebody is in danger and the service has a number.
    package static func emergency(_ frame: PageFrame) -> String {
        guard let number = frame.host.emergency else { return "" }
        let dialled = number.filter { $0.isNumber || $0 == "+" }
        return "<section class=\"urgent\"><p>\(frame.words.ifInDanger)</p>"
            + "<a class=\"button call\" href=\"tel:\(dialled)\">\(frame.words.call)&nbsp;<bdi dir=\"ltr\">\(escaped(number))</bdi></a></section>"
    }

    /// Of others: escaped, and with a direction of its own.
    package static func shown(_ text: String) -> String { "<bdi>\(escaped(text))</bdi>" }

    /// `2026-11-28 19:03 (Europe/Vienna)` as the language writes it, and in order also among words that are written from right to left.
    package static func time(_ text: String, _ words: PageWords) -> String {
        let parts = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard var out = parts.first.flatMap({ words.day($0) }) else { return "<bdi dir=\"ltr\">\(escaped(text))</bdi>" }
        if parts.count > 1 { out += words.comma + escaped(parts[1]) }
        if parts.count > 2 { out += " <bdi dir=\"ltr\">\(escaped(parts[2]))</bdi>" }
        return "<bdi>\(out)</bdi>"
    }

    /// Behind “at” or “by” in a sentence: `19:03 on 28 November 2026 (Europe/Vienna)`.
    package static func timeWithin(_ text: String, _ words: PageWords) -> String {
        let parts = text.split(separator: " ", maxSplits: 2).map(String.init)
        guard parts.count == 3, let day = words.day(parts[0]) else { return time(text, words) }
        return "<bdi>\(escaped(parts[1])) \(words.say("on", "am", "يوم")) \(day)"
            + " <bdi dir=\"ltr\">\(escaped(parts[2]))</bdi></bdi>"
    }

    package static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }
}
