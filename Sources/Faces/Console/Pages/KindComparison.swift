import Templates

/// Two builds side by side, in what a kind did on each.
enum KindComparison {
    /// How a figure is read, and which way it is worse.
    enum Measure: Sendable {
        case count
        case share
        case span
    }

    static func runs(_ row: TemplateValue) -> Int {
        ["succeeded", "failed", "cancelled", "snoozed"].reduce(0) { $0 + (row.int($1) ?? 0) }
    }

    static func share(_ key: String, of row: TemplateValue) -> Double? {
        let runs = runs(row)
        return runs > 0 ? (row.double(key) ?? 0) / Double(runs) : nil
    }

    static func table(before: TemplateValue, after: TemplateValue) -> ConsolePart {
        let (old, new) = (name(before), name(after))
        func row(
            _ label: String, _ measure: Measure, _ value: (TemplateValue) -> Double?
        ) -> [ConsoleCell] {
            let (one, other) = (value(before), value(after))
            return [ConsoleCell(label), cell(one, measure), cell(other, measure), difference(one, other, measure)]
        }
        return .table(
            ConsoleTable(
                columns: [.text("Figure"), .number(old), .number(new), .number("Difference")],
                rows: [
                    row("Runs", .count) { Double(runs($0)) }, row("Failed", .share) { share("failed", of: $0) },
                    row("Tried again", .share) { share("retried", of: $0) },
                    row("Dead", .share) { share("dead", of: $0) },
                    row("Half of the runs took at most", .span) { $0.double("p50_s") },
                    row("95 of 100 took at most", .span) { $0.double("p95_s") },
                    row("Mean duration", .span) { $0.double("run_s") },
                    row("Mean time in line", .span) { $0.double("wait_s") },
                ], empty: ""))
    }

    static func name(_ row: TemplateValue) -> String {
        row.text("version").flatMap { $0.isEmpty ? nil : $0 } ?? "no worker"
    }

    private static func cell(_ value: Double?, _ measure: Measure) -> ConsoleCell {
        guard let value else { return .none }
        switch measure {
        case .count: return .count(Int(value))
        case .share: return ConsoleCell(Figures.percent(value))
        case .span: return .span(value)
        }
    }

    /// Runs are neither good nor bad. Durations are known to a fifth, so less than four tenths more is no difference.
    static func difference(_ before: Double?, _ after: Double?, _ measure: Measure) -> ConsoleCell {
        guard let before, let after else { return .none }
        let change = after - before
        let sign = change > 0 ? "+" : "−"
        switch measure {
        case .count:
            if change == 0 { return ConsoleCell("the same", tone: "quiet") }
            return ConsoleCell(sign + Figures.count(Int(abs(change))))
        case .share:
            let points = Figures.brief(abs(change) * 100, 1)
            if points == "0" { return ConsoleCell("the same", tone: "quiet") }
            let tone = after > before * 1.5 + 0.01 ? "bad" : before > after * 1.5 + 0.01 ? "good" : nil
            return ConsoleCell("\(sign)\(points) points", tone: tone)
        case .span:
            if abs(change) < 0.0005 { return ConsoleCell("the same", tone: "quiet") }
            let tone = after >= before * 1.4 + 0.001 ? "bad" : before >= after * 1.4 + 0.001 ? "good" : nil
            let share = before > 0 ? ", \(sign)\(Int((abs(change) / before * 100).rounded())) %" : ""
            return ConsoleCell("\(sign)\(Figures.span(abs(change)))\(share)", tone: tone)
        }
    }
}
