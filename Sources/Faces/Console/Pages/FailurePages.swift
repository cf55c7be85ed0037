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
        let sort = context.query("sort").flatMap { sorts.contains($0) ? $0 : nil } ?? "last"
        let groups = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(g)), '[]') from millrace.failure_groups(null, $1, $2, $3, 50, $4) g",
            [
                .text(context.query("kind")), .text(context.query("queue")), .int8(try context.number("after")),
                .text(sort),
            ]
        ).elements
        let filter = [("kind", context.query("kind")), ("queue", context.query("queue"))]
        let next =
            groups.count < 50
            ? nil : PageAddress.to("/failures", filter + [("sort", sort), ("after", groups.last?.text("id"))])
        let parts: [ConsolePart] = [
            .forms([
                ConsoleForm(
                    id: "filter", action: PageAddress.to("/failures"), button: "Show",
                    fields: [
                        ConsoleField(name: "kind", label: "Kind", value: context.query("kind") ?? ""),
                        ConsoleField(name: "queue", label: "Queue", value: context.query("queue") ?? ""),
                        ConsoleField(name: "sort", label: "Sorted by", value: sort, kind: .choice(sorts)),
                    ], isSearch: true)
            ]),
            .table(
                groups,
                [
                    .own("Error") { group in
                        ConsoleCell(
                            group.text("gist") ?? "", href: PageAddress.to("/failures/\(group.text("id") ?? "")"))
                    },
                    .text("Kind", "kind"), .text("Class", "class"), .count("Failed", "failed"), .count("Dead", "dead"),
                    .time("First seen", "first_at"), .time("Last seen", "last_at"),
                    .text("First version", "first_version"),
                ], empty: "No failure is recorded.", next: next),
        ]
        return ConsolePage(title: "Failures by cause", entry: "Failures", parts: parts)
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
                                   from millrace.jobs_shown(f.ids) j))
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
                ("Kind", .text(group.text("kind"))), ("Class", .text(group.text("class"))),
                ("Failed runs", .count(group.int("failed"))), ("Dead jobs", .count(group.int("dead"))),
                ("First seen", .time(group.text("first_at"))), ("Last seen", .time(group.text("last_at"))),
                ("First version", .text(group.text("first_version"))),
                ("Last version", .text(group.text("last_version"))),
                ("Queues", .text(group.list("queues").compactMap(\.plainText).joined(separator: ", "))),
            ]),
        ]
        if context.mayAct() {
            parts.append(
                .forms([
                    OperationPages.preview(
                        action: "retry", filter: [("group", "\(id)"), ("state", "dead")],
                        button: "Redrive the dead jobs of this group")
                ]))
        }
        parts += [.heading("Jobs"), JobPages.table(found["part"]?.list("jobs") ?? [], state: "dead", next: next)]
        let examples = group.list("examples").compactMap(\.plainText)
        if !examples.isEmpty {
            parts += [
                .heading("The latest jobs that failed so"),
                .list(examples.map { ConsoleCell("Job \($0)", href: Int($0).map(PageAddress.job)) }),
            ]
        }
        return ConsolePage(title: "Failure group \(id)", entry: "Failures", parts: parts)
    }
}
