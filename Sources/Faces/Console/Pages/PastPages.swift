import FoundationEssentials
import Listeners
import Postgres
import Templates

/// The fleet as it was, drawn from samples.
enum PastPages {
    static let routes: [ConsolePageRoute] = [ConsolePageRoute(path: "/past", make: past)]

    /// Where the points of the charts stand; a gap in the samples is a gap in the lines.
    private struct Grid {
        let since: Date
        let step: Double
        let count: Int

        init(until: Date, seconds: Int, rows: [TemplateValue], fallback: Int) {
            step = max(1, rows.first?.double("step_s") ?? Double(fallback))
            count = max(2, min(500, Int(Double(seconds) / step)))
            let last = (until.timeIntervalSince1970 / step).rounded(.down) * step
            since = Date(timeIntervalSince1970: last - step * Double(count - 1))
        }

        var times: [Date] { (0..<count).map { since.addingTimeInterval(step * Double($0)) } }

        func line(_ name: String, _ rows: [TemplateValue], _ value: (TemplateValue) -> Double?) -> Chart.Line {
            var values = [Double?](repeating: nil, count: count)
            for row in rows {
                guard let at = row.text("at").flatMap(Figures.date) else { continue }
                let index = Int((at.timeIntervalSince(since) / step).rounded())
                if values.indices.contains(index) { values[index] = value(row) }
            }
            return Chart.Line(name: name, values: values)
        }
    }

    private static func perSecond(_ key: String) -> (TemplateValue) -> Double? {
        { row in row.double(key).map { $0 / max(1, row.double("step_s") ?? 1) } }
    }

    private static let rate: @Sendable (Double) -> String = { "\(($0 * 100).rounded() / 100)/s" }

