import Foundation
import Listeners
import PageKit
import Postgres
import Signatures
import Telemetry
import TestSupport
import Testing

@testable import CheckIns
@testable import MillraceCommand

/// The page of an alarm as a browser shows it.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct AlarmPageBrowserTests {
    /// Pages behind links also lead to maps, telephones and mail programs.
    static let ofTheConsole = "links lead somewhere"

    /// An open alarm of Anna's, and a listener that serves its page to her contact.
    struct Scene {
        let connection: Connection
        let origin: String
        let alarm: String
        let consent: String
    }

    private func withAlarm(language: String, _ body: (Scene) async throws -> Void) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.check_in_contact('u-1', 'u-2', 1, '{"mail": "mum@example.com"}', actor => 'u-1');
                select millrace.check_in_consent(ref, true) from millrace.watch_address;
                select millrace.check_in_contact('u-1', 'u-2', 1, '{"push": true}', actor => 'u-1');
                select millrace.check_in_accept('u-1', true, actor => 'u-2');
                select millrace.person_profile('u-1', 'Anna-Maria Wolkenstein-Trostburg', 'en', 'Europe/London', actor => 'u-1');
                select millrace.person_profile('u-2', 'Mum', '\(language)', 'Europe/Vienna', map => 'osm', actor => 'u-2');
                """)
            let note = String(repeating: "https://maps.example/47.8,13.0/a-very-long-way/", count: 4)
            let alarm = try #require(
                try await connection.value(
                    "select millrace.check_in_alarm('u-1', 'at the lake, \(note)', 'u-1', '{\"latitude\": 47.809501, \"longitude\": -13.05, \"accuracy\": 12}')"
                ))
            try await connection.run("select millrace.check_in_respond('\(alarm)', 'u-2', 'on_my_way')")
            let ref = try #require(try await connection.value("select ref from millrace.watch_address"))
            let links = Links(publicURL: "https://x.example/", secrets: ["a secret of ours"])
            let pool = Pool(database.options, size: 2)
            let host = PageHost(name: "Peachy", contact: "help@peachy.example", emergency: "112")
            let routes = AlarmRoutes(pool: pool, log: .silent, links: links, host: host)
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let origin = "http://127.0.0.1:\(listener.address.port)"
            let outcome: Result<Void, any Error>
            do {
                func path(_ link: String?) throws -> String {
                    origin + (try #require(link)).dropFirst("https://x.example".count)
                }
                let scene = Scene(
                    connection: connection, origin: origin, alarm: try path(links.alarm(alarm, contact: ref)),
                    consent: try path(links.alarm(nil, contact: ref)))
                outcome = .success(try await body(scene))
            } catch {
                outcome = .failure(error)
            }
            listener.stop()
            try await running
            await connection.close()
            try outcome.get()
        }
    }

    @Test(arguments: ["en", "de", "ar"])
    func `every page of an alarm is readable, within reach and still, on a phone and a desk, by day and by night`(
        language: String
    ) async throws {
        try await withAlarm(language: language) { scene in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setLanguages(language == "en" ? "en" : "\(language), en;q=0.5")
                let sizes =
                    Browser.screenshots == nil
                    ? [("phone", 390), ("desk", 1280)] : [("phone", 390), ("desk", 1024), ("wide", 1440)]
                for (size, width) in sizes {
                    try await page.setSize(width: width, height: 844, isPhone: size == "phone")
                    for isDark in [false, true] {
                        try await page.setDark(isDark)
                        let look = "\(language)-\(width)-\(isDark ? "dark" : "light")"
                        func check(_ name: String, status: Int = 200, says words: String) async throws {
                            // The browser itself reports an answer of 404 to the console.
                            let problems = try await page.problems().filter {
                                status == 200 || !$0.contains("responded with a status of \(status)")
                            }
                            #expect(problems == [], "\(name) \(look)")
                            #expect(page.status == status, "\(name) \(look)")
                            #expect(page.requests(outside: scene.origin) == [], "\(name) \(look)")
                            #expect(page.requests.contains { $0.hasSuffix("/page.css") }, "\(name) \(look)")
                            let text = try await page.text()
                            #expect(text.contains(words), "\(name) \(look): \(text)")
                            let lang = try await page.evaluate("document.documentElement.lang", as: String.self)
                            #expect(lang == language, "\(name) \(look)")
                            let access = try await page.accessProblems().filter { !$0.hasPrefix(Self.ofTheConsole) }
                            #expect(access == [], "\(name) \(look)")
                            try await page.screenshot("links/alarm-\(name)-\(look)")
                            page.forget()
                        }
                        func say(_ english: String, _ german: String, _ arabic: String) -> String {
                            ["en": english, "de": german, "ar": arabic][language] ?? ""
                        }
                        try await page.go(to: scene.alarm)
                        try await check("open", says: say("I am on my way", "Ich bin unterwegs", "أنا في الطريق"))
                        try await page.go(to: scene.alarm)
                        #expect(try await page.text().contains("47.809501, -13.05 (± 12 m)"))
                        #expect(
                            try await page.evaluate(
                                "document.querySelector('a[rel]').getAttribute('href')", as: String.self)
                                == "https://www.openstreetmap.org/?mlat=47.809501&mlon=-13.05#map=16/47.809501/-13.05")
                        #expect(
                            try await page.evaluate("document.documentElement.dir", as: String.self)
                                == (language == "ar" ? "rtl" : "ltr"))
                        page.forget()
                        try await page.follow("button[value=ask_safe]")
                        try await check(
                            "question",
                            says: say("really safe?", "Ist wirklich alles in Ordnung?", "هل الشخص بخير فعلًا؟"))
                        try await page.go(to: scene.consent)
                        try await check("consent", says: say("You said yes", "Du hast ja gesagt", "كان ردك نعم"))
                        try await page.follow("button[value=ask_never]")
                        try await check(
                            "never", says: say("for anybody?", "egal für wen?", "من أجل أي شخص؟"))
                        try await page.go(to: scene.alarm + "0")
                        try await check(
                            "unknown", status: 404, says: say("no longer valid", "gilt nicht mehr", "لم يعد صالحًا"))
                        try await page.go(to: scene.alarm)
                        _ = try await page.evaluate(
                            "document.querySelector('button[value=cannot]').value = 'perhaps'", as: String.self)
                        page.forget()
                        try await page.follow("button[value=perhaps]")
                        try await check(
                            "answer", status: 400, says: say("do not know", "kennen wir nicht", "لا نعرف هذا الرد"))
                        try await page.follow("main a.button")
                    }
                }
            }
        }
    }

    @Test(arguments: [true, false])
    func `“safe” asks once more before it ends the alarm, with script and without`(hasScript: Bool) async throws {
        try await withAlarm(language: "en") { scene in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 390, height: 844, isPhone: true)
                try await page.setScript(hasScript)
                func state() async throws -> String? {
                    try await scene.connection.value("select state from millrace.alarms")
                }
                try await page.go(to: scene.alarm)
                try await page.follow("button[value=ask_safe]")
                #expect(try await page.text().contains("Are they really safe?"))
                #expect(try await state() == "acknowledged")
                try await page.follow("main a.button")
                #expect(try await page.text().contains("Your answer"))
                #expect(try await state() == "acknowledged")
                try await page.follow("button[value=ask_safe]")
                try await page.follow("button[value=safe]")
                #expect(try await state() == "resolved")
                let over = try await page.text()
                #expect(!over.contains("Your answer") && over.contains("They are safe"))
                #expect(page.errors == [])
            }
        }
    }

    @Test func `an alarm is read in another language, with times in the reader's zone, and answers keep it`()
        async throws
    {
        try await withAlarm(language: "en") { scene in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 390, height: 844, isPhone: true)
                func language() async throws -> String {
                    try await page.evaluate("document.documentElement.lang", as: String.self)
                }
                try await page.go(to: scene.alarm)
                let english = try await page.text()
                let asked = /asked for help at \d\d:\d\d on \d+ \w+ \d{4} \(Europe\/Vienna\)\./
                #expect(english.contains(asked), "\(english)")
                #expect(!english.contains("(UTC)") && !english.contains(/\d{4}-\d\d-\d\d/), "\(english)")
                try await page.follow("footer a[lang=de]")
                let german = try await page.text()
                #expect(german.contains("Anna-Maria Wolkenstein-Trostburg bittet um Hilfe"), "\(german)")
                let hasAsked = /hat um \d\d:\d\d am \d+\. \w+ \d{4} \(Europe\/Vienna\) um Hilfe/
                #expect(german.contains(hasAsked), "\(german)")
                try await page.follow("button[value=cannot]")
                #expect(try await page.text().contains("Mum: Ich kann nicht"))
                #expect(try await language() == "de")
                try await page.follow("button[value=ask_safe]")
                #expect(try await page.text().contains("Ist wirklich alles in Ordnung?"))
                try await page.follow("main a.button")
                #expect(try await language() == "de")
                try await page.follow("footer a[lang=ar]")
                let arabic = try await page.text()
                #expect(arabic.contains("أنا في الطريق، ") && arabic.contains("طلب مساعدة من "), "\(arabic)")
            }
        }
    }

    @Test func `an unknown link is said in the language that the browser asks for`() {
        func language(_ asked: String?) -> String { PageWords(accepting: asked).language }
        #expect(language(nil) == "en" && language("") == "en" && language("fr") == "en" && language("*") == "en")
        #expect(language("de") == "de" && language("DE-at") == "de" && language("fr, de;q=0.3") == "de")
        #expect(language("en;q=0.5, de") == "de" && language("de;q=0.5, en;q=0.9") == "en")
        #expect(language("de;q=0") == "en" && language("de, en") == "de" && language("en, de") == "en")
        #expect(language("de;q=nan") == "en" && language(";;,,;q=1,-") == "en" && language("de ; q=1") == "de")
    }

    @Test func `the checks find what they look for`() async throws {
        try await withBrowser { browser in
            let page = try await browser.page()
            try await page.setSize(width: 390, height: 844, isPhone: true)
            let html = """
                <meta name=viewport content='width=device-width, initial-scale=1'><body style='background:white'>
                <p id=pale style='color:rgb(160,160,160)'>pale</p><p style='color:rgba(0,0,0,0.3)'>faint</p>
                <button style='width:30px;height:30px;padding:0'>x</button><div style='width:700px'>wide</div>
                <img src='http://127.0.0.1:1/x.png'><script>
                requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
                    pale.before(Object.assign(document.createElement('div'), { style: 'height:200px' }))
                    console.error('a complaint'); undefinedName
                })))</script>
                """
            try await page.go(
                to: "data:text/html,"
                    + (html.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""))
            var problems: [String] = []
            let parts = [
                "scrolls sideways: 7", "“x” is 30 by 30", "“pale” has a contrast of 2.6",
                "“faint” has a contrast of 2.",
                "the layout shifted by 0.", "a complaint", "undefinedName is not defined", "Failed to load resource",
            ]
            try await eventually("all is found", within: .seconds(60)) {
                problems = try await page.problems()
                return parts.allSatisfy { part in problems.contains { $0.contains(part) } }
            }
            #expect(page.requests(outside: "http://127.0.0.1:2") == ["http://127.0.0.1:1/x.png"])
            #expect(!problems.contains { $0.contains("“wide”") }, "\(problems)")
        }
    }
}
