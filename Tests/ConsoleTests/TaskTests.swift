import Foundation
import TestSupport
import Testing

@testable import Console

/// What people come for, done with the mouse from the overview. Typing is free, and each press counts.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct TaskTests {
    /// None takes more presses.
    private static let most = 5

    /// The hand of somebody at a desk, who begins at the overview.
    private final class Hand {
        let page: BrowserPage
        private(set) var presses = 0

        init(_ page: BrowserPage) {
            self.page = page
        }

        /// Presses something that leads to another page.
        func go(_ selector: String) async throws {
            presses += 1
            try await page.follow(selector)
        }

        /// Opens an entry of the navigation.
        func open(_ path: String) async throws { try await go("nav a[href='/console\(path)']") }

        /// Presses a link or a button of the page by its words.
        func press(_ words: String) async throws {
            _ = try await page.evaluate(
                """
                (() => {
                    document.querySelectorAll('[data-task]').forEach(e => delete e.dataset.task)
                    const found = [...document.querySelectorAll('main a, main button')].find(e => e.checkVisibility() && e.textContent.includes('\(words)'))
                    if (!found) throw new Error('nothing says \(words)')
                    found.dataset.task = 'yes'
                    return true
                })()
                """, as: Bool.self)
            try await go("[data-task]")
        }

        /// Presses something that changes this page.
        func unfold(_ selector: String) async throws {
            presses += 1
            try await page.click(selector)
        }

        func reads(_ words: String...) async throws {
            let text = try await page.text()
            for one in words { #expect(text.contains(one), "\(one): \(text.prefix(3000))") }
        }
    }

    private typealias Errand = (name: String, steps: @Sendable (Hand, ConsoleWorld) async throws -> Void)

    private static let tasks: [Errand] = [
        (
            "why has a job not started?",
            { hand, _ in
                try await hand.go("main a[href='/console/queue?name=slow']")
                try await hand.press("ready")
                try await hand.go("tbody th a")
                try await hand.reads("Why", "paused")
            }
        ),
        (
            "what failed since a build; retry all of it, watch, take it back",
            { hand, world in
                try await hand.press("All failures since 1.5.0 began")
                try await hand.reads("the printer # does not answer")
                try await hand.press("Retry all jobs that died since then")
                try await hand.reads("retry would reach 3 jobs.")
                try await hand.press("Start: retry 3 jobs")
                let operation = try #require(
                    try await world.connection.value("select max(id) from millrace.operation where action = 'retry'"))
                try await TaskTests.step(operation, world)
                try await eventually("the page says that it is done") {
                    let text = try await hand.page.text()
                    return text.contains("Can be undone until") && !text.contains("Stop")
                }
                let ready = "select count(*) from millrace.jobs where state = 'ready' and kind = 'report.build'"
                let retried = try await world.connection.int(ready)
                try await hand.press("Undo")
                try await TaskTests.step(operation, world)
                try await eventually("the page says that it is undone") {
                    try await hand.page.evaluate(
                        "document.querySelector('dd .state')?.textContent === 'undone'", as: Bool.self)
                }
                #expect(try await world.connection.int(ready) == retried - 3)
            }
        ),
        (
            "find a job by an argument",
            { hand, _ in
                try await hand.open("/jobs")
                try await hand.unfold("#filter .more summary")
                for (field, text) in [
                    ("state", "ready"), ("kind", "report.build"), ("field", "customer"), ("value", "c-12"),
                ] {
                    try await hand.page.fill("#filter-\(field)", text)
                }
                try await hand.go("#filter button")
                try await hand.go("tbody th a")
                try await hand.reads("\"customer\": \"c-12\"")
            }
        ),
        (
            "pause a queue",
            { hand, world in
                try await hand.go("main a[href='/console/queue?name=reports']")
                try await hand.go("#pause button")
                try await hand.reads("Done.")
                #expect(
                    try await world.connection.bool(
                        "select paused_at is not null from millrace.queue where name = 'reports' and main is null"))
            }
        ),
        (
            "approve what a job asks",
            { hand, world in
                try await hand.open("/approvals")
                try await hand.press("refund")
                try await hand.go("#answer button")
                #expect(
                    try await world.connection.bool(
                        "select approved from millrace.approval where id = '\(Seed.approval)'"))
            }
        ),
        (
            "who did what?",
            { hand, _ in
                try await hand.open("/audit")
                try await hand.page.fill("#filter-action", "queue.pause")
                try await hand.go("#filter button")
                try await hand.reads("queue.pause", "reports", "slow")
            }
        ),
        (
            "compare two builds",
            { hand, _ in
                try await hand.open("/versions")
                try await hand.reads("Before and after", "1.4.0", "1.5.0", "image.resize")
            }
        ),
        (
            "which kind is slowest?",
            { hand, _ in
                try await hand.open("/kinds")
                try await hand.go("tbody th a")
                try await hand.reads("Kind image.resize", "p95", "Builds compared")
            }
        ),
        (
            "run a failed job again from a step",
            { hand, _ in
                try await hand.open("/failures")
                try await hand.press("the printer")
                try await hand.go("tbody th a")
                try await hand.page.fill("#fork-step", "draw")
                try await hand.go("#fork button")
                try await hand.reads("Forked from", "from step draw")
            }
        ),
        (
            "change the arguments of a failed job and retry it",
            { hand, world in
                try await hand.open("/failures")
                try await hand.press("the printer")
                try await hand.go("tbody th a")
                let job = try await hand.page.evaluate("location.pathname.split('/').pop()", as: String.self)
                try await hand.go("main a[href$='/edit']")
                // What is hidden stays as it is.
                let shown = try await hand.page.evaluate("document.querySelector('#edit-args').value", as: String.self)
                try await hand.page.fill("#edit-args", shown.replacing("\"c-", with: "\"d-"))
                try await hand.go("#edit button")
                #expect(
                    try await world.connection.bool(
                        "select j.state = 'ready' and j.args ->> 'customer' like 'd-%' from millrace.job(\(job)) j"))
            }
        ),
    ]

    /// Takes the operation's steps, as a worker does.
    private static func step(_ operation: String, _ world: ConsoleWorld) async throws {
        try await eventually("the operation has ended") {
            try await world.connection.value("select state from millrace.operation_step(\(operation))")
                .map { !["running", "undoing"].contains($0) } ?? false
        }
    }

    @Test func `ten tasks take at most five presses each`() async throws {
        try await ConsoleWorld.with { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1280, height: 844, isPhone: false)
                #expect(Self.tasks.count == 10)
                for task in Self.tasks {
                    try await page.go(to: "\(world.origin)/console")
                    let hand = Hand(page)
                    do {
                        try await task.steps(hand, world)
                    } catch {
                        Issue.record("\(task.name): after \(hand.presses) presses: \(error)")
                    }
                    print("presses from the overview: \(hand.presses) · \(task.name)")
                    #expect(hand.presses <= Self.most, "\(task.name)")
                }
                #expect(page.errors == [])
            }
        }
    }
}
