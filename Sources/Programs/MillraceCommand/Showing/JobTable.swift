import FoundationEssentials
import MillraceJobs
import MillraceQueues

extension JobDetail {
    static func table(_ jobs: [JobDetail]) -> Table {
        var table = Table(
            [
                Table.Column("id", .trailing, importance: .key), Table.Column("kind", shrinks: true, importance: .high),
                Table.Column("queue", shrinks: true),
                Table.Column("state", importance: .high), Table.Column("prio", .trailing, importance: .low),
                Table.Column("attempt", .trailing), Table.Column("when"),
                Table.Column("worker or error", shrinks: true, importance: .high),
            ], whenEmpty: "no jobs")
        for job in jobs {
            let last =
                job.state == .running ? job.worker : job.awaited.map { "waits for \($0)" } ?? job.lastError
            table.add([
                Table.Cell("\(job.id)", .bold), Table.Cell(job.kind), Table.Cell(job.queue),
                Table.Cell(job.state.rawValue, job.style), Table.Cell("\(job.priority)"),
                Table.Cell(job.attempt == 0 ? "-" : "\(job.attempt)"), Table.Cell(job.moment, .dim),
                Table.Cell(last ?? "", job.state == .running ? .plain : .dim),
            ])
        }
        return table
    }

    /// The time that matters in its state.
    private var moment: String {
        switch state {
        case .scheduled: runAt.map { "due \(Humane.relative($0))" } ?? ""
        case .ready, .blocked: enqueuedAt.map { Humane.relative($0) } ?? ""
        case .running: startedAt.map { Humane.relative($0) } ?? ""
        case .succeeded, .cancelled, .dead: finishedAt.map { Humane.relative($0) } ?? ""
        }
    }

    /// All lines, for a person.
    /// - Parameter why: Why it does not run, from `millrace.why`.
    func lines(colors: Bool, why: JSONValue? = nil) -> [String] {
        var lines: [String] = []
        func field(_ name: String, _ value: String?) {
            guard let value else { return }
            let padding = String(repeating: " ", count: max(1, 14 - name.count))
            lines.append(Style.dim.paint(name, on: colors) + padding + DisplayWidth.harmless(value))
        }
        lines.append(Style.bold.paint("job \(id)", on: colors) + "  " + style.paint(state.rawValue, on: colors))
        // What an ended job died of stands with its errors.
        if !state.isFinal {
            field("does not run", why?["sentence"]?.text.map { $0 + (why?["hint"]?.text.map { " (\($0))" } ?? "") })
        }
        field("kind", kind)
        field("queue", queue)
        field("priority", "\(priority)")
        field("attempt", maxAttempts.map { "\(attempt) of \($0)" } ?? "\(attempt)")
        if crashes > 0 { field("crashes", "\(crashes)") }
        field("unique key", uniqueKey)
        let holdsKey = why?["reason"]?.text == "key_held"
        field("waits for", awaited.map { holdsKey ? "\($0), which holds the key" : $0 })
        field("limit key", limitKey)
        field("tenant", tenant)
        if !tags.isEmpty { field("tags", tags.joined(separator: ", ")) }
        field("enqueued", enqueuedAt.map(Self.moment))
        field("run at", runAt.map(Self.moment))
        field("started", startedAt.map(Self.moment))
        field("finished", finishedAt.map(Self.moment))
        field("worker", worker)
        field("progress", advance?.sentence)
        lines += document("args", args, colors: colors)
        if let metadata, metadata != Array("{}".utf8) { lines += document("metadata", metadata, colors: colors) }
        if let result { lines += document("result", result, colors: colors) }
        let failures = failures
        if !failures.isEmpty {
            lines.append(Style.dim.paint(state == .succeeded ? "earlier errors" : "errors", on: colors))
        }
        for failure in failures {
            let head = "  attempt \(failure.attempt), \(failure.outcome), \(failure.at)"
            lines.append(DisplayWidth.harmless(head))
            lines += failure.error.split(separator: "\n").map { "    " + DisplayWidth.harmless(String($0)) }
        }
        return lines
    }

    private static func moment(_ date: Date) -> String {
        "\(InstantText.spell(date)) (\(Humane.relative(date)))"
    }

    private func document(_ name: String, _ bytes: [UInt8]?, colors: Bool) -> [String] {
        guard let bytes else { return [Style.dim.paint(name, on: colors) + "  no longer kept"] }
        let text = (try? JSONValue.read(bytes).indented) ?? String(decoding: bytes, as: UTF8.self)
        return [Style.dim.paint(name, on: colors)]
            + text.split(separator: "\n").map { "  " + DisplayWidth.harmless(String($0)) }
    }
}
