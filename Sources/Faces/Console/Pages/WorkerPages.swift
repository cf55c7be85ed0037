import Listeners
import Postgres
import Templates

/// Workers and the versions they run.
enum WorkerPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/workers", make: list), ConsolePageRoute(path: "/versions", make: versions),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let workers = try await context.json(
            """
            select coalesce(jsonb_agg(to_jsonb(w) || jsonb_build_object('silent_s', extract(epoch from millrace.now() - w.beat_at)) order by w.worker), '[]')
              from (select * from millrace.workers limit 500) w
            """
        ).elements
        return ConsolePage(
            title: "Workers", entry: "Workers",
            parts: [
                .table(
                    workers,
                    [
                        .text("Worker", "worker"), .text("Version", "version"),
                        .own("State") { worker in
                            var cell = ConsoleCell.state(worker.text("state"))
                            if let beat = worker.double("silent_s"), beat > 8 {
                                cell = .state("silent for \(Figures.span(beat))", tone: "bad")
                            }
                            cell.live = "worker.\(worker.text("worker") ?? "").state"
                            return cell
                        },
                        .count("Running", "running") { "worker.\($0.text("worker") ?? "").running" },
                        .count("Slots", "slots"), .count("Stuck", "stuck"), .time("Last beat", "beat_at"),
                        .time("Started", "started_at"),
                        .own("Queues") { worker in
                            let queues = worker.list("queues").compactMap(\.plainText)
                            return ConsoleCell(queues.isEmpty ? "all" : queues.joined(separator: ", "))
                        },
                        .own("Kinds", number: true) { .count($0.list("kinds").count) },
                    ], empty: "No worker is running. millrace worker starts one.")
            ], live: "fleet")
    }

    /// Two versions side by side, by default the two newest.
    private static func versions(_ context: PageContext) async throws -> ConsolePage {
        let known = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(v)), '[]') from millrace.versions_seen() v"
        ).elements
        let names = known.compactMap { $0.text("version") }
        var parts: [ConsolePart] = [
            .table(
                known,
                [
                    .text("Version", "version"), .count("Running workers", "workers"), .time("First seen", "first_at"),
                    .time("Last seen", "last_at"),
                ], empty: "No worker has run yet.")
        ]
        guard names.count > 1 else {
            parts.append(.paragraph("As soon as a second version has run, the two are compared here."))
            return ConsolePage(title: "Versions", entry: "Versions", parts: parts)
        }
        let after = context.query("after").flatMap { names.contains($0) ? $0 : nil } ?? names[0]
        let before =
            context.query("before").flatMap { names.contains($0) ? $0 : nil } ?? names.first { $0 != after } ?? names[1]
        parts += [
            .heading("Before and after"),
            .forms([
                ConsoleForm(
                    id: "compare", action: PageAddress.to("/versions"), button: "Compare",
                    fields: [
                        ConsoleField(name: "before", label: "Before", value: before, kind: .choice(names)),
                        ConsoleField(name: "after", label: "After", value: after, kind: .choice(names)),
                    ], isSearch: true)
            ]),
        ]
        parts += try await context.part("The comparison") {
            let rows = try await context.json(
                "select coalesce(jsonb_agg(to_jsonb(c)), '[]') from millrace.versions_compare($1, $2) c",
                [.text(before), .text(after)]
            ).elements
            return [comparison(rows)]
        }
        return ConsolePage(title: "Versions", entry: "Versions", parts: parts)
    }

    private static func comparison(_ rows: [TemplateValue]) -> ConsolePart {
        @Sendable func share(_ row: TemplateValue, _ what: String, _ side: String) -> ConsoleCell {
            guard let runs = row.double("\(side)_runs"), runs > 0, let count = row.double("\(side)_\(what)") else {
                return .none
            }
            return ConsoleCell("\(Figures.percent(count / runs)) of \(Figures.count(Int(runs)))")
        }
        return .table(
            rows,
            [
                .text("Kind", "kind"), .own("Failed before") { share($0, "failed", "before") },
                .own("Failed after") { row in
                    var cell = share(row, "failed", "after")
                    let before = (row.double("before_failed") ?? 0) / max(1, row.double("before_runs") ?? 1)
                    let after = (row.double("after_failed") ?? 0) / max(1, row.double("after_runs") ?? 1)
                    if after > before * 1.5 + 0.01 { cell.tone = "bad" }
                    return cell
                }, .own("Tried again before") { share($0, "retried", "before") },
                .own("Tried again after") { share($0, "retried", "after") },
                .own("Duration before", number: true) { .span($0.double("before_run_s")) },
                .own("Duration after", number: true) { .span($0.double("after_run_s")) },
            ], empty: "No kind ran on both versions.")
    }
}
