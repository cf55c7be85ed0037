import MillraceJobs
import MillraceQueues

extension JobProgress {
    /// `40 %, ocr: page 3 of 7`
    var sentence: String {
        let share = fraction.map { Humane.percent($0) }
        let doing = [stage, note].compactMap { $0 }.joined(separator: ": ")
        return [share, doing.isEmpty ? nil : doing].compactMap { $0 }.joined(separator: ", ")
    }
}

extension JobDetail {
    /// The progress that its run last reported.
    var advance: JobProgress? {
        guard let json = progress.flatMap({ try? JSONValue.read($0) }) else { return nil }
        return JobProgress(fraction: json["fraction"]?.fraction, stage: json["stage"]?.text, note: json["note"]?.text)
    }
}

extension JSONValue {
    fileprivate var fraction: Double? {
        guard case .number(let digits) = self else { return nil }
        return Double(digits)
    }
}

extension StepRow {
    var json: JSONValue {
        [
            "name": .string(name), "value": JSONValue(raw: value), "attempt": .int(attempt),
            "at": .string(InstantText.spell(at)),
        ]
    }

    /// Without its value, which may be long.
    var line: String { "\(name)  attempt \(attempt), \(InstantText.spell(at))" }
}

extension LogRow: NumberedRow {
    var json: JSONValue {
        [
            "number": .int(Int(number)), "at": .string(InstantText.spell(at)), "level": .string(level),
            "attempt": .int(attempt), "token": .string(token), "text": .string(text),
        ]
    }

    /// For a person.
    func line(colors: Bool) -> String {
        let head = "\(InstantText.spell(at)) attempt \(attempt)"
        let word = style.paint(level, on: colors) + String(repeating: " ", count: max(1, 8 - level.count))
        return Style.dim.paint(head, on: colors) + " " + word + DisplayWidth.harmless(text)
    }

    private var style: Style {
        switch level {
        case "error": .red
        case "warning": .yellow
        case "debug": .dim
        default: .plain
        }
    }
}

extension RunRow {
    var json: JSONValue {
        [
            "attempt": .int(attempt), "started_at": JSONValue(startedAt), "ended_at": JSONValue(endedAt),
            "outcome": .string(outcome), "worker": JSONValue(worker), "build": JSONValue(build),
        ]
    }

    var line: String {
        "attempt \(attempt)  \(outcome), \(InstantText.spell(startedAt))"
            + (worker.map { ", \($0)" } ?? "") + (build.map { ", build \($0)" } ?? "")
    }
}

/// The parts that `jobs show` adds to a job.
struct Traces: Sendable {
    static let lastLines = 5

    static let mostOfState = 2000

    var output: OutputRow?
    var steps: [StepRow] = []
    var log: [LogRow] = []
    var forks = Forks()
    var runs: [RunRow] = []

    func lines(colors: Bool) -> [String] {
        var lines = forks.lines.map { DisplayWidth.harmless($0) }
        if let state = output?.state {
            let text = DisplayWidth.harmless(String(decoding: state, as: UTF8.self))
            let cut = text.count > Self.mostOfState ? String(text.prefix(Self.mostOfState)) + "…" : text
            lines += [Style.dim.paint("given state", on: colors), "  " + cut]
        }
        if let output, output.published > 0 {
            lines.append(
                Style.dim.paint("published", on: colors)
                    + "  \(Humane.count(Int(output.published), "value")), see jobs tail")
        }
        if !runs.isEmpty { lines.append(Style.dim.paint("runs", on: colors)) }
        lines += runs.map { "  " + DisplayWidth.harmless($0.line) }
        if !steps.isEmpty { lines.append(Style.dim.paint("steps", on: colors)) }
        lines += steps.map { "  " + DisplayWidth.harmless($0.line) }
        guard let last = log.last else { return lines }
        let count = log.count > Self.lastLines || last.number > log.count ? ", the last of \(last.number) lines" : ""
        lines.append(Style.dim.paint("log\(count)", on: colors))
        lines += log.suffix(Self.lastLines).map { "  " + $0.line(colors: colors) }
        return lines
    }

    var members: [JSONValue.Member] {
        [
            .init(key: "state_value", value: JSONValue(raw: output?.state)),
            .init(key: "published", value: .int(Int(output?.published ?? 0))),
            .init(key: "steps", value: .array(steps.map(\.json))),
            .init(key: "log", value: .array(log.suffix(Self.lastLines).map(\.json))),
            .init(key: "forked_from", value: forks.origin.map(\.json) ?? .null),
            .init(key: "forked_as", value: .array(forks.forks.map(\.json))),
            .init(key: "runs", value: .array(runs.map(\.json))),
        ]
    }
}

extension Forks {
    /// `forked from 42 at charge`
    fileprivate var lines: [String] {
        let from = origin.map { ["forked from \($0.job)" + ($0.step.map { " at \($0)" } ?? "")] } ?? []
        return from + forks.map { "forked as \($0.job)" + ($0.step.map { " at \($0)" } ?? "") }
    }
}

extension Forks.One {
    fileprivate var json: JSONValue { ["job": .int(Int(job)), "step": JSONValue(step)] }
}
