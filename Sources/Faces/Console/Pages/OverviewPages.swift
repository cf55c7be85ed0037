import FoundationEssentials
import Postgres
import Templates

/// The first page: how the fleet is, and how it was.
enum OverviewPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "", make: overview), ConsolePageRoute(path: "/findings", make: findings),
    ]

    /// How far the charts reach back: word, seconds, seconds of a step.
    static let spans: [(word: String, seconds: Int, step: Int)] = [
        ("1h", 3600, 20), ("24h", 86_400, 300), ("14d", 1_209_600, 3600),
    ]

    private static func overview(_ context: PageContext) async throws -> ConsolePage {
        let span = spans.first { $0.word == context.query("span") } ?? spans[0]
        async let judged = verdict(context, most: VerdictPart.mostOnOverview)
        // Each by itself: what fails hides nothing else.
        var found = TemplateValue.null
        let lost = try await context.part("The queues") {
            found = try await context.json("select millrace.queues_now(20)")
            return []
        }
        let totals = QueuePages.Totals(found, now: context.now)
        var recent: PastPages.Recent?
        let past = try await context.part("The charts") {
            recent = try await PastPages.recent(context, span: span)
            return []
        }
        let figures = try await context.part("The figures") { try await self.figures(totals, recent, context) }
        let lanes = try await context.part("The lanes") { try await self.lanes(context) }
        let views = ConsolePart.tabs(
            spans.map {
                ConsoleCell(
                    "Last \($0.word)", href: PageAddress.to("", [("span", $0.word)]),
                    tone: $0.word == span.word ? "here" : nil)
            })
        var parts = [await judged, views] + figures + (totals.note.map { lost.isEmpty ? [$0] : [] } ?? [])
        parts += recent.map { [$0.work] } ?? past
        parts += OverviewLists.waiting(found.list("rows"), now: context.now)
        parts += try await context.part("The new causes") { try await OverviewLists.newCauses(context) }
        parts.append(.heading("Queues"))
        parts += lost
        if lost.isEmpty { parts.append(QueuePages.table(Array(found.list("rows").prefix(20)))) }
        if totals.queues > 20 {
            parts.append(
                .list([ConsoleCell("All \(Figures.count(totals.queues)) queues", href: PageAddress.to("/queues"))]))
        }
        parts += lanes
        if let recent { parts += [.heading("How long it takes"), recent.patience] + recent.whatHappened }
        return ConsolePage(title: "Overview", entry: "Overview", parts: parts, live: "fleet")
    }

    private static func figures(
        _ totals: QueuePages.Totals, _ recent: PastPages.Recent?, _ context: PageContext
    ) async throws -> [ConsolePart] {
        let facts = try await context.json(
            """
            select jsonb_build_object(
                'rates', (select jsonb_build_object('succeeded', coalesce(sum(r.succeeded), 0), 'failed', coalesce(sum(r.failed), 0), 'dead', coalesce(sum(r.dead), 0)) from millrace.rates() r),
                'workers', (select count(*) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'),
                'silent', (select count(*) from millrace.workers w where w.beat_at <= millrace.now() - interval '8 s'),
                'slots', (select coalesce(sum(w.slots), 0) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'),
                'busy', (select coalesce(sum(w.running), 0) from millrace.workers w where w.beat_at > millrace.now() - interval '8 s'))
            """)
        let rates = facts["rates"] ?? .null
        return [.tiles(tiles(facts, totals, rates, recent))]
    }

    /// The five figures that say how the fleet is.
    private static func tiles(
        _ facts: TemplateValue, _ totals: QueuePages.Totals, _ rates: TemplateValue, _ recent: PastPages.Recent?
    ) -> [ConsoleTile] {
        let silent = facts.int("silent") ?? 0
        let failed = rates.int("failed") ?? 0
        return [
            ConsoleTile(
                label: "Ready", figure: ConsoleCell(totals.ready, live: "total.ready"),
                notes: [ConsoleCell("jobs that may start")], spark: recent?.spark("ready", tone: "waits")),
            ConsoleTile(
                label: "Oldest waiting", figure: .span(totals.oldest),
                notes: [ConsoleCell(totals.oldest == nil ? "nothing waits" : "since it could start")],
                spark: recent?.spark("oldest_s", tone: "waits")),
            ConsoleTile(
                label: "Running",
                figure: .count(totals.running, live: "total.running"),
                notes: [
                    ConsoleCell("of \(Figures.count(facts.int("slots") ?? 0)) slots · "),
                    .count(facts.int("workers"), href: PageAddress.to("/workers"), live: "total.workers"),
                    ConsoleCell(facts.int("workers") == 1 ? " worker" : " workers"),
                    ConsoleCell(silent > 0 ? " · \(silent) silent" : "", tone: "bad"),
                ], spark: recent?.spark("running", tone: "going")),
            ConsoleTile(
                label: "Succeeded", figure: .count(rates.int("succeeded")), notes: [ConsoleCell("in 5 min")],
                spark: recent?.spark("succeeded", tone: "ok")),
            ConsoleTile(
                label: "Failed",
                figure: ConsoleCell(
                    Figures.count(failed), href: failed > 0 ? PageAddress.to("/failures") : nil,
                    tone: failed > 0 ? "bad" : "quiet"),
                notes: [ConsoleCell("in 5 min · \(Figures.count(rates.int("dead") ?? 0)) dead")],
                spark: recent?.spark("failed", tone: "no")),
        ]
    }

    private static func lanes(_ context: PageContext) async throws -> [ConsolePart] {
        let found = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(l)), '[]') from millrace.room_lanes(2000) l")
        let used = found.elements.filter {
            ($0.int("waiting") ?? 0) + ($0.int("running") ?? 0) + ($0.int("later") ?? 0) > 0
        }
        return used.isEmpty ? [] : [.heading("Lanes of notices, webhooks and check-ins"), LanePart.lanes(used)]
    }

    private static func findings(_ context: PageContext) async throws -> ConsolePage {
        ConsolePage(
            title: "What needs attention", entry: "Overview", parts: [await verdict(context, most: nil)], live: "fleet")
    }

    private static func verdict(_ context: PageContext, most: Int?) async -> ConsolePart {
        func part(_ word: String, _ findings: [VerdictFinding]) -> ConsolePart {
            .verdict(
                VerdictPart(
                    word: word, tone: StateTone.of(word) ?? (word == "UNKNOWN" ? "bad" : "good"), findings: findings,
                    most: most, mayAct: context.mayAct(), now: context.now))
        }
        do {
            let verdict = try await context.live.currentVerdict()
            return part(verdict.word, verdict.findings)
        } catch {
            let isUsedUp = (error as? PostgresError).map(\.saysConnectionsAreUsedUp) ?? false
            let hint = isUsedUp ? ": \(PostgresError.connectionsHint)" : ""
            return part(
                "UNKNOWN",
                [
                    VerdictFinding(
                        isCritical: true, sentence: "The state of the workers cannot be read: \(error)\(hint)")
                ])
        }
    }
}
