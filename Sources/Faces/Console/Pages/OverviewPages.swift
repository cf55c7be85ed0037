import FoundationEssentials
import Postgres
import Templates

/// The first page: how the fleet is, and how it was.
enum OverviewPages {
    static let routes: [ConsolePageRoute] = [ConsolePageRoute(path: "", make: overview)]

    /// How far the charts reach back: word, seconds, seconds of a step.
    static let spans: [(word: String, seconds: Int, step: Int)] = [
        ("1h", 3600, 20), ("24h", 86_400, 300), ("14d", 1_209_600, 3600),
    ]

    private static func overview(_ context: PageContext) async throws -> ConsolePage {
        let span = spans.first { $0.word == context.query("span") } ?? spans[0]
        async let judged = verdict(context)
        let facts = try await context.json(
            """
            select jsonb_build_object(
                'queues', (select coalesce(jsonb_agg(to_jsonb(d) order by d.ready + d.running desc, d.queue), '[]') from millrace.queue_overview() d),
                'rates', (select jsonb_build_object('succeeded', coalesce(sum(r.succeeded), 0), 'failed', coalesce(sum(r.failed), 0), 'dead', coalesce(sum(r.dead), 0)) from millrace.rates() r),
                'lanes', (select coalesce(jsonb_agg(to_jsonb(l)), '[]') from millrace.room_lanes(2000) l),
                'workers', (select count(*) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'),
                'silent', (select count(*) from millrace.workers w where w.beat_at <= millrace.now() - interval '8 s'),
                'slots', (select coalesce(sum(w.slots), 0) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'),
                'busy', (select coalesce(sum(w.running), 0) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'))
            """)
        var parts: [ConsolePart] = [await judged]
        let queues = facts.list("queues")
        let oldest = queues.compactMap { queue in queue.text("oldest_ready_at").flatMap(Figures.date) }.min()
        let rates = facts["rates"] ?? .null
        parts.append(
            .facts([
                ("Ready", ConsoleCell(QueuePages.totalReady(queues), live: "total.ready")),
                ("Running", .count(queues.reduce(0) { $0 + ($1.int("running") ?? 0) }, live: "total.running")),
                ("Oldest waiting", .span(oldest.map { max(0, context.now.timeIntervalSince($0)) })),
                ("Workers", .count(facts.int("workers"), href: PageAddress.to("/workers"), live: "total.workers")),
                (
                    "Silent workers",
                    ConsoleCell(
                        Figures.count(facts.int("silent") ?? 0), tone: (facts.int("silent") ?? 0) > 0 ? "bad" : "quiet")
                ),
                ("Slots in use", ConsoleCell("\(facts.int("busy") ?? 0) of \(facts.int("slots") ?? 0)")),
                ("Succeeded in 5 min", .count(rates.int("succeeded"))),
                ("Failed in 5 min", .count(rates.int("failed"), href: PageAddress.to("/failures"))),
            ]))
        parts += try await PastPages.charts(context, span: span)
        parts.append(.heading("Queues"))
        parts.append(QueuePages.table(Array(queues.prefix(20))))
        if queues.count > 20 {
            parts.append(.list([ConsoleCell("All \(queues.count) queues", href: PageAddress.to("/queues"))]))
        }
        let lanes = facts.list("lanes").filter {
            ($0.int("waiting") ?? 0) + ($0.int("running") ?? 0) + ($0.int("later") ?? 0) > 0
        }
        if !lanes.isEmpty {
            parts += [.heading("Lanes of notices, webhooks and check-ins"), LanePart.lanes(lanes)]
        }
        return ConsolePage(title: "Overview", entry: "Overview", parts: parts, live: "fleet")
    }

    private static func verdict(_ context: PageContext) async -> ConsolePart {
        do {
            let verdict = try await context.live.currentVerdict()
            return .verdict(
                word: verdict.word, tone: StateTone.of(verdict.word) ?? "good",
                findings: verdict.findings.map { ConsoleCell($0) })
        } catch {
            let more =
                (error as? PostgresError).map(\.saysConnectionsAreUsedUp) ?? false
                ? [PostgresError.connectionsHint] : []
            return .verdict(
                word: "UNKNOWN", tone: "bad",
                findings: (["The state of the fleet cannot be told: \(error)"] + more).map { ConsoleCell($0) })
        }
    }
}
