import TestSupport
import Testing

@testable import Console

/// Every button, pressed in a real browser.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct ActionTests {
    /// One action through its form: where the form stands, what is filled in, and what the database says afterwards.
    struct Press: Sendable {
        let action: String
        let address: String
        let form: String
        var button = "button"
        var fields: [(selector: String, text: String)] = []
        let proof: String
        var isGrave = false
        /// The button of the same form on the next page.
        var then: String?
    }

    static func presses(_ world: ConsoleWorld) async throws -> [Press] {
        func job(_ condition: String) async throws -> String {
            try #require(
                try await world.connection.value("select min(id) from millrace.jobs where \(condition)"), "\(condition)"
            )
        }
        let dead = try await world.connection.column(
            "select id from millrace.jobs where state = 'dead' order by id limit 3")
        let later = try await world.connection.column(
            "select id from millrace.jobs where state = 'scheduled' and kind = 'image.resize' order by id limit 3")
        let running = try await job("state = 'running'")
        let alarm = try await world.alarm()
        let undone = try await world.connection.value("select min(id) from millrace.operation") ?? ""
        let open = try await world.connection.value("select max(id) from millrace.operation") ?? ""
        let signalled = try await world.signalled()
        func state(_ id: String) -> String { "(select state from millrace.jobs where id = \(id))" }
        return [
            Press(
                action: "job.retry", address: "/jobs/\(dead[0])", form: "retry", proof: "\(state(dead[0])) = 'ready'"),
            Press(
                action: "job.delete", address: "/jobs/\(dead[1])", form: "delete",
                proof: "not exists (select from millrace.jobs where id = \(dead[1]))", isGrave: true),
            Press(
                action: "job.fork", address: "/jobs/\(dead[2])", form: "fork",
                proof:
                    "exists (select from millrace.fork f join millrace.step s on s.job = f.job where f.origin = \(dead[2]))"
            ),
            Press(
                action: "job.edit", address: "/jobs/\(dead[2])/edit", form: "edit",
                fields: [("#edit-args", #"{"customer": "c-77", "card": "[redacted]", "password": "[redacted]"}"#)],
                proof:
                    "\(state(dead[2])) = 'ready' and exists (select from millrace.job where id = \(dead[2]) and args ->> 'customer' = 'c-77' and args ->> 'password' = 'hunter2' and args #>> '{card,number}' = '4111111111111111')"
            ),
            Press(
                action: "job.signal", address: "/jobs/\(signalled)", form: "signal",
                fields: [("#signal-payload", #"{"sum": 3}"#)],
                proof:
                    #"exists (select from millrace.step where job = \#(signalled) and value = '{"value": {"sum": 3}}')"#
            ),
            Press(
                action: "job.cancel", address: "/jobs/\(running)", form: "cancel",
                proof: "exists (select from millrace.cancel where job = \(running))"),
            Press(
                action: "job.reschedule", address: "/jobs/\(later[0])", form: "reschedule",
                fields: [("#reschedule-run_at", "2031-05-06T07:08")],
                proof: "(select run_at from millrace.jobs where id = \(later[0])) = timestamptz '2031-05-06 07:08Z'"),
            Press(
                action: "job.priority", address: "/jobs/\(later[1])", form: "priority",
                fields: [("#priority-priority", "1")],
                proof: "(select priority from millrace.jobs where id = \(later[1])) = 1"),
            Press(
                action: "approval.answer", address: "/approvals/\(Seed.approval)", form: "answer",
                button: "button[value=false]", fields: [("#answer-comment", "too much")],
                proof:
                    "exists (select from millrace.approval where not approved and comment = 'too much' and answered_by like 'console: %')"
            ),
            Press(
                action: "queue.pause", address: "/queue?name=reports", form: "pause",
                proof: "exists (select from millrace.queue where name = 'reports' and paused_at is not null)"),
            Press(
                action: "queue.resume", address: "/queue?name=reports", form: "resume",
                proof: "exists (select from millrace.queue where name = 'reports' and paused_at is null)"),
            Press(
                action: "queue.limit", address: "/queue?name=reports", form: "limit",
                fields: [("#limit-concurrency", "7")],
                proof: "exists (select from millrace.limit_list() where name = 'reports' and concurrency = 7)"),
            Press(
                action: "schedule.pause", address: "/schedule?name=often", form: "pause",
                proof: "exists (select from millrace.schedule where name = 'often' and paused_at is not null)"),
            Press(
                action: "schedule.resume", address: "/schedule?name=often", form: "resume",
                proof: "exists (select from millrace.schedule where name = 'often' and paused_at is null)"),
            Press(
                action: "schedule.run", address: "/schedule?name=often", form: "run",
                proof: "exists (select from millrace.schedule_fire where what = 'manual')"),
            Press(
                action: "schedule.save", address: "/schedules/new", form: "schedule",
                fields: [
                    ("#schedule-name", "made"), ("#schedule-kind", "image.resize"),
                    ("#schedule-expression", "0 3 * * *"), ("#schedule-zone", "Europe/Vienna"),
                    ("#schedule-args", #"{"width": 9}"#),
                ],
                proof:
                    #"exists (select from millrace.schedule where name = 'made' and zone = 'Europe/Vienna' and args = '{"width": 9}')"#,
                then: "button[value=save]"),
            Press(
                action: "schedule.remove", address: "/schedule?name=made", form: "remove",
                proof: "not exists (select from millrace.schedule where name = 'made')", isGrave: true),
            Press(
                action: "search.save", address: "/jobs?state=dead&tag=night", form: "save-search",
                fields: [("#save-search-name", "dead at night")],
                proof:
                    #"exists (select from millrace.console_search where name = 'dead at night' and filter = '{"state": "dead", "tag": "night"}')"#
            ),
            Press(
                action: "search.remove", address: "/jobs?state=dead", form: "remove-search",
                fields: [("#remove-search-name", "dead at night")],
                proof: "not exists (select from millrace.console_search where name = 'dead at night')"),
            Press(
                action: "provider.force", address: "/provider?name=resend", form: "force",
                fields: [("#force-state", "auto"), ("#force-reason", "it is well")],
                proof: "exists (select from millrace.providers where provider = 'resend' and state <> 'forced_open')"),
            Press(
                action: "mail.resolve", address: "/mail/\(Seed.mail)", form: "resolve",
                fields: [("#resolve-verdict", "accepted")],
                proof: "(select status from millrace.mail where id = '\(Seed.mail)') = 'accepted'"),
            Press(
                action: "mail.cancel", address: "/mail/\(Seed.queuedMail)", form: "cancel",
                proof: "(select status from millrace.mail where id = '\(Seed.queuedMail)') = 'cancelled'"),
            Press(
                action: "document.retry", address: "/documents/\(Seed.document)", form: "retry",
                proof: "(select status from millrace.document where id = '\(Seed.document)') = 'processing'"),
            Press(
                action: "alarm.resolve", address: "/alarms/\(alarm)", form: "resolve",
                fields: [("#resolve-reason", "she is at home")],
                proof: "(select state from millrace.alarm where id = '\(alarm)') = 'resolved'", isGrave: true),
            Press(
                action: "webhook.enable", address: "/webhooks/\(Seed.webhook)", form: "enable",
                proof: "(select state from millrace.webhook where id = '\(Seed.webhook)') <> 'disabled'"),
            Press(
                action: "operation.undo", address: "/operations/\(undone)", form: "undo",
                proof: "(select state from millrace.operation where id = \(undone)) in ('undoing', 'undone')"),
            Press(
                action: "operation.pause", address: "/operations/\(open)", form: "pause",
                proof: "(select state from millrace.operation where id = \(open)) = 'paused'"),
            Press(
                action: "operation.resume", address: "/operations/\(open)", form: "resume",
                proof: "(select state from millrace.operation where id = \(open)) = 'running'"),
            Press(
                action: "operation.stop", address: "/operations/\(open)", form: "stop",
                proof: "(select state from millrace.operation where id = \(open)) = 'stopped'"),
            Press(
                action: "operation.start", address: "/operations/new?state=ready&action=reschedule", form: "start",
                fields: [("#start-run_at", "2031-05-06T07:08"), ("#start-pace", "50")],
                proof: "exists (select from millrace.operation where action = 'reschedule' and pace = 50)"),
        ]
    }

    @Test(arguments: [(1280, false), (390, true)])
    func `every action is reached by its form, does what it says, and is in the audit`(width: Int, isDark: Bool)
        async throws
    {
        try await ConsoleWorld.with { world in
            let presses = try await Self.presses(world)
            #expect(Set(presses.map(\.action)) == Set(ConsoleAction.all.map(\.name)), "an action is not pressed")
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: width, height: 844, isPhone: width < 600)
                try await page.setDark(isDark)
                // The smaller one is used without script, too.
                try await page.setScript(width >= 600)
                for press in presses {
                    try await page.go(to: "\(world.origin)/console\(press.address)")
                    for field in press.fields { try await page.fill(field.selector, field.text) }
                    if press.isGrave, width >= 600 {
                        try await page.click("form#\(press.form) \(press.button)")
                        #expect(try await page.text().contains("Press again"), "\(press.action)")
                    }
                    try await page.follow("form#\(press.form) \(press.button)")
                    if let then = press.then {
                        #expect(
                            try await !world.connection.bool("select \(press.proof)"), "\(press.action) was not shown")
                        try await page.follow("form#\(press.form) \(then)")
                    }
                    if press.isGrave, width < 600 {
                        // Without script a page asks.
                        #expect(
                            try await !world.connection.bool("select \(press.proof)"), "\(press.action) was not asked")
                        try await page.follow("form#sure button")
                    }
                    let text = try await page.text()
                    #expect(page.status == 200, "\(press.action): \(text.prefix(600))")
                    #expect(
                        try await world.connection.bool("select \(press.proof)"), "\(press.action): \(press.proof)")
                    let problems =
                        width < 600
                        ? try await page.accessProblems()
                        : try await page.problems(smallestTarget: 0, largestShift: 0.1)
                    #expect(problems == [], "after \(press.action)")
                    page.forget()
                }
            }
            let audited = try await world.connection.int(
                "select count(distinct action) from millrace.audit where said_by like 'console: local%'")
            #expect(audited >= presses.count - 3)
        }
    }

    @Test func `an action that comes too late says so, and a page that was left open repeats nothing`() async throws {
        try await ConsoleWorld.with { world in
            let token = try await world.formToken()
            let job = try await world.job("succeeded")
            let late = try await world.post(
                "/console/act/job.cancel",
                [("form_token", token), ("id", job), ("back", "/console/jobs/\(job)")])
            #expect(late.status == 303 || late.status == 409, "\(late.body)")
            if late.status == 303 { #expect(late.header("Location") == "/console/jobs/\(job)?said=nothing") }
            let start = [
                ("form_token", token), ("action", "cancel"), ("filter", #"{"state": "ready"}"#), ("key", "console-1"),
            ]
            let first = try await world.post("/console/act/operation.start", start)
            let second = try await world.post("/console/act/operation.start", start)
            #expect(first.status == 303 && first.header("Location") == second.header("Location"), "\(second.body)")
        }
    }
}
