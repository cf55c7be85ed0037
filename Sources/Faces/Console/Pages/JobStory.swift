import FoundationEssentials
import Listeners
import Postgres
import Templates

/// One job's whole story.
enum JobStory {
    static func page(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.id()
        let found = try await context.json(
            """
            select jsonb_build_object(
                'job', (select to_jsonb(j) - array['args', 'result', 'metadata'] || jsonb_build_object('args', jsonb_pretty(j.args),
                               'result', jsonb_pretty(j.result), 'metadata', jsonb_pretty(nullif(j.metadata, '{}'))) from millrace.job_shown($1) j),
                'why', millrace.why($1), 'forks', millrace.forks_of($1),
                'steps', (select coalesce(jsonb_agg(to_jsonb(s) - 'value' || jsonb_build_object('value', left(jsonb_pretty(s.value), 400)) order by s.at), '[]') from (select * from millrace.steps_shown($1) limit 200) s),
                'output', (select to_jsonb(o) - 'value' || jsonb_build_object('value', left(jsonb_pretty(o.value), 4000)) from millrace.state_value_shown($1) o),
                'published', (select coalesce(jsonb_agg(to_jsonb(p) - 'value' || jsonb_build_object('value', left(p.value::text, 400)) order by p.n), '[]')
                                from millrace.published_shown($1, (select o.published - 50 from millrace.state_value_shown($1) o), 50) p),
                'logs', (select coalesce(jsonb_agg(to_jsonb(l) order by l.n), '[]') from (select * from millrace.logs_shown($1) order by n desc limit 200) l))
            """, [.int8(id)])
        guard let job = found["job"], let state = job.text("state") else {
            throw ErrorAnswer(
                .notFound, "there is no job \(id)",
                hint: "Of an ended job nothing is left once its retention has passed.")
        }
        let steps = found.list("steps")
        var parts: [ConsolePart] = [.facts(facts(job, id: id, state: state))]
        parts += JobPages.why(found["why"])
        if context.mayAct() { parts.append(.forms(actions(id, state: state, steps, context))) }
        parts += forks(found["forks"])
        parts += errors(job)
        parts += timeline(steps, job)
        if let state = found["output"]?.text("value") { parts.append(.code(title: "Given state", text: state)) }
        parts += published(found.list("published"))
        parts += logs(found.list("logs"))
        if context.query("flow") != nil {
            parts += try await flow(context, id)
        } else {
            parts += [
                .heading("Flow"),
                .list([
                    ConsoleCell(
                        "Show the jobs that belong together", href: PageAddress.to("/jobs/\(id)", [("flow", "yes")]))
                ]),
            ]
        }
        parts.append(.code(title: "Arguments", text: job.text("args") ?? "null"))
        if let result = job.text("result") { parts.append(.code(title: "Result", text: result)) }
        if let metadata = job.text("metadata") { parts.append(.code(title: "Metadata", text: metadata)) }
        return ConsolePage(
            title: "Job \(id): \(job.text("kind") ?? "")", entry: "Jobs", parts: parts,
            live: ["succeeded", "cancelled", "dead"].contains(state) ? nil : "job:\(id):\(state)")
    }

