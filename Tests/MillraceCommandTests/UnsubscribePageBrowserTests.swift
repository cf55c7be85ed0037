import Listeners
import Mail
import PageKit
import Postgres
import Signatures
import Telemetry
import TestSupport
import Testing

/// The page to unsubscribe as a browser shows it.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct UnsubscribePageBrowserTests {
    @Test(arguments: ["en", "de", "ar"])
    func `one press unsubscribes, and another takes it back, on a phone and a desk, by day and by night`(
        language: String
    ) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let links = Links(publicURL: "https://x.example", secrets: ["a secret of ours"])
            var routes = MailRoutes(
                pool: Pool(database.options, size: 2), log: .silent, links: links, resend: nil, supabase: nil)
            routes.host = PageHost(name: "Peachy", contact: "help@peachy.example")
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let origin = "http://127.0.0.1:\(listener.address.port)"
            let hash = try await connection.query("select millrace.mail_hash('ada@example.org')") {
                row throws(PostgresError) in row.bytes(0).map { Array($0) } ?? []
            }[0]
            let link = try #require(links.unsubscribe(hash)).dropFirst("https://x.example".count)
            let address = origin + link
            func say(_ english: String, _ german: String, _ arabic: String) -> String {
                ["en": english, "de": german, "ar": arabic][language] ?? ""
            }
            let outcome: Result<Void, any Error>
            do {
                try await withBrowser { browser in
                    let page = try await browser.page()
                    try await page.setLanguages(language)
                    for width in Browser.screenshots == nil ? [390, 1280] : [390, 1024, 1440] {
                        try await page.setSize(width: width, height: 844, isPhone: width == 390)
                        for isDark in [false, true] {
                            try await page.setDark(isDark)
                            func check(_ name: String, says words: String) async throws {
                                let look = "\(name)-\(language)-\(width)-\(isDark ? "dark" : "light")"
                                let problems = try await page.problems()
                                #expect(problems == [], "\(look)")
                                let access = try await page.accessProblems()
                                #expect(
                                    access.filter { !$0.hasPrefix(AlarmPageBrowserTests.ofTheConsole) } == [],
                                    "\(look)")
                                #expect(try await page.text().contains(words), "\(look)")
                                #expect(page.requests(outside: origin) == [], "\(look)")
                                try await page.screenshot("links/\(look)")
                            }
                            func suppressed() async throws -> Int {
                                try await connection.int("select count(*) from millrace.mail_suppression")
                            }
                            try await page.go(to: address)
                            try await check("unsubscribe", says: "Peachy")
                            #expect(try await suppressed() == 0)
                            try await page.follow("button.first")
                            try await check(
                                "unsubscribed",
                                says: say("You are unsubscribed", "Abbestellt", "تم إلغاء الاشتراك"))
                            #expect(try await suppressed() == 1)
                            try await page.follow("button[value=again]")
                            try await check(
                                "subscribed", says: say("subscribed again", "Wieder abonniert", "عاد اشتراكك"))
                            #expect(try await suppressed() == 0)
                        }
                    }
                }
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            listener.stop()
            try await running
            await connection.close()
            try outcome.get()
        }
    }
}
