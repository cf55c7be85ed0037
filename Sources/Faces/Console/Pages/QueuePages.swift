import FoundationEssentials
import Listeners
import Postgres
import Templates

enum QueuePages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/queues", make: list), ConsolePageRoute(path: "/queue", make: one),
        ConsolePageRoute(path: "/limits", make: limits),
    ]

    /// Counted up to a bound, and beyond it estimated from the statistics of Postgres.
    static func ready(_ queue: TemplateValue) -> String {
        let (ready, cap) = (queue.int("ready") ?? 0, queue.int("cap") ?? .max)
        guard ready >= cap else { return Figures.count(ready) }
        return queue.int("estimated").map { "about \(Figures.count($0))" } ?? "more than \(Figures.count(ready))"
    }

    /// What `queues_now` says of all queues together: counted, or where there are many of them from the latest sample.
    struct Totals: Sendable {
        let queues: Int
        let ready: String
        let running: Int?
        /// Seconds.
        let oldest: Double?
        /// When that was so, if not now.
        let sampled: Date?

        init(_ found: TemplateValue, now: Date) {
            let rows = found.list("rows")
            queues = found.int("queues") ?? rows.count
            sampled = found.text("at").flatMap(Figures.date)
            if sampled == nil, queues <= rows.count {
                ready = QueuePages.totalReady(rows)
                running = rows.reduce(0) { $0 + ($1.int("running") ?? 0) }
                let times = rows.compactMap { $0.text("oldest_ready_at").flatMap(Figures.date) }
                oldest = times.min().map { max(0, now.timeIntervalSince($0)) }
            } else {
                ready = found.int("ready").map { "about \(Figures.count($0))" } ?? "–"
                running = found.int("running")
                oldest = found.double("oldest_s").flatMap { $0 > 0 ? $0 : nil }
            }
        }

        /// Where the figures come from, if they were not counted for this page.
        var note: ConsolePart? {
            if let sampled {
                return .paragraph(
                    "There are \(Figures.count(queues)) queues. Their totals are those of the sample at \(Figures.clock(sampled)).",
                    tone: "quiet")
            }
            return ready == "–"
                ? .paragraph(
                    "There are \(Figures.count(queues)) queues, too many to count on every page, and there is no sample of the last minute. Workers take samples; so does a console that runs alone.",
                    tone: "warn") : nil
        }
    }

    static func totalReady(_ queues: [TemplateValue]) -> String {
        let total = queues.reduce(0) { $0 + ($1.int("estimated") ?? $1.int("ready") ?? 0) }
        let capped = queues.filter { ($0.int("ready") ?? 0) >= ($0.int("cap") ?? .max) }
        if capped.isEmpty { return Figures.count(total) }
        return "\(capped.contains { $0.int("estimated") == nil } ? "more than" : "about") \(Figures.count(total))"
    }

    /// Queues of a page.
    private static let page = 100

    static func table(
        _ queues: [TemplateValue], empty: String = "There are no queues yet. The first job creates one.",
        next: String? = nil
    ) -> ConsolePart {
        .table(
            queues,
            [
                .text("Queue", "queue") { PageAddress.queue($0.text("queue") ?? "") },
                .own("Ready", number: true) { queue in
                    ConsoleCell(
                        ready(queue), tone: queue.int("ready") == 0 ? "quiet" : nil,
                        live: "queue.\(queue.text("queue") ?? "").ready")
                },
                .count("Running", "running") { "queue.\($0.text("queue") ?? "").running" },
                .own("Scheduled", number: true) { queue in
                    let (count, cap) = (queue.int("scheduled") ?? 0, queue.int("cap") ?? .max)
                    return ConsoleCell(Figures.count(count, cap: cap), tone: count == 0 ? "quiet" : nil)
                },
                .time("Oldest waiting since", "oldest_ready_at"),
                .own("State") { queue in
                    queue.text("paused_at") == nil
                        ? ConsoleCell.state("open", tone: "good") : .state("paused", tone: "warn")
                },
            ], empty: empty, next: next)
    }

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let (search, after) = (context.query("q"), context.query("after"))
        let queues = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(d) order by d.queue), '[]') from millrace.queue_page($1, $2, $3) d",
            [.text(search), .text(after), .int4(Int32(page))]
        ).elements
        let next =
            queues.count < page
            ? nil : PageAddress.to("/queues", [("q", search), ("after", queues.last?.text("queue"))])
        var parts: [ConsolePart] = []
        if search != nil || after != nil || next != nil {
            parts += try await context.part("The totals") {
                let found = try await context.json("select millrace.queues_now(1)")
                return Totals(found, now: context.now).note.map { [$0] } ?? []
            }
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "filter", action: PageAddress.to("/queues"), button: "Find",
                        fields: [ConsoleField(name: "q", label: "Queue", value: search ?? "")], isSearch: true)
                ]))
        }
        let none =
            search.map { "No queue has “\($0)” in its name." } ?? "There are no queues yet. The first job creates one."
        parts.append(table(queues, empty: none, next: next))
        return ConsolePage(title: "Queues", entry: "Queues", parts: parts, live: "fleet")
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which queue?", field: "name") }
        let found = try await context.json(
            """
            select jsonb_build_object(
                'queue', (select to_jsonb(d) from millrace.queue_page(names => array[$1]) d),
                'why', millrace.why_queue($1),
                'rates', (select coalesce(jsonb_agg(to_jsonb(r) order by r.succeeded + r.failed desc), '[]') from millrace.rates('1 hour') r where r.queue = $1),
                'limit', (select to_jsonb(l) from millrace.limit_list() l where l.scope = 'queue' and l.name = $1))
            """, [.text(name)])
        guard let queue = found["queue"], queue.text("queue") != nil else {
            throw ErrorAnswer(.notFound, "there is no queue \(name.prefix(60))")
        }
        let isPaused = queue.text("paused_at") != nil
        var parts: [ConsolePart] = [
            .facts([
                ("Ready", ConsoleCell(ready(queue), live: "queue.\(name).ready")),
                ("Running", .count(queue.int("running"), live: "queue.\(name).running")),
                ("Scheduled", .count(queue.int("scheduled"))),
                ("Oldest waiting", .time(queue.text("oldest_ready_at"))),
                ("Paused", isPaused ? .time(queue.text("paused_at")) : ConsoleCell("no", tone: "quiet")),
                ("Ended jobs are kept", .text(queue.text("retention"))),
            ])
        ]
        parts += JobPages.why(found["why"])
        if context.mayAct() {
            let back = PageAddress.queue(name)
            parts.append(.forms(actions(name, isPaused: isPaused, limit: found["limit"], back: back)))
        }
        parts += [
            .heading("Jobs"),
            .tabs(
                JobPages.states.map {
                    ConsoleCell($0, href: PageAddress.to("/jobs", [("state", $0), ("queue", name)]))
                }),
            .heading("The last hour by kind"),
            .table(
                found["rates"]?.elements ?? [],
                [
                    .text("Kind", "kind") { row in
                        PageAddress.to("/failures", [("kind", row.text("kind")), ("queue", name)])
                    }, .count("Succeeded", "succeeded"), .count("Failed", "failed"), .count("Dead", "dead"),
                    .count("Cancelled", "cancelled"),
                    .own("Mean duration", number: true) { row in
                        let runs = (row.int("succeeded") ?? 0) + (row.int("failed") ?? 0)
                        return runs == 0 ? .none : .span((row.double("ms") ?? 0) / Double(runs) / 1000)
                    },
                ], empty: "No run ended in the last hour."),
        ]
        parts += try await context.part("The charts") { try await PastPages.queueCharts(context, queue: name) }
        return ConsolePage(title: "Queue \(name)", entry: "Queues", parts: parts, live: "fleet")
    }

    private static func actions(
        _ name: String, isPaused: Bool, limit: TemplateValue?, back: String
    ) -> [ConsoleForm] {
        let queue = ConsoleField(name: "queue", value: name, kind: .hidden)
        return [
            isPaused
                ? ConsoleForm(
                    id: "resume", action: PageAddress.to("/act/queue.resume"), button: "Resume", fields: [queue])
                : ConsoleForm(
                    id: "pause", action: PageAddress.to("/act/queue.pause"), button: "Pause", fields: [queue]),
            ConsoleForm(
                id: "limit", action: PageAddress.to("/act/queue.limit"), button: "Set the limit",
                fields: [
                    queue,
                    ConsoleField(
                        name: "concurrency", label: "Jobs at once", value: limit?.text("concurrency") ?? "",
                        kind: .number, hint: "Empty: no limit."),
                ]),
        ]
    }

    private static func limits(_ context: PageContext) async throws -> ConsolePage {
        let limits = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(l)), '[]') from (select * from millrace.limit_list() limit 500) l")
        return ConsolePage(
            title: "Limits", entry: "Limits",
            parts: [
                .table(
                    limits.elements,
                    [
                        .own("What") { row in
                            let name = row.text("name") ?? ""
                            return ConsoleCell(
                                "\(row.text("scope") ?? "") \(name)",
                                href: row.text("scope") == "queue" ? PageAddress.queue(name) : nil)
                        },
                        .count("Running", "running"), .count("At once", "concurrency"), .count("Waiting", "parked"),
                        .own("Rate") { row in
                            guard let rate = row.text("rate") else { return .none }
                            return ConsoleCell("\(rate) per \(Figures.span(row.double("per") ?? 1))")
                        },
                        .text("Weight", "weight"), .time("Changed", "changed_at"),
                    ], empty: "There are no limits. millrace queues limit sets one.")
            ])
    }
}