    private static func facts(_ job: TemplateValue, id: Int64, state: String) -> [(String, ConsoleCell)] {
        var stateCell = ConsoleCell.state(state)
        stateCell.live = "job.\(id).state"
        var facts: [(String, ConsoleCell)] = [
            ("State", stateCell), ("Queue", .text(job.text("queue"), href: PageAddress.queue(job.text("queue") ?? ""))),
            ("Priority", .text(job.text("priority"))),
            (
                "Attempt",
                ConsoleCell(
                    (job.text("attempt") ?? "") + (job.text("max_attempts").map { " of \($0)" } ?? ""))
            ),
            ("Enqueued", .time(job.text("enqueued_at"))),
        ]
        let isWaiting = ["scheduled", "ready", "blocked"].contains(state)
        if isWaiting { facts.append(("Due", .time(job.text("run_at")))) }
        if job.text("started_at") != nil { facts.append(("Started", .time(job.text("started_at")))) }
        if job.text("finished_at") != nil { facts.append(("Ended", .time(job.text("finished_at")))) }
        if let worker = job.text("worker") { facts.append(("Worker", ConsoleCell(worker))) }
        if state == "running" {
            facts.append(
                ("Progress", ConsoleCell(JobPages.progress(job["progress"]) ?? "–", live: "job.\(id).progress")))
        }
        for (key, label) in [
            ("tenant", "Tenant"), ("unique_key", "Unique key"), ("limit_key", "Limit key"),
            ("limited_by", "Waits for a limit"),
        ] {
            if let text = job.text(key) { facts.append((label, ConsoleCell(text))) }
        }
        let tags = job.list("tags").compactMap(\.plainText)
        if !tags.isEmpty { facts.append(("Tags", ConsoleCell(tags.joined(separator: ", ")))) }
        if let crashes = job.int("crashes"), crashes > 0 {
            facts.append(("Crashes", ConsoleCell("\(crashes)", tone: "bad")))
        }
        return facts
    }

    private static func actions(
        _ id: Int64, state: String, _ steps: [TemplateValue], _ context: PageContext
    ) -> [ConsoleForm] {
        let job = ConsoleField(name: "id", value: "\(id)", kind: .hidden)
        var forms: [ConsoleForm] = []
        func add(_ name: String, _ button: String, _ more: [ConsoleField] = [], grave: Bool = false) {
            forms.append(
                ConsoleForm(
                    id: name, action: PageAddress.to("/act/job.\(name)"), button: button, fields: [job] + more,
                    isGrave: grave))
        }
        func addFork() {
            let names = steps.compactMap { $0.text("name") }
            guard !names.isEmpty else { return }
            add(
                "fork", "Start a new job",
                [
                    ConsoleField(
                        name: "step", label: "That runs again from step", kind: .choice([""] + names),
                        hint: "It has the steps before on record. Without a choice it has all of them.")
                ])
        }
        switch state {
        case "dead", "cancelled":
            add("retry", "Retry")
            addFork()
            if context.mayAct(.admin) { add("delete", "Delete for good", grave: true) }
        case "succeeded":
            addFork()
            if context.mayAct(.admin) { add("delete", "Delete for good", grave: true) }
        case "running": add("cancel", "Cancel")
        default:
            if state == "scheduled" { add("retry", "Run now") }
            add("cancel", "Cancel")
            add(
                "reschedule", "Reschedule",
                [ConsoleField(name: "run_at", label: "New time (UTC)", kind: .moment, isNeeded: true)])
            add(
                "priority", "Set the priority",
                [ConsoleField(name: "priority", label: "Priority (0 first, 9 last)", kind: .number, isNeeded: true)])
        }
        return forms
    }

    /// The job that it began as a part of, and those that began as a part of it.
    private static func forks(_ found: TemplateValue?) -> [ConsolePart] {
        func cell(_ fork: TemplateValue) -> ConsoleCell {
            let step = fork.text("step").map { ", from step \($0)" } ?? ""
            return ConsoleCell((fork.text("job") ?? "") + step, href: fork.int("job").map(PageAddress.job))
        }
        var parts: [ConsolePart] = []
        if let origin = found?["from"], origin.int("job") != nil {
            parts += [.heading("Forked from"), .list([cell(origin)])]
        }
        let forks = found?.list("as") ?? []
        if !forks.isEmpty { parts += [.heading("Forks"), .list(forks.map(cell))] }
        return parts
    }

