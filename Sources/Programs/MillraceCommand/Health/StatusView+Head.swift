extension StatusView {
    /// The first word of the first line, which says the same as the exit code.
    var word: String {
        switch exitCode {
        case .critical: Severity.critical.word
        case .degraded: Severity.degraded.word
        default: Severity.ok.word
        }
    }

    private var style: Style {
        switch exitCode {
        case .critical: Severity.critical.style
        case .degraded: Severity.degraded.style
        default: Severity.ok.style
        }
    }

    /// The one line of `--quiet`: what decided, and nothing else.
    func line(colors: Bool) -> String {
        style.paint(word, on: colors) + "  " + DisplayWidth.harmless(deciding.joined(separator: "; "))
    }

    /// The reasons of the exit code.
    private var deciding: [String] {
        guard let failIf else { return findings.isEmpty ? ["nothing needs attention"] : findings.map(\.sentence) }
        if !hits.isEmpty { return hits.map(\.sentence) }
        return ["no condition holds: \(failIf.conditions.map(\.text).joined(separator: ", "))"]
    }

    /// The verdict, and a line for each reason where there are several, wrapped to the window.
    func head(width: Int?, colors: Bool) -> [String] {
        let first = failIf == nil ? deciding[0] : deciding.joined(separator: "; ")
        let others = failIf == nil ? Array(told.dropFirst()) : told.filter { $0.alarm != .condition }
        let more = failIf != nil || others.isEmpty ? "" : "; and \(findings.count - 1) more"
        let columns = width ?? .max
        let start = Wrapping.lines("\(word)  " + DisplayWidth.harmless(first + more), columns: max(20, columns - 2))
        // Wrapping makes one space of two.
        let head = start.enumerated().map { index, line in
            index == 0 ? style.paint(word, on: colors) + " " + line.dropFirst(word.count) : "  " + line
        }
        // The command of the first line's finding stands below it.
        let firstCommand = failIf == nil ? findings.first?.command : nil
        return head + Self.remedy(firstCommand, indent: 4, columns: columns)
            + others.flatMap { finding -> [String] in
                let lines = Wrapping.lines(DisplayWidth.harmless(finding.sentence), columns: max(20, columns - 12))
                let sentence = lines.enumerated().map { index, line in
                    let name = finding.severity.word.lowercased()
                    let space = String(repeating: " ", count: 10 - name.count)
                    return index == 0
                        ? "  " + finding.severity.style.paint(name, on: colors) + space + line
                        : String(repeating: " ", count: 12) + line
                }
                return sentence + Self.remedy(finding.command, indent: 14, columns: columns)
            }
    }

    /// Of many findings of one sort three, and one sentence for the others.
    private var told: [Finding] {
        groups.flatMap { group -> [Finding] in
            guard group.findings.count > Self.mostOfOneSort + 1 else { return group.findings }
            let rest = group.findings.count - Self.mostOfOneSort
            return group.findings.prefix(Self.mostOfOneSort) + [
                Finding(
                    alarm: group.alarm, severity: group.severity,
                    sentence: "and \(Humane.count(rest)) more: \(group.sentence)")
            ]
        }
    }

    private static let mostOfOneSort = 3

    private static func remedy(_ command: String?, indent: Int, columns: Int) -> [String] {
        guard let command else { return [] }
        let lines = Wrapping.lines("run: " + DisplayWidth.harmless(command), columns: max(20, columns - indent))
        return lines.map { String(repeating: " ", count: indent) + $0 }
    }

    /// The conditions of `--fail-if`, and whether they hold.
    var conditions: JSONValue {
        guard let failIf else { return .null }
        return .array(
            failIf.conditions.map { condition in
                let hit = hits.first {
                    $0.sentence.hasPrefix(condition.text + ":") || $0.sentence.hasPrefix(condition.text + " ")
                }
                return [
                    "condition": .string(condition.text), "holds": .bool(hit != nil),
                    "sentence": JSONValue(hit?.sentence),
                ]
            })
    }
}
