import FoundationEssentials
import Templates

/// One value of a table or a list, with what it links to.
struct ConsoleCell: Sendable {
    var text: String
    var href: String?
    /// A word for the stylesheet: good, warn, bad, quiet, mono.
    var tone: String?
    /// For times: the machine's form, and the whole time as a title.
    var instant: String?
    var title: String?
    /// Updated by live pages under this name.
    var live: String?

    init(_ text: String, href: String? = nil, tone: String? = nil, live: String? = nil) {
        self.text = text
        self.href = href
        self.tone = tone
        self.live = live
    }

    static let none = ConsoleCell("–", tone: "quiet")

    static func count(_ number: Int?, href: String? = nil, live: String? = nil) -> ConsoleCell {
        guard let number else { return .none }
        return ConsoleCell(
            Figures.count(number), href: number == 0 ? nil : href, tone: number == 0 ? "quiet" : nil, live: live)
    }

    static func text(_ text: String?, href: String? = nil, tone: String? = nil) -> ConsoleCell {
        guard let text, !text.isEmpty else { return .none }
        return ConsoleCell(text, href: href, tone: tone)
    }

    static func time(_ text: String?, now: Date = Date()) -> ConsoleCell {
        guard let text, let date = Figures.date(text) else { return .none }
        var cell = ConsoleCell(Figures.relative(date, to: now))
        cell.instant = date.formatted(.iso8601)
        cell.title = Figures.utc(date)
        return cell
    }

    static func span(_ seconds: Double?, tone: String? = nil) -> ConsoleCell {
        seconds.map { ConsoleCell(Figures.span($0), tone: tone) } ?? .none
    }

    static func state(_ state: String?) -> ConsoleCell {
        guard let state else { return .none }
        return ConsoleCell(state, tone: StateTone.of(state))
    }

    var value: TemplateValue {
        .object([
            "text": .string(text), "href": href.map { .string($0) } ?? .null, "tone": tone.map { .string($0) } ?? .null,
            "instant": instant.map { .string($0) } ?? .null, "title": title.map { .string($0) } ?? .null,
            "live": live.map { .string($0) } ?? .null,
        ])
    }
}

/// How bad a word of state is, in every room.
enum StateTone {
    static func of(_ state: String) -> String? {
        switch state {
        case "dead", "failed", "critical", "open", "forced_open", "refused", "bounced", "lost", "disabled", "raised",
            "CRITICAL", "crashed", "revoked":
            "bad"
        case "cancelled", "paused", "degraded", "DEGRADED", "retried", "parked", "unknown", "draining", "cut off",
            "probing", "ramping", "observing", "forced_closed", "warned", "acknowledged", "suspect", "expired",
            "grace", "incomplete":
            "warn"
        case "succeeded", "completed", "OK", "ok", "closed", "working", "accepted", "delivered", "resolved", "active",
            "sent", "armed", "trial":
            "good"
        default: nil
        }
    }
}

struct ConsoleTable: Sendable {
    struct Column: Sendable {
        let title: String
        var isNumber = false

        static func number(_ title: String) -> Column { Column(title: title, isNumber: true) }
        static func text(_ title: String) -> Column { Column(title: title) }
    }

    var columns: [Column]
    var rows: [[ConsoleCell]]
    /// Said in place of an empty table.
    var empty: String
    /// The address of the next page.
    var next: String?

    var value: TemplateValue {
        .object([
            "columns": .list(
                columns.map { .object(["title": .string($0.title), "number": .bool($0.isNumber)]) }),
            "rows": .list(
                rows.map { row in
                    .object([
                        "cells": .list(
                            zip(columns, row).enumerated().map { index, pair in
                                let (column, cell) = pair
                                var members = cell.value.members
                                members["label"] = .string(column.title)
                                members["number"] = .bool(column.isNumber)
                                members["first"] = .bool(index == 0)
                                return .object(members)
                            })
                    ])
                }),
            "any": .bool(!rows.isEmpty), "empty": .string(empty), "next": next.map { .string($0) } ?? .null,
        ])
    }
}

/// A field of a form.
struct ConsoleField: Sendable {
    enum Kind: Sendable {
        case hidden
        case text
        case number
        case moment
        /// The name and the password of a person, which a password manager may fill in.
        case name
        case secret
        case choice([String])
    }

    var name: String
    var label = ""
    var value = ""
    var kind = Kind.text
    var hint: String?
    var isNeeded = false

