import FoundationEssentials
import Listeners
import Postgres
import Templates

/// Kinds of jobs: how long they take and how often they fail.
enum KindPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/kinds", make: list), ConsolePageRoute(path: "/kind", make: one),
    ]

    private static let sorts = ["slowest", "runs", "failures", "name"]
    private static let shown = 200
    private static let mostRuns = 10

    static func address(_ kind: String, _ more: [(String, String?)] = []) -> String {
        PageAddress.to("/kind", [("name", kind)] + more)
    }

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let sort = context.query("sort").flatMap { sorts.contains($0) ? $0 : nil } ?? sorts[0]
        let found = try await context.json(
            """
            select jsonb_build_object(
                'ran', (select coalesce(jsonb_agg(to_jsonb(k)), '[]') from millrace.kinds_now() k),
                'known', (select coalesce(jsonb_agg(x.kind order by x.kind), '[]') from (select l.kind from millrace.kind_list() l limit 1000) x))
            """)
        let rows = sorted(found.list("ran"), by: sort)
        var parts: [ConsolePart] = [
            .tabs(
                sorts.map {
                    ConsoleCell(
                        ["slowest": "Slowest", "runs": "Most runs", "failures": "Most failures"][$0] ?? "By name",
                        href: PageAddress.to("/kinds", [("sort", $0)]), tone: $0 == sort ? "here" : nil)
                })
        ]
        if let since = rows.first?.text("since").flatMap(Figures.date) {
            parts.append(
                .paragraph("Runs that ended since \(Figures.clock(since)), as workers counted them.", tone: "quiet"))
        }
        parts.append(table(Array(rows.prefix(shown))))
        let ran = Set(rows.compactMap { $0.text("kind") })
        let others = found.list("known").compactMap(\.plainText).filter { !ran.contains($0) }
        if !others.isEmpty {
            parts += [
                .heading("Kinds without recent runs"),
                .list(others.prefix(shown).map { ConsoleCell($0, href: address($0)) }),
            ]
            if others.count > shown {
                parts.append(.paragraph("And \(Figures.count(others.count - shown)) more; the search finds them."))
            }
        }
        return ConsolePage(title: "Kinds", entry: "Kinds", parts: parts)
    }

    private static func sorted(_ rows: [TemplateValue], by sort: String) -> [TemplateValue] {
        // They come by name.
        guard sort != "name" else { return rows }
        let ranks = rows.map { row -> Double in
            switch sort {
            case "runs": Double(KindComparison.runs(row))
            case "failures": row.double("failed") ?? 0
            default: row.double("p95_s") ?? row.double("run_s") ?? 0
            }
        }
        return rows.indices.sorted { (ranks[$0], $1) > (ranks[$1], $0) }.map { rows[$0] }
    }

    private static func table(_ rows: [TemplateValue]) -> ConsolePart {
        .table(
            rows,
            [
                .text("Kind", "kind") { address($0.text("kind") ?? "") }, .span("p95", "p95_s"), .span("p50", "p50_s"),
                .span("Mean", "run_s"), .span("Time in line", "wait_s"),
                .own("Runs", number: true) { .count(KindComparison.runs($0)) },
                .own("Failed", number: true) { row in
                    let failed = row.int("failed") ?? 0
                    let share = KindComparison.share("failed", of: row) ?? 0
                    return ConsoleCell(
                        failed == 0 ? "0" : "\(Figures.count(failed)), \(Figures.percent(share))",
                        tone: failed == 0 ? "quiet" : share >= 0.05 ? "bad" : nil)
                }, .count("Dead", "dead"),
            ], empty: "No run ended in the last hour.")
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which kind?", field: "name") }
        let span = OverviewPages.spans.first { $0.word == context.query("span") } ?? OverviewPages.spans[1]
        let known = try await context.json(
            "select to_jsonb(k) from millrace.kind_list() k where k.kind = $1", [.text(name)])
        guard known.text("kind") != nil else {
            throw ErrorAnswer(
                .notFound, "the kind \(name.prefix(60)) does not exist",
                hint: "The page Kinds lists all kinds that have had a job.")
        }
        var parts: [ConsolePart] = [
            .tabs(
                OverviewPages.spans.map {
                    ConsoleCell(
                        "Last \($0.word)", href: address(name, [("span", $0.word)]),
                        tone: $0.word == span.word ? "here" : nil)
                })
        ]
        parts += try await context.part("The figures") { try await figures(context, name, span) }
        parts += try await context.part("The charts") { try await PastPages.kindCharts(context, kind: name, span) }
        parts += try await context.part("The slowest runs") { try await slowest(context, name) }
        parts += try await context.part("The failures") { try await failures(context, name) }
        parts += [
            .heading("Jobs"),
            .tabs(
                JobPages.states.map {
                    ConsoleCell($0, href: PageAddress.to("/jobs", [("state", $0), ("kind", name)]))
                }),
            .facts([
                (
                    "Queue",
                    .text(known.text("queue"), href: known.text("queue").map { PageAddress.queue($0) })
                ),
                ("Found by the arguments", .text(words(known, "fields"))),
                ("Hidden arguments", .text(words(known, "redactions"))),
            ]),
        ]
        return ConsolePage(title: "Kind \(name)", entry: "Kinds", parts: parts)
    }

    private static func words(_ row: TemplateValue, _ key: String) -> String {
        row.list(key).compactMap(\.plainText).joined(separator: ", ")
    }

    /// What samples say of the span: all builds together, and two of them compared.
    private static func figures(
        _ context: PageContext, _ name: String, _ span: (word: String, seconds: Int, step: Int)
    ) async throws -> [ConsolePart] {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(k)), '[]') from millrace.kind_past($1, make_interval(secs => $2)) k",
            [.text(name), .float8(Double(span.seconds))]
        ).elements
        guard let whole = rows.first(where: { $0.text("version") == nil }) else {
            return [.paragraph("The samples of the last \(span.word) have no run of this kind.")]
        }
        let failed = whole.int("failed") ?? 0
        let share = KindComparison.share("failed", of: whole) ?? 0
        var parts: [ConsolePart] = [
            .tiles([
                ConsoleTile(
                    label: "Runs", figure: .count(KindComparison.runs(whole)),
                    notes: [ConsoleCell("ended in the last \(span.word)")]),
                ConsoleTile(
                    label: "Failed", figure: ConsoleCell(Figures.percent(share), tone: failed > 0 ? "bad" : "quiet"),
                    notes: [
                        ConsoleCell(
                            "\(Figures.count(failed)) runs, \(Figures.count(whole.int("dead") ?? 0)) jobs dead")
                    ]),
                ConsoleTile(
                    label: "p50", figure: .span(whole.double("p50_s")), notes: [ConsoleCell("half took at most this")]),
                ConsoleTile(
                    label: "p95", figure: .span(whole.double("p95_s")),
                    notes: [ConsoleCell("95 of 100 took at most this")]),
                ConsoleTile(
                    label: "Time in line", figure: .span(whole.double("wait_s")),
                    notes: [ConsoleCell("mean, until the first run")]),
            ])
        ]
        if let first = whole.text("first_at").flatMap(Figures.date),
            let last = whole.text("last_at").flatMap(Figures.date)
        {
            parts.append(
                .paragraph(
                    "From samples between \(Figures.moment(first)) and \(Figures.moment(last)). p50 and p95 are accurate to within a fifth.",
                    tone: "quiet"))
        }
        return parts + comparison(context, name, span.word, rows.filter { $0.text("version") != nil })
    }

    /// By default the build that ran last beside the one before it.
    private static func comparison(
        _ context: PageContext, _ name: String, _ span: String, _ builds: [TemplateValue]
    ) -> [ConsolePart] {
        let heading = ConsolePart.heading("Builds compared")
        guard builds.count > 1 else {
            let word = builds.first.map(KindComparison.name) ?? "one build"
            return [
                heading,
                .paragraph("All of these runs were on build \(word). A second build would be compared here."),
            ]
        }
        let names = builds.map(KindComparison.name)
        let after = context.query("after").flatMap { names.firstIndex(of: $0) } ?? 0
        let before = context.query("before").flatMap { names.firstIndex(of: $0) } ?? (after == 0 ? 1 : 0)
        var parts = [heading]
        if builds.count > 2 {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "compare", action: PageAddress.to("/kind"), button: "Compare",
                        fields: [
                            ConsoleField(name: "name", value: name, kind: .hidden),
                            ConsoleField(name: "span", value: span, kind: .hidden),
                            ConsoleField(name: "before", label: "Before", value: names[before], kind: .choice(names)),
                            ConsoleField(name: "after", label: "After", value: names[after], kind: .choice(names)),
                        ], isSearch: true)
                ]))
        }
        return parts + [KindComparison.table(before: builds[before], after: builds[after])]
    }

    /// Of the newest runs of all kinds: history has no index by kind.
    private static func slowest(_ context: PageContext, _ name: String) async throws -> [ConsolePart] {
        let found = try await context.json(
            "select to_jsonb(s) from millrace.kind_slowest($1, $2, $3) s",
            [.text(name), .int8(try context.number("runs_before")), .int4(Int32(mostRuns))])
        let (looked, fitting) = (found.int("looked") ?? 0, found.int("fitting") ?? 0)
        let next = found.text("next").map { address(name, [("span", context.query("span")), ("runs_before", $0)]) }
        var parts: [ConsolePart] = [.heading("Slowest runs")]
        if let since = found.text("since").flatMap(Figures.date) {
            let place = context.query("runs_before") == nil ? "newest" : "next older"
            parts.append(
                .paragraph(
                    "Of the \(place) \(Figures.count(looked)) runs of all kinds, since \(Figures.moment(since)), \(Figures.count(fitting)) are of this kind.",
                    tone: "quiet"))
        }
        parts.append(
            .table(
                found.list("runs"),
                [
                    .own("Job") { run in
                        ConsoleCell(run.text("job") ?? "", href: run.int("job").map(PageAddress.job))
                    }, .own("Took", number: true) { .span($0.double("ms").map { $0 / 1000 }) },
                    .state("Outcome", "outcome"), .text("Attempt", "attempt"), .time("Ended", "ended_at"),
                    .text("Worker", "worker"), .text("Version", "version"),
                ],
                empty: (found.int("fitting") ?? 0) == 0
                    ? "None of these runs is of this kind." : "How long these runs took is not recorded."))
        if let next { parts.append(.list([ConsoleCell("Look at older runs", href: next)])) }
        return parts
    }

    private static func failures(_ context: PageContext, _ name: String) async throws -> [ConsolePart] {
        let groups = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(g)), '[]') from millrace.failure_groups(null, $1, null, null, 10, 'failed') g",
            [.text(name)]
        ).elements
        let total = groups.reduce(0) { $0 + ($1.int("failed") ?? 0) }
        var parts: [ConsolePart] = [
            .heading("Failures by cause"),
            .table(
                groups,
                [
                    .own("Error") { group in
                        ConsoleCell(
                            group.text("gist") ?? "", href: PageAddress.to("/failures/\(group.text("id") ?? "")"))
                    }, .count("Failed", "failed"),
                    .own("Share", number: true) { group in
                        ConsoleCell(Figures.percent(Double(group.int("failed") ?? 0) / Double(max(1, total))))
                    }, .count("Dead", "dead"), .time("Last seen", "last_at"), .text("First version", "first_version"),
                ], empty: "No failure of this kind is recorded.", isBrief: true),
        ]
        if groups.count == 10 {
            parts.append(
                .list([
                    ConsoleCell("All causes of this kind", href: PageAddress.to("/failures", [("kind", name)]))
                ]))
        }
        return parts
    }
}
