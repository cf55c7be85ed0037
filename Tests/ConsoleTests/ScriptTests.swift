import TestSupport
import Testing

@testable import Console

/// Script in every text that users and outside services can fill.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct ScriptTests {
    @Test func `script that users write is shown as text on every page, and never runs`() async throws {
        try await ConsoleWorld.with({ $0.addition = Seed.script }) { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1280, height: 844, isPhone: false)
                var shown: Set<String> = []
                let searches = [
                    ("/search", "search", "/search?q=\(PageAddress.encoded(Seed.script))"),
                    (
                        "/jobs", "filter",
                        "/jobs?state=dead&tag=\(PageAddress.encoded("tag" + Seed.script))&error=\(PageAddress.encoded(Seed.script))"
                    ),
                    ("/audit", "filter", "/audit?who=\(PageAddress.encoded("ann at her desk" + Seed.script))"),
                    ("/jobs/{id}", "lost", "/jobs/\(PageAddress.encoded(Seed.script))"),
                    ("/queue", "lost", "/queue?name=\(PageAddress.encoded(Seed.script))"),
                    ("/failures", "filter", "/failures?kind=\(PageAddress.encoded(Seed.script))"),
                    (
                        "/operations/new", "new",
                        "/operations/new?state=dead&action=retry&tag=\(PageAddress.encoded("tag" + Seed.script))"
                    ),
                ]
                for one in try await WalkTests.addresses(world)
                    + searches.map({ (path: $0.0, name: $0.1, address: $0.2) })
                {
                    page.forget()
                    try await page.go(to: "\(world.origin)/console\(one.address)")
                    let ran = try await page.evaluate(
                        "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(typeof hacked !== 'undefined'), 0)))",
                        as: Bool.self)
                    #expect(!ran, "\(one.address) ran a script")
                    let foreign = try await page.evaluate(
                        "document.querySelectorAll('[onfocus], [onerror], main script, main img[src=x]').length",
                        as: Int.self)
                    #expect(foreign == 0, "\(one.address) has elements that a user wrote")
                    #expect(
                        page.requests(outside: world.origin) == [] && !page.requests.contains { $0.hasSuffix("/x") })
                    let text = try await page.evaluate("document.body.textContent", as: String.self)
                    if text.contains("<script>hacked=1</script>") { shown.insert(one.path) }
                    let errors = page.errors.filter { !$0.contains("404") && !$0.contains("400") }
                    #expect(errors == [], "\(one.address)")
                }
                // The texts do come onto these pages; so the proof is about something.
                for path in [
                    "", "/kind", "/jobs", "/jobs/{id}", "/failures", "/failures/{id}", "/schedules", "/schedule",
                    "/workers",
                    "/providers", "/provider",
                    "/limits", "/mail", "/mail/{id}", "/template", "/templates", "/documents", "/documents/{id}",
                    "/documents/{id}/page",
                    "/approvals", "/approvals/{id}", "/checkins", "/alarms/{id}", "/notices", "/webhooks",
                    "/webhooks/{id}", "/subscriptions", "/subscriptions/{id}",
                    "/operations",
                    "/operations/{id}", "/audit", "/past",
                    "/search",
                ] {
                    #expect(shown.contains(path), "nothing of a user's is on \(path)")
                }
            }
        }
    }

    @Test func `live updates and exports carry such texts as data`() async throws {
        try await ConsoleWorld.with({ $0.addition = Seed.script }) { world in
            let export = try await world.get("/console/audit/export")
            #expect(export.header("Content-Type") == "application/x-ndjson")
            #expect(export.header("Content-Disposition")?.hasPrefix("attachment") == true)
            #expect(export.body.contains("<script>hacked=1</script>"))
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.go(to: "\(world.origin)/console/jobs/\(try await world.job("running"))")
                try await eventually("the page is live") {
                    try await page.evaluate("document.getElementById('live-state').textContent", as: String.self)
                        == "live"
                }
                #expect(try await page.text().contains("page 4 of 10\" onfocus"))
                #expect(try await !page.evaluate("typeof hacked !== 'undefined'", as: Bool.self))
                #expect(page.errors == [])
            }
        }
    }
}