    func value(of form: String) -> TemplateValue {
        var members: [String: TemplateValue] = [
            "name": .string(name), "label": .string(label), "value": .string(value),
            "id": .string("\(form)-\(name)"), "hint": hint.map { .string($0) } ?? .null, "needed": .bool(isNeeded),
        ]
        switch kind {
        case .hidden: members["hidden"] = true
        case .text: members["input"] = "text"
        case .number: members["input"] = "number"
        case .moment: members["input"] = "datetime-local"
        case .name:
            members["input"] = "text"
            members["fill"] = "username"
        case .secret:
            members["input"] = "password"
            members["fill"] = "current-password"
        case .choice(let choices):
            members["choices"] = .list(
                choices.map { .object(["choice": .string($0), "chosen": .bool($0 == value)]) })
        }
        return .object(members)
    }
}

/// A form with one button. An action is a POST with the visitor's token; a search is a GET.
struct ConsoleForm: Sendable {
    var id: String
    var action: String
    var button: String
    var fields: [ConsoleField] = []
    var isSearch = false
    /// A second look before something that cannot be undone.
    var isGrave = false

    func value(token: String, back: String) -> TemplateValue {
        .object([
            "id": .string(id), "action": .string(action), "button": .string(button), "search": .bool(isSearch),
            "grave": .bool(isGrave), "token": .string(token), "back": .string(back),
            "fields": .list(fields.map { $0.value(of: id) }),
        ])
    }
}

/// What stands on a page, from top to bottom.
enum ConsolePart: Sendable {
    case heading(String)
    case paragraph(String, tone: String? = nil)
    case list([ConsoleCell])
    /// Links side by side, to other views of the same.
    case tabs([ConsoleCell])
    case facts([(String, ConsoleCell)])
    case table(ConsoleTable)
    /// SVG that we drew, with the sentence that says the same, and the names of its lines.
    case chart(title: String, svg: String, says: String, keys: [(name: String, tone: String)] = [])
    /// Several drawings, side by side where there is room.
    case charts([ConsolePart])
    case code(title: String, text: String)
    case forms([ConsoleForm])
    case verdict(word: String, tone: String, findings: [ConsoleCell])
    /// HTML of one of our templates.
    case html(String)

    func value(token: String, back: String) -> TemplateValue {
        switch self {
        case .heading(let text): .object(["heading": .string(text)])
        case .paragraph(let text, let tone):
            .object(["paragraph": .string(text), "tone": tone.map { .string($0) } ?? .null])
        case .tabs(let cells): .object(["tabs": .object(["items": .list(cells.map(\.value))])])
        case .list(let cells) where cells.isEmpty: .object([:])
        case .list(let cells): .object(["list": .object(["items": .list(cells.map(\.value))])])
        case .facts(let facts):
            .object([
                "facts": .object([
                    "pairs": .list(
                        facts.map { label, cell in
                            var members = cell.value.members
                            members["label"] = .string(label)
                            return .object(members)
                        })
                ])
            ])
        case .table(let table): .object(["table": table.value])
        case .chart(let title, let svg, let says, let keys):
            .object([
                // Inside of several charts, the template would find these again.
                "charts": false,
                "chart": .object([
                    "title": .string(title), "svg": .string(svg), "says": .string(says),
                    "keys": .list(keys.map { .object(["name": .string($0.name), "tone": .string($0.tone)]) }),
                ]),
            ])
        case .charts(let charts):
            .object(["charts": .object(["each": .list(charts.map { $0.value(token: token, back: back) })])])
        case .code(let title, let text):
            .object(["code": .object(["title": .string(title), "body": .string(text)])])
        case .forms(let forms) where forms.isEmpty: .object([:])
        case .forms(let forms):
            .object(["forms": .object(["each": .list(forms.map { $0.value(token: token, back: back) })])])
        case .verdict(let word, let tone, let findings):
            .object([
                "verdict": .object([
                    "word": .string(word), "tone": .string(tone), "findings": .list(findings.map(\.value)),
                ])
            ])
        case .html(let text): .object(["html": .string(text)])
        }
    }
}

struct ConsolePage: Sendable {
    var title: String
    /// Which entry of the navigation it belongs to.
    var entry: String
    var parts: [ConsolePart]
    /// What is updated while the page is open; nil: nothing.
    var live: String?
    var status = 200
    /// The visitor is sent on to this address instead.
    var goesTo: String?

    func going(to address: String) -> ConsolePage {
        var page = self
        page.goesTo = address
        return page
    }
}
