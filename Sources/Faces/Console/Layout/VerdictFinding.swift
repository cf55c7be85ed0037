package import FoundationEssentials
import Templates

/// Things of one sort that need somebody: since when, why, and what to press.
package struct VerdictFinding: Sendable {
    /// What it is about.
    package enum Subject: Sendable, Hashable {
        case queue(String)
        case runs(queue: String, kind: String?)
        case kind(String)
        case job(Int64)
        case worker(String)
        case provider(String)
        case schedule(String)
        case build(String)
        case room(String)
    }

    /// What takes it away, where one press does.
    package enum Remedy: Sendable {
        case resumeQueue
        case closeCircuit
        case releaseCircuit
    }

    package struct Item: Sendable {
        package var sentence: String
        package var subject: Subject?
        /// For who works on the command line.
        package var command: String

        package init(sentence: String, subject: Subject?, command: String) {
            self.sentence = sentence
            self.subject = subject
            self.command = command
        }
    }

    package var isCritical: Bool
    package var sentence: String
    package var since: Date?
    package var remedy: Remedy?
    /// Where all of the sort are seen, as a path of the console; nil: no page shows them.
    package var page: (path: String, label: String)?
    /// The longest first.
    package var items: [Item]

    package init(
        isCritical: Bool, sentence: String, since: Date? = nil, remedy: Remedy? = nil,
        page: (path: String, label: String)? = nil, items: [Item] = []
    ) {
        self.isCritical = isCritical
        self.sentence = sentence
        self.since = since
        self.remedy = remedy
        self.page = page
        self.items = items
    }
}

extension VerdictFinding.Subject {
    var link: ConsoleCell {
        switch self {
        case .queue(let name): ConsoleCell(name, href: PageAddress.queue(name))
        case .runs(let queue, let kind):
            ConsoleCell(
                kind ?? queue, href: PageAddress.to("/failures", kind.map { [("kind", $0)] } ?? [("queue", queue)]))
        case .kind(let name): ConsoleCell(name, href: PageAddress.to("/jobs", [("state", "ready"), ("kind", name)]))
        case .job(let id): ConsoleCell("Job \(id)", href: PageAddress.job(Int(id)))
        case .worker(let name): ConsoleCell(name, href: PageAddress.to("/workers"))
        case .provider(let name): ConsoleCell(name, href: PageAddress.to("/provider", [("name", name)]))
        case .schedule(let name): ConsoleCell(name, href: PageAddress.to("/schedule", [("name", name)]))
        case .build(let name): ConsoleCell(name, href: PageAddress.to("/versions"))
        case .room(let name): ConsoleCell(name)
        }
    }
}

/// The verdict as a part of a page.
struct VerdictPart: Sendable {
    let word: String
    let tone: String
    let findings: [VerdictFinding]
    /// On the overview: how many are shown, and of each some of what it is about. nil: all, with what to run on the command line.
    var most: Int?
    var mayAct = false
    var now = Date()

    static let mostOnOverview = 5
    private static let mostItems = 3
    /// Of a page with everything.
    private static let mostItemsOfAll = 200

    func value(token: String, back: String) -> TemplateValue {
        let shown = findings.prefix(most ?? .max).enumerated().map { finding($1, number: $0, token: token, back: back) }
        let total = findings.reduce(0) { $0 + max(1, $1.items.count) }
        let isCut = findings.count > shown.count || total > shown.count
        let all =
            most == nil || findings.isEmpty
            ? TemplateValue.null
            : ConsoleCell(
                isCut ? "All \(Figures.count(total)) findings, with what to run" : "What to run on the command line",
                href: PageAddress.to("/findings")
            ).value
        return .object([
            "word": .string(word), "tone": .string(tone), "any": .bool(!shown.isEmpty), "findings": .list(shown),
            "all": all, "calm": .bool(shown.isEmpty),
        ])
    }

    private func finding(_ finding: VerdictFinding, number: Int, token: String, back: String) -> TemplateValue {
        let isWhole = most == nil
        let items = finding.items.prefix(isWhole ? Self.mostItemsOfAll : Self.mostItems)
        let since = finding.since.map { date in
            var cell = ConsoleCell(Figures.relative(date, to: now))
            cell.instant = date.formatted(.iso8601)
            cell.title = Figures.moment(date)
            return cell
        }
        var seen: Set<VerdictFinding.Subject> = []
        var links = items.compactMap(\.subject).filter { seen.insert($0).inserted }.map(\.link).filter {
            $0.href != nil
        }
        if let page = finding.page { links.append(ConsoleCell(page.label, href: PageAddress.to(page.path))) }
        var forms: [ConsoleForm] = []
        for (index, item) in items.enumerated() where mayAct {
            guard let form = form(finding, item, "finding-\(number)-\(index)"),
                !forms.contains(where: { $0.button == form.button })
            else { continue }
            forms.append(form)
        }
        return .object([
            "tone": .string(finding.isCritical ? "bad" : "warn"), "sentence": .string(Self.cut(finding.sentence)),
            "since": since?.value ?? .null, "links": .object(["each": .list(links.map(\.value))]),
            "forms": .object(["each": .list(forms.map { $0.value(token: token, back: back) })]),
            "each": isWhole && (finding.items.count > 1 || finding.items.first?.sentence != finding.sentence)
                ? .object(["items": .list(items.map { .object(["said": .string($0.sentence)]) })]) : .null,
            "commands": isWhole
                ? .object([
                    "text": .string(Array(Set(items.map(\.command))).sorted().joined(separator: "\n"))
                ]) : .null,
        ])
    }

    private func form(_ finding: VerdictFinding, _ item: VerdictFinding.Item, _ id: String) -> ConsoleForm? {
        func hidden(_ name: String, _ value: String) -> ConsoleField {
            ConsoleField(name: name, value: value, kind: .hidden)
        }
        func force(_ provider: String, _ state: String, _ button: String) -> ConsoleForm {
            ConsoleForm(
                id: id, action: PageAddress.to("/act/provider.force"), button: button,
                fields: [
                    hidden("provider", provider), hidden("state", state), hidden("hold", "10 minutes"),
                    hidden("reason", "from the overview"),
                ])
        }
        switch (finding.remedy, item.subject) {
        case (.resumeQueue, .queue(let name)):
            return ConsoleForm(
                id: id, action: PageAddress.to("/act/queue.resume"), button: "Resume \(name)",
                fields: [hidden("queue", name)])
        case (.closeCircuit, .provider(let name)): return force(name, "closed", "Close the circuit of \(name)")
        case (.releaseCircuit, .provider(let name)): return force(name, "auto", "Let the breaker of \(name) decide")
        default: return nil
        }
    }

    /// What a screen has room for; the page with all findings has the rest.
    private static func cut(_ text: String) -> String {
        text.count <= 240 ? text : text.prefix(239) + "…"
    }
}
