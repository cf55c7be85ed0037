import FoundationEssentials
import Listeners
import Postgres
import Templates

/// The list of jobs with its search.
enum JobPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/jobs", make: list), ConsolePageRoute(path: "/search", make: search),
        ConsolePageRoute(path: "/jobs/{id}", make: JobStory.page),
    ]

    static let states = [
        "ready", "scheduled", "retrying", "waiting", "blocked", "running", "succeeded", "cancelled", "dead",
    ]
    private static let page = 50

    /// The conditions of a search, as they stand in the address.
    static let conditions = [
        "state", "queue", "kind", "tag", "tenant", "unique", "limit", "error", "since", "until", "group", "field",
        "value",
    ]

    static func filter(_ context: PageContext) -> [(String, String?)] {
        conditions.map { ($0, context.query($0)) }
    }

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let state = context.query("state") ?? "running"
        guard states.contains(state) else {
            throw ErrorAnswer(.invalid, "there is no state \(state.prefix(40))", field: "state")
        }
        let since = try moment(context, "since")
        let until = try moment(context, "until")
        let found = try await context.json(
            """
            select jsonb_build_object('looked', f.looked, 'next', f.next::text, 'jobs', (
                       select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'queue', j.queue, 'state', j.state, 'attempt', j.attempt, 'max_attempts', j.max_attempts,
                                  'run_at', j.run_at, 'enqueued_at', j.enqueued_at, 'started_at', j.started_at, 'finished_at', j.finished_at, 'worker', j.worker,
                                  'tenant', j.tenant, 'tags', j.tags, 'error', left(j.errors -> -1 ->> 'error', 200)) order by j.id desc), '[]')
                         from millrace.jobs_shown(f.ids) j))
              from millrace.jobs_find($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 50, 10000, $12, $13, $14) f
            """,
            [
                .text(state), .text(context.query("queue")), .text(context.query("kind")), .text(context.query("tag")),
                .text(context.query("tenant")), .text(context.query("unique")), .text(context.query("limit")),
                .text(context.query("error")), .timestamp(since), .timestamp(until), .int8(try context.number("after")),
                .int8(try context.number("group")), .text(context.query("field")), .text(context.query("value")),
            ])
        let jobs = found.list("jobs")
        let next = found.text("next").map { after in
            PageAddress.to(
                "/jobs", filter(context).map { $0.0 == "state" ? ("state", state) : $0 } + [("after", after)])
        }
        var parts: [ConsolePart] = [
            .tabs(
                states.map { word in
                    ConsoleCell(
                        word,
                        href: PageAddress.to("/jobs", filter(context).map { $0.0 == "state" ? ("state", word) : $0 }),
                        tone: word == state ? "here" : nil)
                }), searchForm(context, state: state),
        ]
        if jobs.isEmpty, let next {
            parts.append(
                .paragraph(
                    "None of the newest \(Figures.count(found.int("looked") ?? 0)) \(state) jobs fits; older ones may.")
            )
            parts.append(.list([ConsoleCell("Look at older ones", href: next)]))
        } else {
            parts.append(table(jobs, state: state, next: next))
        }
        if context.mayAct(), context.query("after") == nil {
            parts += OperationPages.start(
                filter: filter(context), state: state, mayDelete: context.mayAct(.admin))
        }
        return ConsolePage(title: "Jobs: \(state)", entry: "Jobs", parts: parts)
    }

    static func table(_ jobs: [TemplateValue], state: String, next: String? = nil) -> ConsolePart {
        var columns: [RowColumn] = [
            .own("Job") { job in
                ConsoleCell(job.text("id") ?? "", href: job.int("id").map(PageAddress.job))
            }, .text("Kind", "kind"),
            .text("Queue", "queue") { PageAddress.queue($0.text("queue") ?? "") },
        ]
        switch state {
        case "running": columns += [.text("Worker", "worker"), .time("Started", "started_at")]
        case "scheduled", "retrying": columns += [.time("Due", "run_at")]
        case "succeeded", "cancelled", "dead": columns += [.time("Ended", "finished_at")]
        default: columns += [.time("Enqueued", "enqueued_at")]
        }
        columns.append(
            .own("Attempt", number: true) { job in
                ConsoleCell((job.text("attempt") ?? "") + (job.text("max_attempts").map { " of \($0)" } ?? ""))
            })
        if ["dead", "retrying", "scheduled"].contains(state) { columns.append(.text("Last error", "error")) }
        return .table(jobs, columns, empty: "There are no such jobs.", next: next)
    }

    private static func searchForm(_ context: PageContext, state: String) -> ConsolePart {
        func field(_ name: String, _ label: String, hint: String? = nil) -> ConsoleField {
            ConsoleField(name: name, label: label, value: context.query(name) ?? "", hint: hint)
        }
        return .forms([
            ConsoleForm(
                id: "filter", action: PageAddress.to("/jobs"), button: "Find",
                fields: [
                    ConsoleField(name: "state", label: "State", value: state, kind: .choice(states)),
                    field("queue", "Queue"), field("kind", "Kind"), field("tag", "Tag"), field("tenant", "Tenant"),
                    field("error", "Error has"),
                    field("field", "Argument field", hint: "A declared one; give the kind, too."),
                    field("value", "Its value"),
                    ConsoleField(
                        name: "since", label: "Ended since", value: context.query("since") ?? "", kind: .moment),
                    ConsoleField(
                        name: "until", label: "Ended until", value: context.query("until") ?? "", kind: .moment),
                ], isSearch: true)
        ])
    }

    private static func moment(_ context: PageContext, _ name: String) throws -> Date? {
        guard let text = context.query(name) else { return nil }
        let whole = text.utf8.count == 16 ? text + ":00" : text
        guard let date = Figures.date(whole) else {
            throw ErrorAnswer(.invalid, "\(name) is not a time such as 2026-11-27T07:30", field: name)
        }
        return date
    }

    /// A number is a job; otherwise a queue or a kind by its name, else an error.
    private static func search(_ context: PageContext) async throws -> ConsolePage {
        let text = context.query("q") ?? ""
        if let id = Int(text) {
            return ConsolePage(
                title: "Search", entry: "Jobs", parts: [.list([ConsoleCell("Job \(id)", href: PageAddress.job(id))])]
            ).going(to: PageAddress.job(id))
        }
        let names = try await context.json(
            """
            select jsonb_build_object(
                'queues', (select coalesce(jsonb_agg(q.queue order by q.queue), '[]') from (select d.queue from millrace.queue_overview() d where position(lower($1) in lower(d.queue)) > 0 limit 20) q),
                'kinds', (select coalesce(jsonb_agg(k.kind order by k.kind), '[]') from (select l.kind from millrace.kind_list() l where position(lower($1) in lower(l.kind)) > 0 limit 20) k))
            """, [.text(text)])
        let queues = names.list("queues").compactMap(\.plainText)
        let kinds = names.list("kinds").compactMap(\.plainText)
        var cells = queues.map { ConsoleCell("Queue \($0)", href: PageAddress.queue($0)) }
        cells += kinds.flatMap { kind in
            ["dead", "retrying", "running", "ready"].map { (state: String) in
                ConsoleCell(
                    "\(state) jobs of \(kind)", href: PageAddress.to("/jobs", [("state", state), ("kind", kind)]))
            }
        }
        cells += [
            ConsoleCell(
                "Dead jobs with “\(text)” in their error",
                href: PageAddress.to("/jobs", [("state", "dead"), ("error", text)])),
            ConsoleCell(
                "Jobs that try again, with “\(text)” in their error",
                href: PageAddress.to("/jobs", [("state", "retrying"), ("error", text)])),
            ConsoleCell(
                "Dead jobs with the tag \(text)", href: PageAddress.to("/jobs", [("state", "dead"), ("tag", text)])),
        ]
        return ConsolePage(title: "Search: \(text)", entry: "Jobs", parts: [.list(cells)])
    }

    /// `40 %, page 4 of 10`
    static func progress(_ progress: TemplateValue?) -> String? {
        guard let progress, !progress.members.isEmpty else { return nil }
        let share = progress.double("fraction").map { Figures.percent($0) }
        let words = [share, progress.text("stage"), progress.text("note")].compactMap { $0 }
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }

    /// The sentence and the command of `millrace why`.
    static func why(_ why: TemplateValue?) -> [ConsolePart] {
        guard let why, let sentence = why.text("sentence") else { return [] }
        var parts: [ConsolePart] = [.heading("Why"), .paragraph(sentence)]
        let chain = why.list("chain").compactMap(\.plainText)
        if chain.count > 1 { parts.append(.list(chain.map { ConsoleCell($0) })) }
        if let command = why.text("command") ?? why.text("hint") {
            parts.append(.code(title: "What to do", text: command))
        }
        return parts
    }
}
