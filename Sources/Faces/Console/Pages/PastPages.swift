import FoundationEssentials
import Listeners
import Postgres
import Templates

/// The fleet as it was, drawn from samples.
enum PastPages {
    static let routes: [ConsolePageRoute] = [ConsolePageRoute(path: "/past", make: past)]

    /// Where the points of the charts stand; a gap in the samples is a gap in the lines.
    fileprivate struct Grid {
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

        func line(
            _ name: String, _ tone: String, _ rows: [TemplateValue], _ value: (TemplateValue) -> Double?
        ) -> Chart.Line {
            var values = [Double?](repeating: nil, count: count)
            for row in rows {
                guard let at = row.text("at").flatMap(Figures.date) else { continue }
                let index = Int((at.timeIntervalSince(since) / step).rounded())
                if values.indices.contains(index) { values[index] = value(row) }
            }
            return Chart.Line(name: name, values: values, tone: tone)
        }
    }

    private static func perSecond(_ key: String) -> (TemplateValue) -> Double? {
        { row in row.double(key).map { $0 / max(1, row.double("step_s") ?? 1) } }
    }

    /// The time that a page looks back on: its samples, and what happened in it.
    struct Recent {
        fileprivate let rows: [TemplateValue]
        fileprivate let grid: Grid
        fileprivate let events: [TemplateValue]
        fileprivate let marks: [Chart.Event]
        fileprivate let word: String

        /// The line beside a figure.
        func spark(_ name: String, tone: String) -> String? {
            Chart.spark(
                grid.line(name, tone, rows) { $0.double(name) }.values, tone: tone,
                says: "how it was in the last \(word)")
        }

        private func chart(_ title: String, _ scale: Scale, _ lines: [Chart.Line]) -> ConsolePart {
            Chart(title: title, scale: scale, times: grid.times, lines: lines, events: marks).part
        }

        /// What was done and what waited, with the events of the fleet as flags.
        var work: ConsolePart {
            .charts([
                chart(
                    "Ended runs a second", .rate,
                    [
                        grid.line("succeeded", "ok", rows, perSecond("succeeded")),
                        grid.line("failed", "no", rows, perSecond("failed")),
                    ]),
                chart(
                    "Waiting and running jobs", .count,
                    [
                        grid.line("ready", "waits", rows) { $0.double("ready") },
                        grid.line("running", "going", rows) { $0.double("running") },
                        grid.line("scheduled", "other", rows) { $0.double("scheduled") },
                    ]),
            ])
        }

        var patience: ConsolePart {
            .charts([
                chart(
                    "How long jobs wait and run", .span,
                    [
                        grid.line("wait", "waits", rows) { $0.double("wait_s") },
                        grid.line("run", "going", rows) { $0.double("run_s") },
                    ]),
                chart("Oldest waiting job", .span, [grid.line("oldest", "waits", rows) { $0.double("oldest_s") }]),
            ])
        }

        var whatHappened: [ConsolePart] {
            events.isEmpty ? [] : [.heading("What happened"), table(Array(events.prefix(20)))]
        }
    }

