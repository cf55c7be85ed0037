import Postgres
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Console

/// Pages that change while they are open.
@Suite(.timeLimit(.minutes(10))) struct LiveTests {
    @Test func `a stream tells what has changed, goes on after its last event, and begins again after a restart`()
        async throws
    {
        try await ConsoleWorld.with { world in
            let first = try EventReader(world)
            let begin = try #require(await first.next())
            #expect(
                begin.name == "look" && begin.texts["queue.mail.ready"] == "3" && begin.texts["verdict"] == "CRITICAL")
            try await world.connection.run("select millrace.enqueue('report.build', queue => 'mail')")
            let change = try #require(await first.next(with: "queue.mail.ready"))
            #expect(change.texts["queue.mail.ready"] == "4" && change.texts["queue.slow.ready"] == nil)
            // Goes on: only looks after that one, each as a whole.
            let again = try EventReader(world, after: change.id)
            let next = try #require(await again.next())
            func number(_ id: String) -> Int { Int(id.split(separator: "-").last ?? "") ?? -1 }
            #expect(number(next.id) > number(change.id) && next.texts["queue.mail.ready"] == "4")
            // Of another process: everything.
            let other = try EventReader(world, after: "12345-99999999")
            #expect(await other.next()?.texts["queue.mail.ready"] == "4")
        }
    }

    @Test func `many open pages share one look at the database, and none is taken for nobody`() async throws {
        try await ConsoleWorld.with { world in
            let live = world.service.live
            #expect(await live.looks == 0)
            let begin = ContinuousClock.now
            let readers = try (0..<60).map { _ in try EventReader(world) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reader in readers { group.addTask { #expect(await reader.next() != nil) } }
                try await group.waitForAll()
            }
            for number in 1...2 {
                try await world.connection.run("select millrace.enqueue('report.build', queue => 'mail')")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for reader in readers {
                        group.addTask {
                            let event = await reader.next(with: "queue.mail.ready")
                            #expect(event?.texts["queue.mail.ready"] == "\(3 + number)")
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let most = Int(begin.duration(to: .now) / LiveLook.pause) + 2
            #expect(await live.looks <= most)
        }
    }

    @Test func `an older verdict is shown while the next is made, but never one from before an action`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let count = Mutex(0)
            let pool = ConsoleService.connections(world.database.options, size: 2)
            let live = LiveLook(pool: pool, log: .silent) { _ in
                count.withLock {
                    $0 += 1
                    return ConsoleService.Verdict(word: "\($0)", findings: [])
                }
            }
            let hour = Duration.seconds(3600)
            #expect(try await live.currentVerdict(pause: hour).word == "1")
            #expect(try await live.currentVerdict(pause: hour).word == "1")
            #expect(try await live.currentVerdict(pause: .zero, patience: hour).word == "1", "the next is being made")
            try await eventually("the next is there") { try await live.currentVerdict(pause: hour).word == "2" }
            await live.acted()
            #expect(try await live.currentVerdict(pause: hour, patience: hour).word == "3")
            await pool.close()
        }
    }

    @Test func `the page of a job that has moved on while it was loaded comes again at once`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("running")
            let reader = try EventReader(world, topic: "job:\(job):ready")
            let event = try #require(await reader.next())
            #expect(event.name == "reload" && event.data == "running")
            #expect(await reader.next() == nil)
            let other = try EventReader(world, topic: "job:\(job):running")
            let look = try #require(await other.next())
            #expect(look.name == "look" && look.texts["job.\(job).progress"] == "40 %, draw, page 4 of 10")
            #expect(look.texts.keys.allSatisfy { $0 == "verdict" || $0.hasPrefix("job.\(job).") })
        }
    }

    @Test(.enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"))
    func `a job's page shows its progress, can be paused, and comes again at the end`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("running")
            func report(_ share: Double, _ note: String) async throws {
                try await world.connection.run(
                    """
                    select millrace.report('[{"session": 1, "number": 33, "job": \(job), "attempt": 1, "age": 0, "fraction": \(share), "stage": "draw",
                        "note": "\(note)", "lines": [], "skipped": 0}]')
                    """)
            }
            try await withBrowser { browser in
                let (page, other) = (try await browser.page(), try await browser.page())
                for one in [page, other] { try await one.go(to: "\(world.origin)/console/jobs/\(job)") }
                #expect(try await page.text().contains("page 4 of 10"))
                try await report(0.5, "page 5 of 10")
                try await eventually("the progress is shown") {
                    try await page.text().contains("50 %, draw, page 5 of 10")
                }
                // With the key, and back with the button.
                try await page.press("p")
                #expect(
                    try await page.evaluate(
                        "document.getElementById('live-pause').getAttribute('aria-pressed')", as: String.self) == "true"
                )
                try await report(0.6, "page 6 of 10")
                try await eventually("the other page shows it") { try await other.text().contains("page 6 of 10") }
                #expect(try await page.text().contains("page 5 of 10"))
                #expect(try await page.text().contains("paused"))
                try await page.click("#live-pause")
                try await eventually("it goes on") { try await page.text().contains("page 6 of 10") }
                // What is being written is not lost when the job ends.
                try await other.fill("#search", "something")
                try await world.connection.run(
                    """
                    select millrace.finish(1, array[j.id], array[33::bigint], array[1::smallint], array[j.kind], array[j.queue], array[1::smallint], array[0::smallint], array[5], array[33::bigint], '{}', '{}')
                      from millrace.job j where j.id = \(job)
                    """)
                try await eventually("the page comes again") {
                    try await page.evaluate(
                        "!!document.body && document.body.dataset.liveTopic === undefined && document.body.innerText.includes('succeeded')",
                        as: Bool.self)
                }
                try await eventually("the other says so") { try await other.text().contains("load the page again") }
                #expect(page.errors == [] && other.errors == [])
            }
        }
    }

    @Test(.enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"))
    func `the keyboard searches, walks rows, opens them, and says what it can`() async throws {
        try await ConsoleWorld.with { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1280, height: 844, isPhone: false)
                try await page.go(to: "\(world.origin)/console/queues")
                func focus() async throws -> String {
                    try await page.evaluate(
                        "document.activeElement.id || document.activeElement.textContent.trim()", as: String.self)
                }
                try await page.press("Tab")
                #expect(try await focus() == "Skip to the content")
                try await page.press("Enter")
                #expect(try await focus() == "main")
                let names = try await page.evaluate(
                    "[...document.querySelectorAll('tbody th a')].map(a => a.textContent)", as: [String].self)
                try await page.press("j")
                #expect(try await focus() == names[0])
                try await page.press("j")
                #expect(try await focus() == names[1])
                try await page.press("k")
                #expect(try await focus() == names[0])
                try await page.press("?")
                #expect(try await page.evaluate("document.getElementById('keys').open", as: Bool.self))
                #expect(try await page.text().contains("Next and previous row"))
                try await page.press("Escape")
                #expect(try await !page.evaluate("document.getElementById('keys').open", as: Bool.self))
                try await page.press("/")
                #expect(try await focus() == "search")
                // In a field a letter is a letter.
                for letter in ["j", "k"] { try await page.press(letter) }
                #expect(try await page.evaluate("document.activeElement.value", as: String.self) == "jk")
                try await page.fill("#search", try await world.job("dead"))
                try await page.press("Enter")
                try await eventually("the job is shown") {
                    try await page.text().contains("the printer 7 does not answer")
                }
                // A row that stands still is opened by Enter.
                try await page.go(to: "\(world.origin)/console/queues")
                try await page.press("j")
                try await page.press("Enter")
                try await eventually("the queue is shown") { try await page.text().contains("Queue \(names[0])") }
                #expect(page.errors == [])
            }
        }
    }

    @Test(.enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"))
    func `without script people sign in, search, page, act and sign out`() async throws {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: AttackTests.key, users: try ConsoleUsers(parsing: AttackTests.line))
        }) { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 390, height: 844, isPhone: true)
                try await page.setScript(false)
                try await page.go(to: "\(world.origin)/console/jobs?state=dead")
                #expect(try await page.text().contains("Sign in"))
                #expect(try await page.accessProblems() == [])
                try await page.screenshot("console/sign-in-phone")
                try await page.fill("input[name=name]", "ada")
                try await page.fill("input[name=secret]", "wrong")
                try await page.follow("#signin button")
                #expect(page.status == 401)
                #expect(try await page.text().contains("is wrong"))
                try await page.fill("input[name=name]", "ada")
                try await page.fill("input[name=secret]", AttackTests.password)
                try await page.follow("#signin button")
                #expect(try await page.evaluate("location.pathname", as: String.self) == "/console")
                try await page.fill("#search", "report")
                try await page.follow(".search button")
                #expect(try await page.text().contains("Dead jobs of report.build"))
                try await page.go(to: "\(world.origin)/console/queue?name=reports")
                try await page.follow("#pause button")
                #expect(try await page.text().contains("Done."))
                try await page.click(".me summary")
                try await page.follow("form.leave button")
                try await page.go(to: "\(world.origin)/console/queues")
                #expect(try await page.text().contains("Sign in"))
                #expect(try await !page.evaluate("document.cookie", as: String.self).contains("millrace"))
            }
        }
    }
}
