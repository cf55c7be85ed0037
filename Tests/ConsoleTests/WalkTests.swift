import Foundation
import TestSupport
import Testing

@testable import Console

/// Every page in a real browser: on a desk and on a phone, by day and by night.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct WalkTests {
    /// Addresses of each page, by its path. The walk fails when a page has none.
    static func addresses(_ world: ConsoleWorld) async throws -> [(path: String, name: String, address: String)] {
        let group = try #require(try await world.connection.value("select min(id) from millrace.failure_group"))
        let alarm = try await world.alarm()
        let waiting = try #require(
            try await world.connection.value("select min(id) from millrace.jobs where state = 'blocked'"))
        let operation = try #require(try await world.connection.value("select min(id) from millrace.operation"))
        let running = try await world.job("running")
        let dead = try await world.job("dead")
        return [
            ("", "overview", ""), ("", "overview-24h", "?span=24h"), ("", "overview-14d", "?span=14d"),
            ("/findings", "findings", "/findings"),
            ("/queues", "queues", "/queues"), ("/queue", "queue", "/queue?name=reports"),
            ("/queue", "queue-paused", "/queue?name=slow"), ("/limits", "limits", "/limits"),
            ("/kinds", "kinds", "/kinds"), ("/kind", "kind", "/kind?name=image.resize&span=1h"),
            ("/kind", "kind-failing", "/kind?name=report.build"),
            ("/jobs", "jobs-running", "/jobs"), ("/jobs", "jobs-dead", "/jobs?state=dead&tag=night"),
            ("/jobs", "jobs-retrying", "/jobs?state=retrying"),
            ("/jobs", "jobs-sorted", "/jobs?state=dead&sort=kind%20reversed"),
            ("/failures", "failures-sorted", "/failures?sort=failed"),
            ("/jobs", "jobs-none", "/jobs?state=dead&queue=mail"),
            ("/jobs", "jobs-field", "/jobs?state=ready&kind=report.build&field=customer&value=c-12"),
            ("/search", "search", "/search?q=report"), ("/jobs/{id}", "job-running", "/jobs/\(running)"),
            ("/jobs/{id}", "job-signal", "/jobs/\(try await world.signalled())"),
            ("/jobs/{id}/edit", "job-edit", "/jobs/\(dead)/edit"),
            ("/jobs/{id}/edit", "job-edit-running", "/jobs/\(running)/edit"),
            ("/jobs/{id}", "job-dead", "/jobs/\(dead)"), ("/jobs/{id}", "job-blocked", "/jobs/\(waiting)?flow=yes"),
            ("/failures", "failures", "/failures"), ("/failures/{id}", "failure", "/failures/\(group)"),
            ("/schedules/new", "schedule-new", "/schedules/new"),
            ("/schedule/edit", "schedule-edit", "/schedule/edit?name=nightly"),
            ("/schedules", "schedules", "/schedules"), ("/schedule", "schedule", "/schedule?name=nightly"),
            ("/schedule", "schedule-broken", "/schedule?name=broken"),
            ("/schedule", "schedule-paused", "/schedule?name=weekly"), ("/workers", "workers", "/workers"),
            ("/versions", "versions", "/versions"), ("/providers", "providers", "/providers"),
            ("/provider", "provider", "/provider?name=resend"), ("/mail", "mail", "/mail"),
            ("/mail/{id}", "message-parked", "/mail/\(Seed.mail)"), ("/templates", "templates", "/templates"),
            ("/template", "template", "/template?name=invoice&locale=en&version=1"),
            ("/template", "template-built-in", "/template?name=welcome&locale=en"),
            ("/documents", "documents", "/documents"), ("/documents/{id}", "document", "/documents/\(Seed.document)"),
            ("/documents/{id}/page", "document-page", "/documents/\(Seed.document)/page?page=1"),
            ("/approvals", "approvals", "/approvals"),
            ("/approvals/{id}", "approval", "/approvals/\(Seed.approval)"),
            ("/checkins", "checkins", "/checkins"), ("/alarms/{id}", "alarm", "/alarms/\(alarm)"),
            ("/quests", "quests", "/quests"), ("/notices", "notices", "/notices"),
            ("/webhooks", "webhooks", "/webhooks"), ("/webhooks/{id}", "webhook", "/webhooks/\(Seed.webhook)"),
            ("/subscriptions", "subscriptions", "/subscriptions"),
            ("/subscriptions", "subscriptions-none", "/subscriptions?plan=pro&state=paused&store=apple"),
            ("/subscriptions/{id}", "subscription", "/subscriptions/\(Seed.subscription)"),
            ("/operations", "operations", "/operations"),
            ("/operations/new", "operation-new", "/operations/new?state=dead&action=retry"),
            ("/operations/{id}", "operation", "/operations/\(operation)"), ("/audit", "audit", "/audit"),
            ("/past", "past", "/past?at=\(try await now(world))"), ("/past", "past-none", "/past?at=2020-01-01T00:00"),
            ("/storage", "storage", "/storage"),
        ]
    }

    private static func now(_ world: ConsoleWorld) async throws -> String {
        let text = try #require(
            try await world.connection.value(
                "select to_char(max(at) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') from millrace.sample_fresh"))
        return text.replacing(":", with: "%3A")
    }

    @Test func `every page is readable, within reach and still, on a desk and a phone, by day and by night`()
        async throws
    {
        #expect(BrowserPage.accessChecks.count >= 25)
        try await ConsoleWorld.with { world in
            let addresses = try await Self.addresses(world)
            #expect(Set(addresses.map(\.path)) == Set(ConsolePages.all.map(\.path)), "a page is not walked")
            try await withBrowser { browser in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    // With pictures, at the three widths that people compare.
                    let sizes =
                        Browser.screenshots == nil
                        ? [("desk", 1280), ("phone", 390)] : [("wide", 1440), ("desk", 1024), ("phone", 390)]
                    for (size, width) in sizes {
                        let page = try await browser.page()
                        group.addTask {
                            try await page.setSize(width: width, height: 844, isPhone: size == "phone")
                            for one in addresses {
                                try await Self.look(at: one.address, as: "\(one.name)-\(width)", page, world)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    /// One load; the browser then turns night on and off.
    private static func look(
        at address: String, as name: String, _ page: BrowserPage, _ world: ConsoleWorld
    ) async throws {
        page.forget()
        try await page.setDark(false)
        try await page.go(to: "\(world.origin)/console\(address)")
        #expect(page.status == 200, "\(name)")
        let target = page.width < 600 ? 44 : 0
        for isDark in [false, true] {
            let look = "\(name)-\(isDark ? "dark" : "light")"
            if isDark { try await page.setDark(true) }
            // Taking a picture moves the page for a moment.
            let problems = try await page.problems(smallestTarget: target, largestShift: isDark ? 1000 : 0.1)
            #expect(problems == [], "\(look)")
            let access = try await page.accessProblems()
            #expect(access == [], "\(look)")
            try await page.screenshot("console/\(look)")
        }
        #expect(page.requests(outside: world.origin) == [], "\(name)")
        #expect(page.requests.contains { $0.contains("/console/console.css") }, "\(name)")
    }

    @Test func `the checks of access find what they look for`() async throws {
        try await withBrowser { browser in
            let page = try await browser.page()
            try await page.setSize(width: 390, height: 844, isPhone: true)
            let html = """
                <title>other</title><meta name=viewport content='width=500, user-scalable=no'><h1>One</h1><h3></h3><h1>Two</h1>
                <p style='font-size:8px;line-height:1'>tiny</p><a></a><a href='javascript:x'>here</a><img src='data:,'><svg></svg><iframe></iframe>
                <input id=a autofocus><input id=a type=password><button></button><table><tr><td>x</td></tr></table><ul><p>x</p></ul><ol></ol><dl></dl>
                <div tabindex=3 role=foo aria-labelledby=nowhere>x</div><div aria-hidden=true><a href='/x'>y</a></div><time datetime=soon>x</time>
                <form><main></main><main></main></form><dialog></dialog><nav><a href='/' aria-current=page>1</a><a href='/' aria-current=page>2</a></nav>
                <button style='outline:none;border-color:white'>z</button><label>l<a href='/q'>q</a></label><span id=live-state></span>
                """
            try await page.go(
                to: "data:text/html,"
                    + (html.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""))
            let problems = try await page.accessProblems()
            let found = Set(problems.map { String($0.prefix { $0 != ":" }) })
            let unable = BrowserPage.accessChecks.filter { !found.contains($0) }
            // These need a whole page of ours around them.
            let others: Set<String> = [
                "links inside of this page find their place", "rows have a cell for each column",
                "nothing covers what has the focus",
                "links in text differ by more than colour", "what scrolls can be reached by the keyboard",
                "edges of fields and buttons are seen", "secrets and names can be filled in by a program",
                "tables have headings for their columns", "lines have air",
            ]
            #expect(Set(unable).subtracting(others) == [], "\(problems)")
            #expect(!problems.contains { $0.contains("failed") }, "\(problems)")
        }
    }
}
