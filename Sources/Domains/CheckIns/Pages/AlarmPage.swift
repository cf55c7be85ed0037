package import JSON
package import Listeners
import PageKit

/// The pages behind a contact's signed link, for a phone and without script. In English, German or Arabic, as the reader's profile says.
package enum AlarmPage {
    /// Asks once more: an answer by mistake would end the alarm for everybody.
    static let asksWhetherSafe = "ask_safe"

    static func isAnswer(_ name: String) -> Bool { ["on_my_way", "acknowledged", "cannot", "safe"].contains(name) }

    package static func alarm(_ facts: JSONValue) -> Response {
        let words = PageWords(facts)
        var body = "<h1>\(escaped(facts["title"]?.text ?? ""))</h1><p>\(escaped(facts["body"]?.text ?? ""))</p>"
        if let place = AlarmPlace(facts["place"]) { body += place.html(words) }
        if case .array(let answers)? = facts["answers"], !answers.isEmpty {
            body += "<h2>\(words.answersSoFar)</h2><ul>"
            for one in answers {
                let name = one["name"]?.text ?? one["contact"]?.text ?? ""
                let time = one["local"]?.text ?? one["at"]?.text ?? ""
                body +=
                    "<li><bdi>\(escaped(name))</bdi>: \(words.label(one["answer"]?.text ?? "")), \(LinkPage.time(time))</li>"
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

    private static func form(_ answers: [(name: String, label: String)]) -> String {
        "<form method=\"post\">"
            + answers.map { "<p><button name=\"answer\" value=\"\($0.name)\">\($0.label)</button></p>" }.joined()
            + "</form>"
    }

    private static func escaped(_ text: String) -> String { LinkPage.escaped(text) }

    private static func html(_ title: String, _ body: String, _ words: PageWords) -> Response {
        LinkPage.html(title, body, words)
    }
}
