package import Workers

/// What a rehearsal has found, grouped by kind and cause.
package struct RehearsalReport: Sendable {
    package struct Group: Sendable {
        package var kind: String
        package var finding: RehearsalFinding
        package var jobs = 0
        package var examples: [Int64] = []
    }

    private struct Key: Hashable {
        var kind: String
        var finding: RehearsalFinding
    }

    /// Errors may hold what differs from job to job.
    private static let mostGroups = 500
    private static let mostExamples = 5

    private var groups: [Key: Group] = [:]
    package private(set) var rehearsed = 0
    /// Jobs, not findings.
    package private(set) var found = 0
    /// By kind and reason.
    package private(set) var skipped: [String: Int] = [:]

    package init() {}

    package mutating func add(_ job: RehearsedJob, _ findings: [RehearsalFinding]) {
        rehearsed += 1
        if !findings.isEmpty { found += 1 }
        for finding in findings {
            var key = Key(kind: job.kind, finding: finding)
            if groups[key] == nil, groups.count >= Self.mostGroups {
                key = Key(kind: job.kind, finding: RehearsalFinding(finding.cause, "other sentences of this sort"))
            }
            var group = groups[key] ?? Group(kind: job.kind, finding: key.finding)
            group.jobs += 1
            if group.examples.count < Self.mostExamples { group.examples.append(job.id) }
            groups[key] = group
        }
    }

    package mutating func skip(_ kind: String, _ why: String) {
        skipped["\(kind): \(why)", default: 0] += 1
    }

    /// Most jobs first.
    package var sorted: [Group] {
        groups.values.sorted { ($1.jobs, $0.kind, $0.finding.sentence) < ($0.jobs, $1.kind, $1.finding.sentence) }
    }

    package var json: JSONValue {
        [
            "rehearsed": .int(rehearsed), "fits": .int(rehearsed - found), "found": .int(found),
            "findings": .array(
                sorted.map { group in
                    [
                        "kind": .string(group.kind), "cause": .string(group.finding.cause.rawValue),
                        "step": JSONValue(group.finding.step), "sentence": .string(group.finding.sentence),
                        "jobs": .int(group.jobs), "examples": .array(group.examples.map { .int(Int($0)) }),
                    ]
                }),
            "skipped": .array(
                skipped.sorted { $0.key < $1.key }.map { ["what": .string($0.key), "jobs": .int($0.value)] }),
        ]
    }

    /// At most 80 columns.
    package var lines: [String] {
        var lines: [String] = []
        for group in sorted {
            lines += [
                "\(DisplayWidth.harmless(group.kind))  \(Humane.count(group.jobs, "job"))  (\(group.finding.cause.rawValue))"
            ]
            lines += Wrapping.lines(DisplayWidth.harmless(group.finding.sentence), columns: 76).map { "  \($0)" }
            let more = group.jobs > group.examples.count ? ", …" : ""
            lines.append("  jobs \(group.examples.map(String.init).joined(separator: ", "))\(more)")
        }
        lines.append(
            found == 0
                ? "\(Humane.count(rehearsed, "job")) rehearsed: the new build can go on with all of them"
                : "\(Humane.count(rehearsed, "job")) rehearsed: the new build cannot go on with \(Humane.count(found))")
        for (what, jobs) in skipped.sorted(by: { $0.key < $1.key }) {
            lines += Wrapping.lines("not rehearsed, \(Humane.count(jobs, "job")) of \(what)", columns: 80)
        }
        if found > 0 { lines += Wrapping.lines(Self.remedy, columns: 80) }
        return lines
    }

    private static let remedy = """
        To go on with them: keep the old way for what is under way, behind context.changed(…) or in a kind of its own; let the \
        old build finish them; or fork them before the changed step: millrace jobs fork ID --from STEP
        """
}