    /// Four charts with the events of the fleet on them.
    static func charts(
        _ context: PageContext, span: (word: String, seconds: Int, step: Int)
    ) async throws -> [ConsolePart] {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'rows', (select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_queue(millrace.now() - make_interval(secs => $1), millrace.now()) s),
                'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from millrace.fleet_events(millrace.now() - make_interval(secs => $1), millrace.now(), 100) e))
            """, [.float8(Double(span.seconds))])
        let rows = found.list("rows")
        let grid = Grid(until: context.now, seconds: span.seconds, rows: rows, fallback: span.step)
        let events = found.list("events")
        let marks = events.compactMap { event -> Chart.Event? in
            guard let at = event.text("at").flatMap(Figures.date) else { return nil }
            return Chart.Event(
                at: at,
                text: "\(event.text("event") ?? "") \(event.text("subject") ?? "") \(event.text("detail") ?? "")")
        }
        func chart(_ title: String, _ lines: [Chart.Line], _ spell: @escaping @Sendable (Double) -> String)
            -> ConsolePart
        {
            var chart = Chart(title: title, times: grid.times, lines: lines, events: marks)
            chart.spell = spell
            return chart.part
        }
        let count: @Sendable (Double) -> String = { Figures.count(Int($0.rounded())) }
        var parts: [ConsolePart] = [
            .heading("The last \(span.word)"),
            .tabs(
                OverviewPages.spans.map {
                    ConsoleCell(
                        $0.word, href: PageAddress.to("", [("span", $0.word)]),
                        tone: $0.word == span.word ? "here" : nil)
                }),
            .charts([
                chart(
                    "Ended runs a second",
                    [
                        grid.line("succeeded", rows, perSecond("succeeded")),
                        grid.line("failed", rows, perSecond("failed")),
                    ], rate),
                chart(
                    "Waiting and running jobs (large numbers are estimates)",
                    [
                        grid.line("ready", rows) { $0.double("ready") },
                        grid.line("running", rows) { $0.double("running") },
                        grid.line("scheduled", rows) { $0.double("scheduled") },
                    ], count),
                chart(
                    "How long jobs wait and run",
                    [grid.line("wait", rows) { $0.double("wait_s") }, grid.line("run", rows) { $0.double("run_s") }],
                    { Figures.span($0) }),
                chart(
                    "Oldest waiting job", [grid.line("oldest", rows) { $0.double("oldest_s") }], { Figures.span($0) }),
            ]),
        ]
        if !events.isEmpty {
            parts += [.heading("What happened"), table(Array(events.prefix(20)))]
        }
        return parts
    }

    private static func table(_ events: [TemplateValue]) -> ConsolePart {
        .table(
            events,
            [
                .time("Time", "at"), .text("Event", "event"), .text("What", "subject"), .text("Version", "version"),
                .text("By", "by"), .text("Detail", "detail"),
            ], empty: "Nothing happened.")
    }

    static func queueCharts(_ context: PageContext, queue: String) async throws -> [ConsolePart] {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_queue(millrace.now() - interval '24 hours', millrace.now(), null, $1) s",
            [.text(queue)]
        ).elements
        guard !rows.isEmpty else { return [] }
        let grid = Grid(until: context.now, seconds: 86_400, rows: rows, fallback: 180)
        var ends = Chart(
            title: "Ended runs a second, 24 h", times: grid.times,
            lines: [
                grid.line("succeeded", rows, perSecond("succeeded")), grid.line("failed", rows, perSecond("failed")),
            ])
        ends.spell = rate
        let depth = Chart(
            title: "Ready and running, 24 h", times: grid.times,
            lines: [
                grid.line("ready", rows) { $0.double("ready") }, grid.line("running", rows) { $0.double("running") },
            ])
        return [.heading("The last 24 hours"), .charts([ends.part, depth.part])]
    }

    static func storageCharts(_ context: PageContext) async throws -> [ConsolePart] {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_storage(millrace.now() - interval '14 days', millrace.now()) s"
        ).elements
        guard !rows.isEmpty else { return [] }
        let grid = Grid(until: context.now, seconds: 1_209_600, rows: rows, fallback: 3600)
        var bytes = Chart(
            title: "Size, 14 days", times: grid.times, lines: [grid.line("bytes", rows) { $0.double("bytes") }])
        bytes.spell = { Figures.bytes(Int($0)) }
        let dead = Chart(
            title: "Dead rows, 14 days", times: grid.times, lines: [grid.line("dead rows", rows) { $0.double("dead") }])
        return [.heading("The past"), .charts([bytes.part, dead.part])]
    }

    /// The fleet at one moment.
    private static func past(_ context: PageContext) async throws -> ConsolePage {
        let text = context.query("at")
        let moment = try text.map { text -> Date in
            guard let date = Figures.date(text.utf8.count == 16 ? text + ":00" : text) else {
                throw ErrorAnswer(.invalid, "at is not a time such as 2026-11-27T03:12", field: "at")
            }
            return date
        }
        let asked = moment ?? context.now.addingTimeInterval(-3600)
        let form = ConsolePart.forms([
            ConsoleForm(
                id: "when", action: PageAddress.to("/past"), button: "Show the fleet then",
                fields: [
                    ConsoleField(
                        name: "at", label: "Moment (UTC)",
                        value: String(Figures.utc(asked).prefix(16).map { $0 == " " ? "T" : $0 }), kind: .moment)
                ], isSearch: true)
        ])
        let found = try await context.json(
            """
            select jsonb_build_object('sample', to_jsonb(m),
                'queues', (select coalesce(jsonb_agg(to_jsonb(q) order by q.queue), '[]') from millrace.samples_queue(m.since, m.since + make_interval(secs => m.step_s), null, '*') q),
                'workers', (select coalesce(jsonb_agg(to_jsonb(w) order by w.worker), '[]') from millrace.samples_worker(m.since, m.since + make_interval(secs => m.step_s), null, '*') w),
                'providers', (select coalesce(jsonb_agg(to_jsonb(p)), '[]') from millrace.samples_provider(m.since, m.since + make_interval(secs => m.step_s)) p),
                'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from millrace.fleet_events($1 - interval '30 minutes', $1 + interval '30 minutes', 100) e))
              from (select a.kept_since, a.kept_until, a.at, coalesce(a.at, $1) as since, coalesce(a.step_s, 10) as step_s from millrace.sample_at($1) a) m
            """, [.timestamp(asked)])
        let sample = found["sample"] ?? .null
        guard let at = sample.text("at"), let date = Figures.date(at) else {
            let kept = sample.text("kept_since").flatMap(Figures.date).map {
                "Samples are kept since \(Figures.utc($0))."
            }
            return ConsolePage(
                title: "The past", entry: "The past",
                parts: [
                    form,
                    .paragraph(
                        "No sample was taken then. " + (kept ?? "None has been taken yet; a worker takes them.")),
                ])
        }
        return ConsolePage(
            title: "The fleet at \(Figures.utc(date))", entry: "The past",
            parts: [
                form, .heading("Queues"),
                .table(
                    found.list("queues"),
                    [
                        .text("Queue", "queue") { PageAddress.queue($0.text("queue") ?? "") }, .count("Ready", "ready"),
                        .count("Running", "running"), .count("Scheduled", "scheduled"), .span("Oldest", "oldest_s"),
                        .own("Paused") { ConsoleCell($0.isTrue("paused") ? "yes" : "no") },
                        .count("Succeeded", "succeeded"), .count("Failed", "failed"), .count("Dead", "dead"),
                    ], empty: "Nothing waited and nothing ran."), .heading("Workers"),
                .table(
                    found.list("workers"),
                    [
                        .text("Worker", "worker"), .text("Version", "version"), .state("State", "state"),
                        .count("Running", "running"), .count("Slots", "slots"), .count("Stuck", "stuck"),
                    ], empty: "No worker lived."), .heading("Providers"),
                .table(
                    found.list("providers"),
                    [
                        .text("Provider", "provider"), .text("Class", "class"), .state("State", "state"),
                        .count("Calls", "calls"), .count("Failures", "failures"),
                        .own("p99", number: true) { .span($0.double("p99_ms").map { $0 / 1000 }) },
                    ], empty: "No provider was called."), .heading("Half an hour before and after"),
                table(found.list("events")),
            ])
    }
}
