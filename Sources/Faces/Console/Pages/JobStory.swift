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
                               'sealed', case when j.args ->> '$millrace' = 'sealed' then j.args ->> 'key' end, 'result', jsonb_pretty(j.result), 'metadata', jsonb_pretty(nullif(j.metadata, '{}'))) from millrace.job_shown($1) j),
                'why', millrace.why($1), 'forks', millrace.forks_of($1),
                'steps', (select coalesce(jsonb_agg(to_jsonb(s) - 'value' || jsonb_build_object('value', left(jsonb_pretty(s.value), 400)) order by s.at), '[]') from (select * from millrace.steps_shown($1) limit 200) s),
                'output', (select to_jsonb(o) - 'value' || jsonb_build_object('value', left(jsonb_pretty(o.value), 4000)) from millrace.state_value_shown($1) o),
                'published', (select coalesce(jsonb_agg(to_jsonb(p) - 'value' || jsonb_build_object('value', left(p.value::text, 400)) order by p.n), '[]')
                                from millrace.published_shown($1, (select o.published - 50 from millrace.state_value_shown($1) o), 50) p),
                'logs', (select coalesce(jsonb_agg(to_jsonb(l) order by l.n), '[]') from millrace.logs_shown($1, 0, 200) l))
            """, [.int8(id)])
        guard let job = found["job"], let state = job.text("state") else {
            throw ErrorAnswer.noJob(id)
        }
        let steps = found.list("steps")
        var parts: [ConsolePart] = [.facts(facts(job, id: id, state: state))]
        parts += JobPages.why(found["why"])
        if context.mayAct() {
            if let wait = found["why"]?["wait"], wait.text("what") == "signal" {
                parts.append(.forms([JobForms.signal(id, wait)]))
            }
            parts.append(.forms(actions(id, state: state, steps, context)))
        }
        if context.mayAct(.admin), ["dead", "cancelled"].contains(state) {
            let address = PageAddress.to("/jobs/\(id)/edit")
            parts.append(.list([ConsoleCell("Edit the arguments, then retry", href: address)]))
        }
        parts += forks(found["forks"])
        parts += errors(job)
        parts += try await context.part("What happened") { try await waterfall(context, id, job) }
        parts += Self.steps(steps)
        if let state = found["output"]?.text("value") { parts.append(.code(title: "Given state", text: state)) }
        parts += published(found.list("published"))
        parts += logs(found.list("logs"), id, state: state)
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
        if let key = job.text("sealed") {
            parts += [
                .heading("Arguments"),
                .paragraph(
                    "They are sealed: encrypted with the key \(key), and read only where MILLRACE_ENCRYPTION_KEY has it: by the workers that run this kind. The console does not have it."
                ),
            ]
        } else {
            parts.append(.code(title: "Arguments", text: job.text("args") ?? "null"))
        }
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
            ("State", stateCell),
            ("Kind", .text(job.text("kind"), href: KindPages.address(job.text("kind") ?? ""))),
            ("Queue", .text(job.text("queue"), href: PageAddress.queue(job.text("queue") ?? ""))),
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
                        name: "step", label: "Run again from step", kind: .choice([""] + names),
                        hint: "It keeps the recorded steps before this one. Without a choice it keeps all of them.")
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

    /// Its runs with all that is on record of them, on one axis.
    private static func waterfall(_ context: PageContext, _ id: Int64, _ job: TemplateValue) async throws
        -> [ConsolePart]
    {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(w)), '[]') from millrace.job_waterfall($1) w", [.int8(id)])
        let due = ["run_at", "enqueued_at"].map { job.text($0).flatMap(Figures.date) }
        return Waterfall(rows.elements, due: due).parts(now: context.now)
    }

    private static func steps(_ steps: [TemplateValue]) -> [ConsolePart] {
        guard !steps.isEmpty else { return [] }
        return [
            .heading("Steps"),
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

    /// While it runs, its newest lines come to the page as they are written.
    private static func logs(_ lines: [TemplateValue], _ id: Int64, state: String) -> [ConsolePart] {
        var parts: [ConsolePart] = []
        if state == "running" {
            parts.append(.code(title: "The newest lines of its log", text: tail(lines), live: "job.\(id).tail"))
        }
        guard !lines.isEmpty else { return parts }
        return parts + [
            .heading("Log"),
            .table(
                lines,
                [.time("Time", "at"), .text("Level", "level"), .text("Attempt", "attempt"), .text("Line", "line")],
                empty: ""),
        ]
    }

    /// How many lines a live page shows.
    static let tailed = 30

    /// As a text of a line each; of long ones the beginning.
    static func tail(_ lines: [TemplateValue]) -> String {
        guard !lines.isEmpty else { return "This job has not written any lines." }
        return lines.suffix(tailed).map { line in
            let at = line.text("at").flatMap(Figures.date).map { String($0.formatted(.iso8601).dropFirst(11)) }
            let said = (line.text("line") ?? "").prefix(400)
            return "\(at ?? "") \(line.text("level") ?? "") \(said)"
        }.joined(separator: "\n")
    }

    /// As a drawing and a table; of a flow that is too large for one, the beginning as a tree.
    private static func flow(_ context: PageContext, _ id: Int64) async throws -> [ConsolePart] {
        let parts = try await context.part("The flow") {
            let found = try await context.json("select to_jsonb(g) from millrace.flow_graph($1) g", [.int8(id)])
            guard let graph = FlowGraph(found) else {
                let said = "The flow has too many jobs to draw. This is its beginning."
                return [.paragraph(said, tone: "quiet"), try await tree(context, id)]
            }
            guard graph.nodes.count > 1 else { return [.paragraph("This job belongs to no flow.")] }
            return [.html(graph.html(here: Int(id))), graph.table]
        }
        return [.heading("Flow")] + parts
    }

    private static func tree(_ context: PageContext, _ id: Int64) async throws -> ConsolePart {
        let nodes = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(t)), '[]') from millrace.flow_tree($1, 20) t", [.int8(id)])
        return .table(
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
            ], empty: "This job belongs to no flow.")
    }
}

extension ErrorAnswer {
    static func noJob(_ id: Int64) -> ErrorAnswer {
        ErrorAnswer(
            .notFound, "job \(id) does not exist", hint: "An ended job is removed once its retention has passed.")
    }
}
