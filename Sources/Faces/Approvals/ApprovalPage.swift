import JSON
import Listeners
import PageKit
import SettingsKit

/// The page behind a person's signed link to a question: who asks, what, since when, until when; or how it was answered.
enum ApprovalPage {
    /// A value is shown in its parts down to here, and below as JSON.
    private static let deepest = 6

    /// - Parameter isLate: an answer has just come that does not count.
    static func question(_ facts: JSONValue, _ frame: PageFrame, isLate: Bool = false) -> Response {
        let words = frame.words
        let state = facts["state"]?.text
        var body = ""
        switch state {
        case "answered":
            let isYes = facts["approved"] == .bool(true)
            body += heading(words.isAnswered, "good", facts)
            if isLate { body += "<p>\(words.earlierAnswerCounts)</p>" }
            body += "<p>\(words.answer(isYes, by: foreign(facts["by"]), at: time(facts["answered"], words)))</p>"
            if let comment = facts["comment"]?.text, !comment.isEmpty {
                body += "<blockquote><p dir=\"auto\">\(shown(comment))</p></blockquote>"
            }
        case "late":
            body += heading(words.question, "", facts) + "<p>\(words.tooLate(time(facts["until"], words)))</p>"
        case "open":
            body += heading(words.openQuestion, "bad", facts)
            body += "<p>\(words.isAsked(foreign(facts["name"]), by: foreign(facts["kind"])))</p>"
            if let until = facts["until"] { body += "<p class=\"quiet\">\(words.until): \(time(until, words))</p>" }
        default: body += heading(words.question, "", facts) + "<p>\(words.noLongerAsked)</p>"
        }
        body += "<h2>\(words.subject)</h2>" + parts(of: facts["request"] ?? .null, words, depth: 0)
        if state == "open" { body += form(words) }
        let about = [
            (words.job, facts["job"].map { text(of: $0, words) }), (words.tenant, facts["tenant"].map { foreign($0) }),
            (words.since, facts["since"].map { time($0, words) }),
            (words.until, state == "open" ? nil : facts["until"].map { time($0, words) }),
        ]
        body += "<h2>\(words.details)</h2>" + list(about.compactMap { label, value in value.map { (label, $0) } })
        return LinkPage.html(shown(facts["step"]), body, frame, status: isLate ? 409 : 200)
    }

    private static func heading(_ tag: String, _ tone: String, _ facts: JSONValue) -> String {
        "<p class=\"tag \(tone)\">\(tag)</p><h1>\(foreign(facts["step"]))</h1>"
    }

    /// On a phone it stays in sight, however long the question is.
    private static func form(_ words: PageWords) -> String {
        "<form method=\"post\" class=\"bar\"><details><summary>\(words.addComment)</summary>"
            + "<label for=\"comment\">\(words.comment)</label>"
            + "<textarea id=\"comment\" name=\"comment\" maxlength=\"500\" dir=\"auto\"></textarea></details>"
            + "<div class=\"pair\">\(LinkPage.button("yes", words.yes, .first))\(LinkPage.button("no", words.no))</div></form>"
    }

    private static func list(_ pairs: [(label: String, value: String)]) -> String {
        "<dl class=\"facts\">" + pairs.map { "<dt>\($0.label)</dt><dd>\($0.value)</dd>" }.joined() + "</dl>"
    }

    /// The fields in the order that `$order` states, and those that it does not name behind them, by name: Postgres keeps no order of its own.
    private static func ordered(_ members: [JSONValue.Member]) -> [JSONValue.Member] {
        var stated: [String] = []
        if case .array(let names)? = members.first(where: { $0.key == "$order" })?.value {
            stated = names.compactMap(\.text)
        }
        let named = stated.compactMap { name in members.first { $0.key == name } }
        let others = members.filter { $0.key != "$order" && !stated.contains($0.key) }
        return named + others.sorted { $0.key < $1.key }
    }

    /// `{"amount": 1240.5, "currency": "EUR"}` reads as a sum.
    private static func sum(_ members: [JSONValue.Member], _ words: PageWords) -> String? {
        guard members.count == 2, let currency = members.first(where: { $0.key == "currency" })?.value.text,
            let amount = members.first(where: { $0.key == "amount" })?.value, currency.utf8.count == 3
        else { return nil }
        switch amount {
        case .int, .double, .number:
            return "<bdi class=\"sum\" dir=\"ltr\">\(words.number(amount.compact)) \(shown(currency))</bdi>"
        case .null, .bool, .string, .array, .object, .raw: return nil
        }
    }

    /// What is asked, as a list of its fields.
    private static func parts(of value: JSONValue, _ words: PageWords, depth: Int) -> String {
        switch value {
        case .object(let members) where !members.isEmpty && depth < deepest:
            sum(members, words)
                ?? list(ordered(members).map { (foreign($0.key), parts(of: $0.value, words, depth: depth + 1)) })
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
        case .string(let text): isDay(text) ? LinkPage.time(text, words) : foreign(text)
        // A whole number may be an order's: it has no signs in it.
        case .double where value.compact.contains("."), .number where value.compact.contains("."):
            "<bdi class=\"sum\" dir=\"ltr\">\(words.number(value.compact))</bdi>"
        case .int, .double, .number, .array, .object, .raw: foreign(value.compact)
        }
    }

    /// `2026-11-28`
    private static func isDay(_ text: String) -> Bool {
        text.utf8.count == 10 && text.split(separator: "-").map(\.count) == [4, 2, 2]
            && text.utf8.allSatisfy { 0x30...0x39 ~= $0 || $0 == 0x2D }
    }

    private static func time(_ value: JSONValue?, _ words: PageWords) -> String {
        LinkPage.time(value?.text ?? "", words)
    }

    /// Somebody's words, with a direction of their own.
    private static func foreign(_ value: JSONValue?) -> String { foreign(value?.text ?? "") }

    private static func foreign(_ text: String) -> String { "<bdi>\(shown(text))</bdi>" }

    private static func shown(_ value: JSONValue?) -> String { shown(value?.text ?? "") }

    /// Escaped, and without the signs that turn the direction of a text round: an amount must read as it is.
    private static func shown(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { LinkPage.escaped(DisplayWidth.harmless(String($0))) }.joined(separator: "\n")
    }
}
