import FoundationEssentials
import Listeners
import Postgres
import Templates

/// Failures grouped by their cause.
enum FailurePages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/failures", make: list), ConsolePageRoute(path: "/failures/{id}", make: one),
    ]

    private static let sorts = ["last", "first", "failed", "dead"]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let filter = ["since", "build", "kind", "queue"].map { ($0, context.query($0)) }
        let sort = context.query("sort").flatMap { sorts.contains($0) ? $0 : nil } ?? "last"
        let sorting = Sorting(sort, among: sorts) { word in PageAddress.to("/failures", filter + [("sort", word)]) }
        let known = try await builds(context)
        let since = try known.since ?? JobPages.moment(context, "since")
        let groups = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(g)), '[]') from millrace.failure_groups($1, $2, $3, $4, 50, $5) g",
            [
                .timestamp(since), .text(context.query("kind")), .text(context.query("queue")),
                .int8(try context.number("after")),
                .text(sort),
            ]
        ).elements
        func column(_ key: String, _ title: String) -> ConsoleTable.Sort {
            sorting.column(key, title, usual: .descending, turns: false)
        }
        let next =
            groups.count < 50
            ? nil : PageAddress.to("/failures", filter + [("sort", sort), ("after", groups.last?.text("id"))])
        var fields = [
            ConsoleField(name: "kind", label: "Kind", value: context.query("kind") ?? ""),
            ConsoleField(name: "queue", label: "Queue", value: context.query("queue") ?? ""),
            ConsoleField(
                name: "since", label: "Seen since (UTC)", value: since.map(Figures.field) ?? "", kind: .moment),
        ]
        if !known.names.isEmpty {
            fields.append(
                ConsoleField(
                    name: "build", label: "Since the build", value: context.query("build") ?? "",
                    kind: .choice([""] + known.names)))
        }
        fields.append(ConsoleField(name: "sort", label: "Sorted by", value: sort, kind: .choice(sorts)))
        var parts: [ConsolePart] = [
            .forms([
                ConsoleForm(
                    id: "filter", action: PageAddress.to("/failures"), button: "Show", fields: fields, isSearch: true)
            ])
        ]
        if let since, context.mayAct() {
            let narrow = filter.compactMap { name, value in value.map { (name, $0) } }
            parts.append(
                .forms([
                    OperationPages.preview(
                        action: "retry",
                        filter: narrow.filter { !["since", "build"].contains($0.0) } + [
                            ("since", Figures.field(since)), ("state", "dead"),
                        ],
                        button: "Retry all jobs that died since then")
                ]))
        }
        parts.append(
            .table(
                groups,
                [
                    .own("Error") { group in
                        ConsoleCell(
                            group.text("gist") ?? "", href: PageAddress.to("/failures/\(group.text("id") ?? "")"))
                    },
                    .text("Kind", "kind"), .text("Class", "class"),
                    .count("Failed", "failed").sorted(by: column("failed", "Failed")),
                    .count("Dead", "dead").sorted(by: column("dead", "Dead")),
                    .time("First seen", "first_at").sorted(by: column("first", "First seen")),
                    .time("Last seen", "last_at").sorted(by: column("last", "Last seen")),
                    .text("First version", "first_version"),
                ], empty: since == nil ? "No failure is recorded." : "Nothing has failed since then.", next: next,
                isBrief: true))
        return ConsolePage(title: "Failures by cause", entry: "Failures", parts: parts)
    }

    /// The builds that began last, and since when the one that is asked for runs.
    private static func builds(_ context: PageContext) async throws -> (names: [String], since: Date?) {
        let seen = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(v)), '[]') from millrace.versions_seen(10) v"
        ).elements
        let names = seen.compactMap { $0.text("version") }
        guard let asked = context.query("build") else { return (names, nil) }
        guard let build = seen.first(where: { $0.text("version") == asked }) else {
            throw ErrorAnswer(.invalid, "the build \(asked.prefix(60)) is not among the last ten", field: "build")
        }
        return (names, build.text("first_at").flatMap(Figures.date))
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.id()
        let found = try await context.json(
            """
            select jsonb_build_object(
                'group', (select to_jsonb(g) from millrace.failure_group($1) g),
                'part', (select jsonb_build_object('looked', f.looked, 'next', f.next::text, 'jobs',
                                (select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'queue', j.queue, 'state', j.state, 'attempt', j.attempt,
                                            'max_attempts', j.max_attempts, 'run_at', j.run_at, 'finished_at', j.finished_at, 'error', left(j.errors -> -1 ->> 'error', 300)) order by j.id desc), '[]')
                                   from millrace.jobs_shown(f.ids, true) j))
                           from millrace.failure_group_jobs($1, $2, 50, 10000) f))
            """, [.int8(id), .int8(try context.number("after"))])
        guard let group = found["group"], group.text("id") != nil else {
            throw ErrorAnswer(
                .notFound, "there is no group \(id)", hint: "It is forgotten 30 days after it was last seen.")
        }
        let next = found["part"]?.text("next").map { PageAddress.to("/failures/\(id)", [("after", $0)]) }
        var parts: [ConsolePart] = [
            .paragraph(group.text("gist") ?? "", tone: "bad"),
            .facts([
                ("Kind", .text(group.text("kind"), href: group.text("kind").map { KindPages.address($0) })),
                ("Class", .text(group.text("class"))),
                ("Failed runs", .count(group.int("failed"))), ("Dead jobs", .count(group.int("dead"))),
                ("First seen", .time(group.text("first_at"))), ("Last seen", .time(group.text("last_at"))),
                ("First version", .text(group.text("first_version"))),
                ("Last version", .text(group.text("last_version"))),
                ("Queues", .text(group.list("queues").compactMap(\.plainText).joined(separator: ", "))),
            ]),
        ]
        if context.mayAct(), group.int("dead") ?? 0 > 0 {
            parts.append(
                .forms([
                    OperationPages.preview(
                        action: "retry", filter: [("group", "\(id)"), ("state", "dead")],
                        button: "Retry all dead jobs of this group")
                ]))
        }
        let jobs = found["part"]?.list("jobs") ?? []
        parts += [.heading("Dead jobs"), JobPages.table(jobs, state: "dead", next: next)]
        // Jobs that have succeeded since, or are forgotten, are not in the table.
        let listed = Set(jobs.compactMap { $0.text("id") })
        let examples = group.list("examples").compactMap(\.plainText).filter { !listed.contains($0) }
        if !examples.isEmpty {
            parts += [
                .heading("Others that failed this way"),
                .list(examples.map { ConsoleCell("Job \($0)", href: Int($0).map(PageAddress.job)) }),
            ]
        }
        return ConsolePage(title: "Failure group \(id)", entry: "Failures", parts: parts)
    }
}
