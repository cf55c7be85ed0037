import FoundationEssentials
import Templates

/// What happened to a job, on one axis of time: its runs, what they did, and what it waited for between them.
struct Waterfall: Sendable {
    struct Entry: Sendable, Equatable {
        var what: String
        var from: Date
        /// nil: it lasts.
        var to: Date?
        /// A class of the stylesheet: ok, no, going, waits, other.
        var tone: String
        var outcome: String?
        /// Of a job that it made or waited for.
        var job: Int?
        /// Within a run.
        var isInner = false
    }

    /// By when they began.
    let entries: [Entry]

    /// - Parameters:
    ///   - rows: as `job_waterfall` gives them.
    ///   - due: when the job could have started, of these times the first that is before its first run.
    init(_ rows: [TemplateValue], due: [Date?]) {
        var entries: [Entry] = []
        func time(_ row: TemplateValue, _ name: String) -> Date? { row.text(name).flatMap(Figures.date) }
        let runs = rows.filter { $0.text("sort") == "run" }.compactMap { row -> (row: TemplateValue, from: Date)? in
            time(row, "began_at").map { (row: row, from: $0) }
        }.sorted { $0.from < $1.from }
        let steps = rows.filter { $0.text("sort") == "step" }.compactMap { row -> (row: TemplateValue, at: Date)? in
            time(row, "ended_at").map { (row: row, at: $0) }
        }.sorted { $0.at < $1.at }
        let wait = rows.first { $0.text("sort") == "wait" }
        var answers: Set<Int> = []

        if let first = runs.first?.from, let due = due.compactMap({ $0 }).first(where: { $0 < first }) {
            entries.append(Entry(what: "in line", from: due, to: first, tone: "waits"))
        }
        for (index, run) in runs.enumerated() {
            let outcome = run.row.text("outcome")
            let end = time(run.row, "ended_at")
            let worker = run.row.text("name").map { " on \($0)" } ?? ""
            entries.append(
                Entry(
                    what: "run \(index + 1)\(worker)", from: run.from, to: end, tone: Self.tone(outcome),
                    outcome: outcome))
            guard let end else { continue }
            let next = index + 1 < runs.count ? runs[index + 1].from : nil
            if let next, next > end {
                // What ended a wait is on record as a step, often before the next run.
                let answer = outcome == "waiting" ? steps.firstIndex { $0.at >= end } : nil
                if let answer, steps[answer].at <= next { answers.insert(answer) }
                let name = answer.flatMap { steps[$0].row.text("name") }
                entries.append(
                    Entry(what: Self.pause(after: outcome, step: name), from: end, to: next, tone: "waits"))
            }
        }
        if let wait, let since = time(wait, "began_at") {
            entries.append(
                Entry(
                    what: "waits for \(Self.awaited(wait.text("outcome"))): \(wait.text("name") ?? "")",
                    from: since, tone: "waits"))
        }
        var last: Date?
        for (index, step) in steps.enumerated() where !answers.contains(index) {
            // From the record before, or from the start of the run that it was recorded in.
            let run = runs.last { $0.from <= step.at }?.from
            let from = [last, run].compactMap { $0 }.max() ?? step.at
            entries.append(
                Entry(
                    what: "step \(step.row.text("name") ?? "")", from: min(from, step.at), to: step.at, tone: "going",
                    isInner: true))
            last = step.at
        }
        for row in rows {
            guard let from = time(row, "began_at") else { continue }
            let (name, outcome) = (row.text("name") ?? "", row.text("outcome"))
            switch row.text("sort") {
            case "child":
                entries.append(
                    Entry(
                        what: "job \(row.text("job") ?? ""), \(name)", from: from, to: time(row, "ended_at"),
                        tone: Self.tone(outcome), outcome: outcome, job: row.int("job"), isInner: true))
            case "call":
                entries.append(
                    Entry(
                        what: "call \(row.text("attempt") ?? "") of \(name)", from: from, to: time(row, "ended_at"),
                        tone: "other", outcome: outcome, isInner: true))
            default: break
            }
        }
        // What began together keeps its order: a run, then what is in it.
        self.entries = entries.enumerated().sorted { ($0.element.from, $0.offset) < ($1.element.from, $1.offset) }
            .map(\.element)
    }

    private static func tone(_ outcome: String?) -> String {
        switch outcome {
        case "succeeded": "ok"
        case "dead", "retried", "crashed": "no"
        case "running", "waiting": "going"
        default: "other"
        }
    }

    private static func awaited(_ what: String?) -> String {
        switch what {
        case "time": "a time"
        case "signal": "a signal"
        case "jobs": "jobs"
        default: "an approval"
        }
    }

    private static func pause(after outcome: String?, step: String?) -> String {
        switch outcome {
        case "waiting": step.map { "waited: \($0)" } ?? "waited"
        case "retried", "crashed": "until the next attempt"
        case "snoozed": "snoozed"
        default: "in line"
        }
    }

    /// Rows of the first table; the rest is folded.
    private static let unfolded = 60

    /// As tables with bars. A thing that lasts ends now.
    func parts(now: Date) -> [ConsolePart] {
        guard let start = entries.map(\.from).min() else { return [] }
        let end = entries.map { $0.to ?? max(now, $0.from) }.max() ?? start
        let whole = max(end.timeIntervalSince(start), 0.001)
        let rows = entries.map { row($0, start: start, whole: whole, now: now) }
        var table = ConsoleTable(
            columns: [
                .text("What"),
                ConsoleTable.Column(title: "Time", ticks: ["0", Figures.span(whole / 2), Figures.span(whole)]),
                .number("After"), .number("Took"), .text("Outcome"),
            ], rows: Array(rows.prefix(Self.unfolded)), empty: "")
        table.name = "What happened, on one axis"
        var parts: [ConsolePart] = [.heading("What happened"), .table(table)]
        if rows.count > Self.unfolded {
            table.rows = Array(rows.dropFirst(Self.unfolded))
            table.name = "What happened, the rest"
            table.folded = "\(Figures.count(table.rows.count)) more, on the same axis"
            parts.append(.table(table))
        }
        return parts
    }

    private func row(_ entry: Entry, start: Date, whole: Double, now: Date) -> [ConsoleCell] {
        let from = entry.from.timeIntervalSince(start)
        let to = max(from, (entry.to ?? now).timeIntervalSince(start))
        let length = Figures.span(to - from) + (entry.to == nil ? " so far" : "")
        var bar = ConsoleCell(length)
        bar.svg = Chart.bar(
            from: from / whole, to: to / whole, tone: entry.tone,
            says: "from \(Figures.span(from)) to \(entry.to == nil ? "now" : Figures.span(to))")
        return [
            ConsoleCell((entry.isInner ? "· " : "") + entry.what, href: entry.job.map(PageAddress.job)), bar,
            ConsoleCell(Figures.span(from)), ConsoleCell(length), .state(entry.outcome),
        ]
    }
}
