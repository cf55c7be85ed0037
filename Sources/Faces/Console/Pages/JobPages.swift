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
        let tabs = Self.tabs(context, state: state)
        let sorting = self.sorting(context, state: state)
        let place = max(0, Int(clamping: try context.number("place") ?? 0))
        let found: TemplateValue
        do {
            found = try await self.found(context, state: state, sorting, from: place)
        } catch let error as ErrorAnswer where error.status == 400 {
            return refused(error.message, error.hint, context, state: state)
        } catch PostgresError.server(let error) where error.sqlState == "22023" {
            return refused(error.message, error.hint, context, state: state)
        }
        let jobs = found.list("jobs")
        let next = Self.following(found, context, state: state, sorting, from: place)
        let saved = SavedSearches(found.list("searches"), asked: asked(context, state: state), sort: sorting.text)
        var parts: [ConsolePart] = [tabs] + saved.links + [searchForm(context, state: state)]
        if jobs.isEmpty, let next {
            parts.append(
                .paragraph(
                    "None of the newest \(Figures.count(found.int("looked") ?? 0)) \(state) jobs match; older ones may."
                )
            )
            parts.append(.list([ConsoleCell("Look at older ones", href: next)]))
        } else {
            if sorting.key != nil, found.text("next") != nil || context.query("after") != nil {
                parts.append(
                    .paragraph("Only the \(found.int("fits") ?? 0) jobs found so far are sorted; there are more."))
            }
            let picking = context.mayAct() && !jobs.isEmpty
            parts.append(table(jobs, state: state, next: next, sorting: sorting, isPicked: picking))
            if picking { parts += OperationPages.picking(state: state, mayDelete: context.mayAct(.admin)) }
        }
        if context.mayAct(), context.query("after") == nil, place == 0 {
            parts += OperationPages.start(
                filter: filter(context), state: state, mayDelete: context.mayAct(.admin))
        }
        if context.mayAct() { parts += saved.forms }
        return ConsolePage(title: "Jobs: \(state)", entry: "Jobs", parts: parts)
    }

    private static func asked(_ context: PageContext, state: String) -> [(String, String?)] {
        filter(context).map { $0.0 == "state" ? ("state", state) : $0 }
    }

    /// In the order of their numbers, the page after the last one's; sorted, the next places, and behind the last of them the sorted older ones.
    private static func following(
        _ found: TemplateValue, _ context: PageContext, state: String, _ sorting: Sorting, from place: Int
    ) -> String? {
        let filter = asked(context, state: state)
        if let sort = sorting.text, place + page < found.int("fits") ?? 0 {
            return PageAddress.to(
                "/jobs", filter + [("sort", sort), ("place", "\(place + page)"), ("after", context.query("after"))])
        }
        return found.text("next").map { PageAddress.to("/jobs", filter + [("sort", sorting.text), ("after", $0)]) }
    }

    private static func sorting(_ context: PageContext, state: String) -> Sorting {
        let filter = asked(context, state: state)
        return Sorting(context.query("sort"), among: sorts(of: state)) { word in
            PageAddress.to("/jobs", filter + [("sort", word)])
        }
    }

    /// Where a job waits in line, nothing says by how many attempts.
    private static func sorts(of state: String) -> [String] {
        let all = ["number", "kind", "queue", "time"]
        return ["ready", "blocked", "running"].contains(state) ? all : all + ["attempts"]
    }

    private static func tabs(_ context: PageContext, state: String) -> ConsolePart {
        .tabs(
            states.map { word in
                ConsoleCell(
                    word,
                    href: PageAddress.to("/jobs", filter(context).map { $0.0 == "state" ? ("state", word) : $0 }),
                    tone: word == state ? "here" : nil)
            })
    }

    /// A search that cannot be made: what was asked for stays in the form.
    private static func refused(
        _ message: String, _ hint: String?, _ context: PageContext, state: String
    ) -> ConsolePage {
        ConsolePage(
            title: "Jobs: \(state)", entry: "Jobs",
            parts: [tabs(context, state: state), .paragraph(message, tone: "bad")]
                + (hint.map { [.paragraph($0)] } ?? [])
                + [searchForm(context, state: state)], status: 400)
    }

    private static func found(
        _ context: PageContext, state: String, _ sorting: Sorting, from place: Int
    ) async throws -> TemplateValue {
        let since = try moment(context, "since")
        let until = try moment(context, "until")
        return try await context.json(
            """
            select jsonb_build_object('looked', f.looked, 'next', f.next::text, 'fits', cardinality(f.ids), 'searches', (select coalesce(jsonb_agg(to_jsonb(c)), '[]') from millrace.console_searches() c), 'jobs', (
                       select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'queue', j.queue, 'state', j.state, 'attempt', j.attempt, 'max_attempts', j.max_attempts,
                                  'run_at', j.run_at, 'enqueued_at', j.enqueued_at, 'started_at', j.started_at, 'finished_at', j.finished_at, 'worker', j.worker,
                                  'tenant', j.tenant, 'tags', j.tags, 'error', left(j.errors -> -1 ->> 'error', 200)) order by j.ordinality), '[]')
                         from (select case when $15::text is null then f.ids else (millrace.jobs_sorted($1, f.ids, $15, $16))[$17 + 1 : $17 + 50] end as ids) s
                        cross join lateral millrace.jobs_shown(s.ids, true) with ordinality j))
              from millrace.jobs_find($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, case when $15::text is null then 50 else 500 end, 10000, $12, $13, $14) f
            """,
            [
                .text(state), .text(context.query("queue")), .text(context.query("kind")), .text(context.query("tag")),
                .text(context.query("tenant")), .text(context.query("unique")), .text(context.query("limit")),
                .text(context.query("error")), .timestamp(since), .timestamp(until), .int8(try context.number("after")),
                .int8(try context.number("group")), .text(context.query("field")), .text(context.query("value")),
                .text(sorting.key), .bool(sorting.isReversed), .int4(Int32(clamping: place)),
            ])
    }

    static func table(
        _ jobs: [TemplateValue], state: String, next: String? = nil, sorting: Sorting? = nil, isPicked: Bool = false
    ) -> ConsolePart {
        func sort(_ key: String, _ title: String, usual: Sorting.Order = .ascending) -> ConsoleTable.Sort? {
            sorts(of: state).contains(key) ? sorting?.column(key, title, usual: usual) : nil
        }
        func time(_ title: String, _ key: String) -> RowColumn {
            .time(title, key).sorted(by: sort("time", title, usual: .descending))
        }
        var columns: [RowColumn] = [
            RowColumn.own("Job") { job in
                var cell = ConsoleCell(job.text("id") ?? "", href: job.int("id").map(PageAddress.job))
                if isPicked { cell.pick = cell.text }
                return cell
            }.sorted(by: sort("number", "Job")),
            RowColumn.text("Kind", "kind").sorted(by: sort("kind", "Kind")),
            RowColumn.text("Queue", "queue") { PageAddress.queue($0.text("queue") ?? "") }
                .sorted(by: sort("queue", "Queue")),
        ]
        switch state {
        case "running": columns += [.text("Worker", "worker"), time("Started", "started_at")]
        case "scheduled", "retrying": columns += [time("Due", "run_at")]
        case "succeeded", "cancelled", "dead": columns += [time("Ended", "finished_at")]
        default: columns += [time("Enqueued", "enqueued_at")]
        }
        columns.append(
            RowColumn.own("Attempt", number: true) { job in
                ConsoleCell((job.text("attempt") ?? "") + (job.text("max_attempts").map { " of \($0)" } ?? ""))
            }.sorted(by: sort("attempts", "Attempt", usual: .descending)))
        if ["dead", "retrying", "scheduled"].contains(state) { columns.append(.text("Last error", "error")) }
        return .table(jobs, columns, empty: "There are no such jobs.", next: next, isBrief: true)
    }

    private static func searchForm(_ context: PageContext, state: String) -> ConsolePart {
        func field(_ name: String, _ label: String, hint: String? = nil, folded: Bool = true) -> ConsoleField {
            ConsoleField(
                name: name, label: label, value: context.query(name) ?? "", hint: hint, isFolded: folded)
        }
        return .forms([
            ConsoleForm(
                id: "filter", action: PageAddress.to("/jobs"), button: "Find",
                fields: [
                    ConsoleField(name: "state", label: "State", value: state, kind: .choice(states)),
                    field("queue", "Queue", folded: false), field("kind", "Kind", folded: false),
                    field("error", "Error has", folded: false), field("tag", "Tag"), field("tenant", "Tenant"),
                    field("field", "Argument field", hint: "A declared one; give the kind, too."),
                    field("value", "Its value"),
                    ConsoleField(
                        name: "sort", label: "Sorted by", value: context.query("sort") ?? "",
                        kind: .choice([""] + sorts(of: state).flatMap { [$0, $0 + " reversed"] }), isFolded: true,
                        opensFold: false),
                    ConsoleField(
                        name: "since", label: "Ended since", value: context.query("since") ?? "", kind: .moment,
                        isFolded: true),
                    ConsoleField(
                        name: "until", label: "Ended until", value: context.query("until") ?? "", kind: .moment,
                        isFolded: true),
                ]
                    + ["unique", "limit", "group"].compactMap { name in
                        context.query(name).map { ConsoleField(name: name, value: $0, kind: .hidden) }
                    }, isSearch: true)
        ])
    }

    static func moment(_ context: PageContext, _ name: String) throws -> Date? {
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
        var parts: [ConsolePart] = text.isEmpty ? [] : [.list(Palette.ids(text) + Palette.pages(text))]
        parts += try await context.part("Queues with this name") {
            let queues = try await context.json(
                "select coalesce(jsonb_agg(d.queue order by d.queue), '[]') from millrace.queue_page($1, null, 20) d",
                [.text(text)])
            return [
                .list(
                    queues.elements.compactMap(\.plainText).map {
                        ConsoleCell("Queue \($0)", href: PageAddress.queue($0))
                    })
            ]
        }
        parts += try await context.part("Kinds with this name") {
            let kinds = try await context.json(
                "select coalesce(jsonb_agg(k.kind order by k.kind), '[]') from (select l.kind from millrace.kind_list() l where position(lower($1) in lower(l.kind)) > 0 limit 20) k",
                [.text(text)])
            return [
                .list(
                    kinds.elements.compactMap(\.plainText).flatMap { (kind: String) -> [ConsoleCell] in
                        [ConsoleCell("Kind \(kind)", href: KindPages.address(kind))]
                            + ["Dead", "Retrying", "Running", "Ready"].map { (state: String) in
                                ConsoleCell(
                                    "\(state) jobs of \(kind)",
                                    href: PageAddress.to("/jobs", [("state", state.lowercased()), ("kind", kind)]))
                            }
                    })
            ]
        }
        let cells = [
            ConsoleCell(
                "Dead jobs with “\(text)” in their error",
                href: PageAddress.to("/jobs", [("state", "dead"), ("error", text)])),
            ConsoleCell(
                "Retrying jobs with “\(text)” in their error",
                href: PageAddress.to("/jobs", [("state", "retrying"), ("error", text)])),
            ConsoleCell(
                "Dead jobs with the tag \(text)", href: PageAddress.to("/jobs", [("state", "dead"), ("tag", text)])),
        ]
        return ConsolePage(title: "Search: \(text)", entry: "Jobs", parts: parts + [.list(cells)])
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
        let command = why.text("command") ?? why.text("hint")
        // What stands above and below the list is not said in it again.
        let chain = why.list("chain").compactMap(\.plainText).filter { line in
            !sentence.hasSuffix(line) && command.map { line != "to do: \($0)" } ?? true
        }
        parts.append(.list(chain.map { ConsoleCell($0) }))
        if let command { parts.append(.code(title: "What to do", text: command)) }
        return parts
    }
}