    static func recent(
        _ context: PageContext, span: (word: String, seconds: Int, step: Int)
    ) async throws -> Recent {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'rows', (select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_queue(millrace.now() - make_interval(secs => $1), millrace.now()) s),
                'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from millrace.fleet_events(millrace.now() - make_interval(secs => $1), millrace.now(), 100) e))
            """, [.float8(Double(span.seconds))])
        let rows = found.list("rows")
        let events = found.list("events")
        let marks = events.compactMap { event -> Chart.Event? in
            guard let at = event.text("at").flatMap(Figures.date) else { return nil }
            let words = ["event", "subject", "detail"].compactMap { event.text($0) }
            return Chart.Event(at: at, text: words.joined(separator: " "))
        }
        return Recent(
            rows: rows, grid: Grid(until: context.now, seconds: span.seconds, rows: rows, fallback: span.step),
            events: events, marks: marks, word: span.word)
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
        let ends = Chart(
            title: "Ended runs a second, 24 h", scale: .rate, times: grid.times,
            lines: [
                grid.line("succeeded", "ok", rows, perSecond("succeeded")),
                grid.line("failed", "no", rows, perSecond("failed")),
            ])
        let depth = Chart(
            title: "Ready and running, 24 h", times: grid.times,
            lines: [
                grid.line("ready", "waits", rows) { $0.double("ready") },
                grid.line("running", "going", rows) { $0.double("running") },
            ])
        return [.heading("The last 24 hours"), .charts([ends.part, depth.part])]
    }

    static func kindCharts(
        _ context: PageContext, kind: String, _ span: (word: String, seconds: Int, step: Int)
    ) async throws -> [ConsolePart] {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_kind(millrace.now() - make_interval(secs => $1), millrace.now(), null, $2) s",
            [.float8(Double(span.seconds)), .text(kind)]
        ).elements
        guard !rows.isEmpty else { return [] }
        let grid = Grid(until: context.now, seconds: span.seconds, rows: rows, fallback: span.step)
        let ends = Chart(
            title: "Ended runs a second", scale: .rate, times: grid.times,
            lines: [
                grid.line("succeeded", "ok", rows, perSecond("succeeded")),
                grid.line("failed", "no", rows, perSecond("failed")),
            ])
        let took = Chart(
            title: "How long runs take", scale: .span, times: grid.times,
            lines: [
                grid.line("p50", "going", rows) { $0.double("p50_s") },
                grid.line("p95", "waits", rows) { $0.double("p95_s") },
            ])
        return [.charts([ends.part, took.part])]
    }

    static func storageCharts(_ context: PageContext) async throws -> [ConsolePart] {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(s) order by s.at), '[]') from millrace.samples_storage(millrace.now() - interval '14 days', millrace.now()) s"
        ).elements
        guard !rows.isEmpty else { return [] }
        let grid = Grid(until: context.now, seconds: 1_209_600, rows: rows, fallback: 3600)
        let bytes = Chart(
            title: "Size, 14 days", scale: .bytes, times: grid.times,
            lines: [grid.line("bytes", "waits", rows) { $0.double("bytes") }])
        let dead = Chart(
            title: "Dead rows, 14 days", times: grid.times,
            lines: [grid.line("dead rows", "other", rows) { $0.double("dead") }])
        return [.heading("The past"), .charts([bytes.part, dead.part])]
    }

    private static let mostQueues = 200

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
                        value: Figures.field(asked), kind: .moment)
                ], isSearch: true)
        ])
        let found = try await context.json(
            """
            select jsonb_build_object('sample', to_jsonb(m),
                'queues', (select jsonb_build_object('all', count(*), 'rows', coalesce(jsonb_agg(to_jsonb(q) - 'place' order by q.queue) filter (where q.place <= $2), '[]'))
                             from (select s.*, row_number() over (order by s.ready desc, s.running desc, s.succeeded + s.failed desc, s.queue) as place
                                     from millrace.samples_queue(m.since, m.since + make_interval(secs => m.step_s), null, '*') s) q),
                'workers', (select coalesce(jsonb_agg(to_jsonb(w) order by w.worker), '[]') from millrace.samples_worker(m.since, m.since + make_interval(secs => m.step_s), null, '*') w),
                'providers', (select coalesce(jsonb_agg(to_jsonb(p)), '[]') from millrace.samples_provider(m.since, m.since + make_interval(secs => m.step_s)) p),
                'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from millrace.fleet_events($1 - interval '30 minutes', $1 + interval '30 minutes', 100) e))
              from (select a.kept_since, a.kept_until, a.at, coalesce(a.at, $1) as since, coalesce(a.step_s, 10) as step_s from millrace.sample_at($1) a) m
            """, [.timestamp(asked), .int4(Int32(mostQueues))])
        let sample = found["sample"] ?? .null
        guard let at = sample.text("at"), let date = Figures.date(at) else {
            let kept = sample.text("kept_since").flatMap(Figures.date).map {
                "Samples are kept since \(Figures.moment($0))."
            }
            return ConsolePage(
                title: "The past", entry: "The past",
                parts: [
                    form,
                    .paragraph(
                        "No sample was taken then. " + (kept ?? "None has been taken yet; a worker takes them.")),
                ])
        }
        let queues = found["queues"] ?? .null
        let all = queues.int("all") ?? 0
        let others: [ConsolePart] =
            all > mostQueues
            ? [
                .paragraph(
                    "\(Figures.count(all)) queues had jobs then; these are the \(mostQueues) with the most ready jobs."
                )
            ] : []
        return ConsolePage(
            title: "The fleet at \(Figures.moment(date))", entry: "The past",
            parts: [form, .heading("Queues")] + others + [
                .table(
                    queues.list("rows"),
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
                    ], empty: "No worker was running."), .heading("Providers"),
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
