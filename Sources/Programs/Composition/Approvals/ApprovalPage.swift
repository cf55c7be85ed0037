import JSON
import Listeners
import PageKit

/// The page behind a person's signed link to a question: who asks, what, since when, until when; or how it was answered.
enum ApprovalPage {
    /// A value is shown in its parts down to here, and below as JSON.
    private static let deepest = 6

    /// - Parameter isLate: an answer has just come that does not count.
    static func question(_ facts: JSONValue, _ words: PageWords, isLate: Bool = false) -> Response {
        let state = facts["state"]?.text
        var body = "<h1>\(shown(facts["step"]))</h1>"
        switch state {
        case "answered":
            if isLate { body += "<p>\(words.earlierAnswerCounts)</p>" }
            let isYes = facts["approved"] == .bool(true)
            body += "<p>\(words.answer(isYes, by: shown(facts["by"]), at: time(facts["answered"])))</p>"
            if let comment = facts["comment"]?.text, !comment.isEmpty { body += "<p>\(shown(comment))</p>" }
        case "late": body += "<p>\(words.tooLate(time(facts["until"])))</p>"
        case "open": body += "<p>\(words.isAsked(shown(facts["name"]), by: shown(facts["kind"])))</p>"
        default: body += "<p>\(words.noLongerAsked)</p>"
        }
        let about = [
            (words.job, facts["job"].map { text(of: $0, words) }), (words.tenant, facts["tenant"].map { shown($0) }),
            (words.since, facts["since"].map { time($0) }), (words.until, facts["until"].map { time($0) }),
        ]
        body += list(about.compactMap { label, value in value.map { (label, $0) } })
        body += "<h2>\(words.subject)</h2>" + parts(of: facts["request"] ?? .null, words, depth: 0)
        if state == "open" { body += form(words) }
        return LinkPage.html(words.question, body, words, status: isLate ? 409 : 200)
    }

    private static func form(_ words: PageWords) -> String {
        "<h2>\(words.yourAnswer)</h2><form method=\"post\"><p><label for=\"comment\">\(words.comment)</label>"
            + "<textarea id=\"comment\" name=\"comment\" maxlength=\"500\"></textarea></p>"
            + "<p><button name=\"answer\" value=\"yes\">\(words.yes)</button></p>"
            + "<p><button class=\"second\" name=\"answer\" value=\"no\">\(words.no)</button></p></form>"
    }

    private static func list(_ pairs: [(label: String, value: String)]) -> String {
        "<dl>" + pairs.map { "<dt>\($0.label)</dt><dd>\($0.value)</dd>" }.joined() + "</dl>"
    }

    /// What is asked, as a list of its fields.
    private static func parts(of value: JSONValue, _ words: PageWords, depth: Int) -> String {
        switch value {
        case .object(let members) where !members.isEmpty && depth < deepest:
            list(members.map { (shown($0.key), parts(of: $0.value, words, depth: depth + 1)) })
        case .array(let items) where !items.isEmpty && depth < deepest:
            "<ol>" + items.map { "<li>\(parts(of: $0, words, depth: depth + 1))</li>" }.joined() + "</ol>"
        case .null, .bool, .int, .double, .number, .string, .array, .object, .raw:
            depth == 0 ? "<p>\(text(of: value, words))</p>" : text(of: value, words)
        }
    }

    private static func text(of value: JSONValue, _ words: PageWords) -> String {
        switch value {
        case .null: "–"
        case .bool(let isYes): isYes ? words.yes : words.no
        case .string(let text): shown(text)
        case .int, .double, .number, .array, .object, .raw: shown(value.compact)
        }
    }

    private static func time(_ value: JSONValue?) -> String { LinkPage.time(value?.text ?? "") }

    private static func shown(_ value: JSONValue?) -> String { shown(value?.text ?? "") }

    /// Escaped, and without the signs that turn the direction of a text round: an amount must read as it is.
    private static func shown(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { LinkPage.escaped(DisplayWidth.harmless(String($0))) }.joined(separator: "\n")
    }
}
