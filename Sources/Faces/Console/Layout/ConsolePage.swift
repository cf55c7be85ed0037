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
    /// SVG that we drew, in place of the text.
    var svg: String?
    /// The number under which its row can be selected, for the form `pick`.
    var pick: String?

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
        cell.title = Figures.moment(date)
        return cell
    }

    static func span(_ seconds: Double?, tone: String? = nil) -> ConsoleCell {
        seconds.map { ConsoleCell(Figures.span($0), tone: tone) } ?? .none
    }

    static func state(_ state: String?) -> ConsoleCell {
        guard let state else { return .none }
        return ConsoleCell(state.replacing("_", with: " "), tone: "state \(StateTone.of(state) ?? "")")
    }

    /// As a state, with a tone of its own.
    static func state(_ word: String, tone: String?) -> ConsoleCell {
        ConsoleCell(word, tone: "state \(tone ?? "")")
    }

    /// A cell for what is short never breaks.
    fileprivate var isShort: Bool { text.count <= 24 || isID && text.count <= 36 }

    /// A number of a job, a hash, a version: set in the monospaced face.
    fileprivate var isID: Bool {
        guard tone == nil, let first = text.utf8.first else { return false }
        return Self.isDigit(first) && text.utf8.allSatisfy { Self.isDigit($0) }
            || text.utf8.count >= 32 && text.utf8.allSatisfy { Self.isDigit($0) || 0x61...0x66 ~= $0 || $0 == 0x2D }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }

    var value: TemplateValue {
        .object([
            "text": .string(text), "href": href.map { .string($0) } ?? .null, "tone": tone.map { .string($0) } ?? .null,
            "instant": instant.map { .string($0) } ?? .null, "title": title.map { .string($0) } ?? .null,
            "live": live.map { .string($0) } ?? .null, "svg": svg.map { .string($0) } ?? .null,
            "pick": pick.map { .string($0) } ?? .null,
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
        case "running", "sending", "processing", "calling": "run"
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
        /// The labels of an axis, for a column of bars.
        var ticks: [String] = []
        var sort: Sort?

        static func number(_ title: String) -> Column { Column(title: title, isNumber: true) }
        static func text(_ title: String) -> Column { Column(title: title) }

        fileprivate var kind: String? { isNumber ? "number" : ticks.isEmpty ? nil : "span" }
    }

    var columns: [Column]
    var rows: [[ConsoleCell]]
    /// Said in place of an empty table.
    var empty: String
    /// The address of the next page.
    var next: String?
    /// A row is a line: what is longer ends in dots, and the page of the row has all of it.
    var isBrief = false
    /// Where two tables of a page have the same first column.
    var name: String?
    /// It is behind a fold, which says this.
    var folded: String?

    var value: TemplateValue {
        .object([
            "brief": .bool(isBrief), "name": .string(name ?? "\(columns.first?.title ?? ""): table"),
            "fold": folded.map { .string($0) } ?? .null,
            "columns": .list(
                columns.map { column in
                    .object([
                        "title": .string(column.title), "kind": column.kind.map { .string($0) } ?? .null,
                        "hasTicks": .bool(!column.ticks.isEmpty),
                        "ticks": .list(column.ticks.map { .object(["tick": .string($0)]) }),
                        "order": column.sort?.order.map { .string($0.rawValue) } ?? .null,
                        "sort": column.sort.map { sort in
                            .object([
                                "to": .string(sort.href), "says": .string(sort.says), "mark": .string(sort.mark),
                            ])
                        } ?? .null,
                    ])
                }),
            "rows": .list(
                rows.map { row in
                    .object([
                        "cells": .list(
                            zip(columns, row).enumerated().map { index, pair in
                                let (column, cell) = pair
                                var members = cell.value.members
                                let kind = column.kind ?? (cell.isShort ? nil : "wrap")
                                if column.kind == nil, cell.isID { members["tone"] = "id" }
                                if isBrief, kind == "wrap" { members["title"] = .string(cell.text) }
                                members["label"] = .string(column.title)
                                members["kind"] = kind.map { .string($0) } ?? .null
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
        /// Several lines; Enter sends nothing.
        case lines
        /// JSON, in a field over the form's whole width.
        case json
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
    /// Behind a fold, which is open while such a field has a value, unless that is said elsewhere on the page.
    var isFolded = false
    var opensFold = true

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
        case .lines: members["area"] = true
        case .json:
            members["code"] = true
            members["rows"] = .string("\(min(24, max(4, value.utf8.count { $0 == 0x0A } + 2)))")
        case .name:
            members["input"] = "text"
            members["fill"] = "username"
        case .secret:
            members["input"] = "password"
            members["fill"] = "current-password"
        case .choice(let choices):
            members["choosing"] = true
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
    /// What is searched for must stand in no address: the search is sent as a POST.
    var isSealed = false
    /// A second look before something that cannot be undone.
    var isGrave = false
    /// What most people came for.
    var isMain = false
    /// Its fields take the page's width.
    var isWide = false
    /// The button says one thing, and another beside it the other.
    var choice: Choice?

    struct Choice: Sendable {
        let name: String
        let value: String
        let other: (value: String, button: String)
    }

    func value(token: String, back: String) -> TemplateValue {
        .object([
            "id": .string(id), "action": .string(action), "button": .string(button), "search": .bool(isSearch),
            "get": .bool(isSearch && !isSealed),
            "grave": .bool(isGrave), "token": .string(token), "back": .string(back),
            "fields": .list(fields.filter { !$0.isFolded }.map { $0.value(of: id) }), "main": .bool(isMain),
            "wide": .bool(isWide),
            "choice": choice.map {
                .object([
                    "name": .string($0.name), "value": .string($0.value), "otherValue": .string($0.other.value),
                    "otherButton": .string($0.other.button),
                ])
            } ?? .null,
            "more": more,
        ])
    }

    private var more: TemplateValue {
        let folded = fields.filter(\.isFolded)
        guard !folded.isEmpty else { return .null }
        return .object([
            "title": "More filters", "open": .bool(folded.contains { $0.opensFold && !$0.value.isEmpty }),
            "folded": .list(folded.map { $0.value(of: id) }),
        ])
    }
}

/// A figure that is to be seen first, with how it was of late.
struct ConsoleTile: Sendable {
    var label: String
    var figure: ConsoleCell
    /// What stands below the figure.
    var notes: [ConsoleCell] = []
    /// SVG that we drew.
    var spark: String?

    var value: TemplateValue {
        var members = figure.value.members
        members["label"] = .string(label)
        members["notes"] = .list(notes.map(\.value))
        members["spark"] = spark.map { .string($0) } ?? .null
        return .object(members)
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
    case tiles([ConsoleTile])
    case table(ConsoleTable)
    case chart(ChartPart)
    /// Several drawings, side by side where there is room.
    case charts([ConsolePart])
    /// live: the name under which a live page renews it.
    case code(title: String, text: String, live: String? = nil)
    case forms([ConsoleForm])
    case verdict(VerdictPart)
    /// How far something is, from 0 to 1, and in words; live: the name of both on a live page.
    case progress(label: String, share: Double, says: String, live: String)
    /// HTML of one of our templates.
    case html(String)

    private static func tree(_ text: String, _ live: String?) -> TemplateValue {
        guard live == nil, let html = JSONTree.html(text) else { return .null }
        return .string(html)
    }

    /// Longer texts are folded, so that what stands below them is seen.
    private static let largestUnfolded = 4000

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
        case .tiles(let tiles): .object(["tiles": .object(["each": .list(tiles.map(\.value))])])
        case .table(let table): .object(["table": table.value])
        // Inside of several charts, the template would find these again.
        case .chart(let chart): .object(["charts": false, "chart": chart.value])
        case .charts(let charts):
            .object(["charts": .object(["each": .list(charts.map { $0.value(token: token, back: back) })])])
        case .code(let title, let text, let live):
            .object([
                "code": .object([
                    "title": .string(title), "body": .string(text), "live": live.map { .string($0) } ?? .null,
                    "tree": Self.tree(text, live),
                    "folded": text.utf8.count > Self.largestUnfolded
                        ? .string("\(title), \(Figures.bytes(text.utf8.count))") : .null,
                ])
            ])
        case .forms(let forms) where forms.isEmpty: .object([:])
        case .forms(let forms):
            .object(["forms": .object(["each": .list(forms.map { $0.value(token: token, back: back) })])])
        case .verdict(let verdict): .object(["verdict": verdict.value(token: token, back: back)])
        case .progress(let label, let share, let says, let live):
            .object([
                "progress": .object([
                    "label": .string(label), "percent": .string("\(Int((share * 100).rounded(.down)))"),
                    "says": .string(says), "live": .string(live),
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
