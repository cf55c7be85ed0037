import FoundationEssentials
import Postgres
import Templates
import TestSupport
import Testing

@testable import Console

/// A job's runs, steps, waits, children and calls on one axis.
@Suite(.timeLimit(.minutes(10))) struct WaterfallTests {
    private static func at(_ second: Double) -> Date {
        Date(timeIntervalSince1970: 1_800_000_000 + second)
    }

    /// As Postgres writes a time in JSON.
    private static func text(_ second: Double) -> TemplateValue {
        let (whole, part) = (at(second.rounded(.down)), second - second.rounded(.down))
        return .string(String(whole.formatted(.iso8601).dropLast()) + ".\(Int((part * 10).rounded()))+00:00")
    }

    private static func row(
        _ sort: String, _ name: String, _ from: Double?, _ to: Double?, _ outcome: String? = nil, job: Int? = nil
    ) -> TemplateValue {
        .object([
            "sort": .string(sort), "name": .string(name), "began_at": from.map(text) ?? .null,
            "ended_at": to.map(text) ?? .null, "outcome": outcome.map { .string($0) } ?? .null, "attempt": "1",
            "job": job.map { .number("\($0)") } ?? .null,
        ])
    }

    private static func told(_ waterfall: Waterfall) -> [String] {
        waterfall.entries.map { entry in
            let to = entry.to.map { "\($0.timeIntervalSince(at(0)))" } ?? "…"
            return "\(entry.what) \(entry.from.timeIntervalSince(at(0)))–\(to) \(entry.tone)"
        }
    }

    @Test func `runs, what is in them and what lies between them stand in order`() {
        let rows = [
            Self.row("run", "w1", 1, 3, "waiting"), Self.row("run", "w2", 10, 12, "retried"),
            Self.row("run", "w1", 20, nil, "running"), Self.row("step", "approve", nil, 8),
            Self.row("step", "load", nil, 2), Self.row("step", "draw", nil, 11),
            Self.row("child", "image.resize", 1.5, 4, "succeeded", job: 7),
            Self.row("call", "resend", 20.5, 21, "accepted"),
        ]
        let found = Self.told(Waterfall(rows, due: [Self.at(0), Self.at(-5)]))
        #expect(
            found == [
                "in line 0.0–1.0 waits", "run 1 on w1 1.0–3.0 going", "step load 1.0–2.0 going",
                "job 7, image.resize 1.5–4.0 ok", "waited: approve 3.0–10.0 waits", "run 2 on w2 10.0–12.0 no",
                "step draw 10.0–11.0 going", "until the next attempt 12.0–20.0 waits", "run 3 on w1 20.0–… going",
                "call 1 of resend 20.5–21.0 other",
            ])
        // One that was planned for later and then told to run at once waited since it was enqueued.
        #expect(Self.told(Waterfall(rows, due: [Self.at(50), Self.at(-5)])).first == "in line -5.0–1.0 waits")
    }

    @Test func `what waits now lasts, and a job that never ran has nothing to show`() {
        let rows = [Self.row("run", "w", 1, 2, "waiting"), Self.row("wait", "ask the boss", 2, nil, "approval")]
        #expect(Self.told(Waterfall(rows, due: [])).last == "waits for an approval: ask the boss 2.0–… waits")
        #expect(Waterfall([], due: [Self.at(0)]).parts(now: Self.at(1)).isEmpty)
    }

    @Test func `several hundred entries are folded after the first sixty`() throws {
        let steps = (1...400).map { Self.row("step", "s\($0)", nil, 1 + Double($0) / 10) }
        let parts = Waterfall([Self.row("run", "w", 1, 50, "succeeded")] + steps, due: []).parts(now: Self.at(60))
        let tables = parts.compactMap { part -> ConsoleTable? in
            if case .table(let table) = part { table } else { nil }
        }
        #expect(tables.map(\.rows.count) == [60, 341])
        #expect(tables[0].folded == nil && tables[1].folded == "341 more, on the same axis")
        #expect(tables[0].name != tables[1].name, "regions have names of their own")
    }

    @Test func `the page of a job shows it with words for each bar`() async throws {
        try await ConsoleWorld.with { world in
            let page = try await world.get("/console/jobs/\(try await world.job("dead"))").body
            for text in [
                "What happened", ">run 1 on worker-a</span>", "· step load", "class=\"bar no\"",
                "aria-label=\"from 0 s to ",
            ] {
                #expect(page.contains(text), "\(text)")
            }
            #expect(!page.contains("style="), "the policy allows no style beside the sheet")
            let running = try await world.get("/console/jobs/\(try await world.job("running"))").body
            #expect(running.contains(" so far</span>") && running.contains(" to now\""))
            let ready = try await world.job("blocked", kind: "image.resize")
            #expect(try await !world.get("/console/jobs/\(ready)").body.contains("What happened"))
        }
    }

    @Test func `jobs that a run made and calls for a mail are among it`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                """
                insert into millrace.edge (pred, succ, session, number)
                select min(id), max(id), 1, 17 from millrace.jobs where kind = 'report.build'
                """)
            let rows = try await world.connection.records(
                """
                select sort, name, job is not null
                  from millrace.job_waterfall((select min(id) from millrace.jobs where kind = 'report.build'))
                """
            )
            #expect(rows.contains("(child,report.build,t)"), "\(rows)")
            let mail = try #require(
                try await world.connection.value("select job from millrace.mail where id = '\(Seed.mail)'"))
            let page = try await world.get("/console/jobs/\(mail)").body
            #expect(page.contains("call 1 of resend"), "\(page)")
        }
    }
}
