package import JSON
package import Listeners
package import PageKit

/// The pages behind a contact's signed link, for a phone and without script. In English, German or Arabic, as the reader chooses there, or as
/// the reader's profile says.
package enum AlarmPage {
    /// These ask once more: an answer by mistake would end the alarm for everybody, or all questions to this address.
    static let asksWhetherSafe = "ask_safe"
    static let asksWhetherNever = "ask_never"

    static func isAnswer(_ name: String) -> Bool { ["on_my_way", "acknowledged", "cannot", "safe"].contains(name) }

    package static func alarm(_ facts: JSONValue, _ given: PageFrame? = nil) -> Response {
        let frame = given ?? PageFrame(PageWords(facts))
        let words = frame.words
        let isTest = facts["test"] == .bool(true)
        let isOver = facts["state"]?.text == "resolved"
        let name = LinkPage.shown(facts["name"]?.text ?? facts["person"]?.text ?? "")
        let tag = isOver ? (words.isOver, "good") : isTest ? (words.test, "") : (words.alarm, "bad")
        var body = "<p class=\"tag \(tag.1)\">\(tag.0)</p><h1 dir=\"auto\">\(escaped(facts["title"]?.text ?? ""))</h1>"
        body += "<p dir=\"auto\">\(sentence(facts["body"]?.text ?? "", words))</p>"
        if let note = facts["note"]?.text, !note.isEmpty {
            body +=
                "<blockquote><p class=\"quiet\">\(words.note(by: name))</p><p dir=\"auto\">\(escaped(note))</p></blockquote>"
        }
        if !isOver, !isTest { body += LinkPage.emergency(frame) }
        if !isOver { body += answers(words) }
        if let place = AlarmPlace(facts["place"]) { body += place.html(words) }
        body += answersSoFar(facts, words)
        body += "<p class=\"aside quiet\">\(words.whyYou(name))</p>"
        return LinkPage.html(escaped(facts["title"]?.text ?? words.alarm), body, frame)
    }

    /// A sentence of ours, with the times in it as the language writes them.
    private static func sentence(_ text: String, _ words: PageWords) -> String {
        var out = ""
        var rest = text.startIndex
        for found in text.matches(of: /\d{4}-\d\d-\d\d \d\d:\d\d \([A-Za-z0-9_+\-\/]+\)/) {
            out += escaped(String(text[rest..<found.range.lowerBound]))
            out += LinkPage.timeWithin(String(text[found.range]), words)
            rest = found.range.upperBound
        }
        return out + escaped(String(text[rest...]))
    }

    /// The first is what helps most; that all is well stands apart, for it ends the alarm.
    private static func answers(_ words: PageWords) -> String {
        "<h2>\(words.yourAnswer)</h2><p class=\"quiet\">\(words.whoSeesIt)</p>"
            + LinkPage.answers([
                LinkPage.button("on_my_way", words.label("on_my_way"), .first),
                LinkPage.button("acknowledged", words.label("acknowledged")),
                LinkPage.button("cannot", words.label("cannot")),
            ])
            + "<section class=\"aside\"><p class=\"quiet\">\(words.onlyIfYouKnow)</p>"
            + LinkPage.answers([LinkPage.button(asksWhetherSafe, words.label("safe"))]) + "</section>"
    }

    private static func answersSoFar(_ facts: JSONValue, _ words: PageWords) -> String {
        guard case .array(let answers)? = facts["answers"], !answers.isEmpty else { return "" }
        let items = answers.map { one in
            let name = one["name"]?.text ?? one["contact"]?.text ?? ""
            let time = one["local"]?.text ?? one["at"]?.text ?? ""
            return
                "<li><bdi>\(escaped(name))</bdi>: \(words.label(one["answer"]?.text ?? ""))\(words.comma)\(LinkPage.time(time, words))</li>"
        }
        return "<h2>\(words.answersSoFar)</h2><ul class=\"plain\">\(items.joined())</ul>"
    }

    static func safetyQuestion(_ frame: PageFrame, back: String) -> Response {
        let words = frame.words
        return LinkPage.html(
            words.isItTrue,
            "<h1>\(words.isItTrue)</h1><p>\(words.thenItEnds)</p>"
                + LinkPage.answers([LinkPage.button("safe", words.yesSafe, .first)])
                + "<p>\(LinkPage.backLink(frame, to: back))</p>", frame)
    }

    static func neverQuestion(_ frame: PageFrame, back: String) -> Response {
        let words = frame.words
        return LinkPage.html(
            words.reallyNever,
            "<h1>\(words.reallyNever)</h1><p>\(words.whatNeverMeans)</p><p>\(words.canTakeBack)</p>"
                + "<p class=\"answers\">\(LinkPage.backLink(frame, to: back))</p>"
                + LinkPage.answers([LinkPage.button("never", words.yesNever, .grave)]), frame)
    }

    package static func consent(_ facts: JSONValue, _ frame: PageFrame) -> Response {
        let words = frame.words
        let never =
            "<section class=\"aside\"><p class=\"quiet\">\(words.whatNeverMeans)</p>"
            + LinkPage.answers([LinkPage.button(asksWhetherNever, words.neverAgain)]) + "</section>"
        switch facts["consent"]?.text {
        case "never":
            return LinkPage.html(
                words.never,
                "<h1>\(words.never)</h1><p>\(words.nobodyCanAsk)</p>"
                    + (facts["may_ask_again"] == .bool(false)
                        ? "<p>\(words.operatorMustAllow)</p>"
                        : LinkPage.answers([LinkPage.button("again", words.askAgain)])),
                frame)
        case "over":
            return LinkPage.html(
                words.beingAContact, "<h1>\(words.beingAContact)</h1><p>\(words.questionIsOver)</p>" + never, frame)
        case let consent:
            let name = facts["name"]?.text ?? facts["person"]?.text ?? ""
            let person = LinkPage.shown(name)
            let said = consent == "given" ? words.saidYes : consent == "declined" ? words.saidNo : nil
            return LinkPage.html(
                words.wantsYou(escaped(name)),
                "<h1>\(words.wantsYou(person))</h1><p>\(words.asks(person))</p>"
                    + "<ul class=\"plain\"><li>\(words.ifYes(person))</li><li>\(words.ifNo(person))</li></ul>"
                    + (said.map { "<p class=\"tag \(consent == "given" ? "good" : "")\">\($0)</p>" } ?? "")
                    + LinkPage.answers([
                        LinkPage.button("yes", words.yesTellMe, consent == "given" ? .plain : .first),
                        LinkPage.button("no", words.no),
                    ]) + "<p class=\"quiet\">\(words.anyTime)</p>" + never, frame)
        }
    }

    private static func escaped(_ text: String) -> String { LinkPage.escaped(text) }
}
