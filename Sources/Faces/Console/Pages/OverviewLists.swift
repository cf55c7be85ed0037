import FoundationEssentials
import Postgres
import Templates

/// Short lists of the overview: what waits for somebody, and what is new.
enum OverviewLists {
    private static let most = 5
    /// A queue whose oldest job has waited as long needs a look.
    private static let patience: TimeInterval = 300

    /// Queues that need somebody: paused ones in which jobs wait, and those whose jobs have waited for long, the longest first.
    static func waiting(_ queues: [TemplateValue], now: Date) -> [ConsolePart] {
        let found = queues.compactMap { queue -> (cell: ConsoleCell, waited: TimeInterval)? in
            guard let name = queue.text("queue"), (queue.int("ready") ?? 0) > 0 else { return nil }
            let waited = queue.text("oldest_ready_at").flatMap(Figures.date).map { now.timeIntervalSince($0) } ?? 0
            let isPaused = queue.text("paused_at") != nil
            guard isPaused || waited >= patience else { return nil }
            let jobs = QueuePages.ready(queue)
            let why =
                isPaused
                ? "paused, and \(jobs) \(jobs == "1" ? "job waits" : "jobs wait")"
                : (jobs == "1" ? "its ready job" : "the oldest of \(jobs) ready jobs")
                    + " has waited for \(Figures.span(waited))"
            return (ConsoleCell("\(name): \(why)", href: PageAddress.queue(name)), waited)
        }.sorted { $0.waited > $1.waited }
        guard !found.isEmpty else { return [] }
        return [.heading("Queues that need you"), .list(found.prefix(most).map(\.cell))]
    }

    /// Causes of failures that were not seen before the newest build, and a way to all that failed since.
    static func newCauses(_ context: PageContext) async throws -> [ConsolePart] {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'builds', (select coalesce(jsonb_agg(to_jsonb(v) order by v.first_at desc), '[]') from millrace.versions_seen(2) v),
                'causes', (select coalesce(jsonb_agg(to_jsonb(g) order by g.first_at desc), '[]') from millrace.failure_groups(null, null, null, null, 6, 'first') g))
            """)
        let builds = found.list("builds")
        // The first build of all is no news.
        guard builds.count > 1, let build = builds.first, let name = build.text("version"),
            let since = build.text("first_at").flatMap(Figures.date)
        else { return [] }
        let causes = found.list("causes").filter { cause in
            cause.text("first_at").flatMap(Figures.date).map { $0 >= since } ?? false
        }
        let all = ConsoleCell(
            "All failures since \(name) began", href: PageAddress.to("/failures", [("since", Figures.field(since))]))
        let table = ConsolePart.table(
            Array(causes.prefix(most)),
            [
                .own("Error") { cause in
                    ConsoleCell(
                        cause.text("gist") ?? "", href: PageAddress.to("/failures/\(cause.text("id") ?? "")"))
                }, .text("Kind", "kind") { KindPages.address($0.text("kind") ?? "") }, .count("Failed", "failed"),
                .count("Dead", "dead"), .time("First seen", "first_at"),
            ], empty: "No new cause since \(name) began, \(Figures.relative(since, to: context.now)).", isBrief: true)
        return [.heading("New causes since the last build"), table, .list([all])]
    }
}