    /// Attempts whose errors are the same but for numbers stand together.
    private static func errors(_ job: TemplateValue) -> [ConsolePart] {
        let errors = job.list("errors")
        guard !errors.isEmpty else { return [] }
        var groups: [(text: String, outcome: String, attempts: [String], last: String?)] = []
        for error in errors {
            let text = error.text("error") ?? ""
            let gist = String(text.map { $0.isNumber ? "#" : $0 })
            let attempt = error.text("attempt") ?? "?"
            if let index = groups.firstIndex(where: { String($0.text.map { $0.isNumber ? "#" : $0 }) == gist }) {
                groups[index].attempts.append(attempt)
                groups[index].last = error.text("at")
            } else {
                groups.append((text, error.text("outcome") ?? "", [attempt], error.text("at")))
            }
        }
        return [
            .heading("Errors"),
            .table(
                ConsoleTable(
                    columns: [.text("Error"), .text("Outcome"), .text("Attempts"), .text("Last")],
                    rows: groups.map { group in
                        [
                            ConsoleCell(String(group.text.prefix(2000))), .state(group.outcome),
                            ConsoleCell(group.attempts.joined(separator: ", ")), .time(group.last),
                        ]
                    }, empty: "")),
        ]
    }

    /// The steps on a line of time, each from the end of the one before.
    private static func timeline(_ steps: [TemplateValue], _ job: TemplateValue) -> [ConsolePart] {
        guard !steps.isEmpty else { return [] }
        let times = steps.compactMap { $0.text("at").flatMap(Figures.date) }
        guard times.count == steps.count, let last = times.last else { return [] }
        let start = min(job.text("started_at").flatMap(Figures.date) ?? times[0], times[0])
        let whole = max(last.timeIntervalSince(start), 0.001)
        var svg =
            "<svg viewBox=\"0 0 600 \(steps.count * 20 + 8)\" role=\"img\" aria-label=\"Steps of the job over time\">"
        var from = start
        for (index, time) in times.enumerated() {
            let (left, right) = (
                from.timeIntervalSince(start) / whole * 400, time.timeIntervalSince(start) / whole * 400
            )
            let name = Chart.escaped(String((steps[index].text("name") ?? "").prefix(28)))
            svg +=
                "<rect class=\"bar\" x=\"\(Int(190 + left))\" y=\"\(index * 20 + 6)\" width=\"\(max(2, Int(right - left)))\" height=\"12\"/>"
            svg += "<text x=\"4\" y=\"\(index * 20 + 16)\">\(name)</text>"
            from = max(from, time)
        }
        svg += "</svg>"
        return [
            .heading("Steps"),
            .chart(title: "Steps", svg: svg, says: "\(steps.count) steps recorded in \(Figures.span(whole))."),
            .table(
                steps,
                [
                    .text("Step", "name"), .text("Attempt", "attempt"), .time("Recorded", "at"),
                    .own("Value") { .text($0.text("value"), tone: "mono") },
                ], empty: ""),
        ]
    }

    /// The newest values of its stream.
    private static func published(_ values: [TemplateValue]) -> [ConsolePart] {
        guard !values.isEmpty else { return [] }
        return [
            .heading("Published"),
            .table(
                values,
                [
                    .text("Number", "n"), .time("Time", "at"), .text("Attempt", "attempt"),
                    .own("Value") { .text($0.text("value"), tone: "mono") },
                ], empty: ""),
        ]
    }

    private static func logs(_ lines: [TemplateValue]) -> [ConsolePart] {
        guard !lines.isEmpty else { return [] }
        return [
            .heading("Log"),
            .table(
                lines,
                [.time("Time", "at"), .text("Level", "level"), .text("Attempt", "attempt"), .text("Line", "line")],
                empty: ""),
        ]
    }

    private static func flow(_ context: PageContext, _ id: Int64) async throws -> [ConsolePart] {
        let nodes = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(t)), '[]') from millrace.flow_tree($1, 100) t", [.int8(id)])
        return [
            .heading("Flow"),
            .table(
                nodes.elements,
                [
                    .own("Job") { node in
                        let depth = node.int("depth") ?? 0
                        return ConsoleCell(
                            String(repeating: "· ", count: min(depth, 20)) + (node.text("job") ?? ""),
                            href: node.int("job").map(PageAddress.job))
                    }, .text("Kind", "kind"), .state("State", "state"),
                    .own("Below", number: true) { node in
                        let hidden = node.int("hidden") ?? 0
                        return ConsoleCell((node.text("below") ?? "0") + (hidden > 0 ? ", \(hidden) not shown" : ""))
                    },
                ], empty: "This job belongs to no flow."),
        ]
    }
}
