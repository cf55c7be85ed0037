import Approvals
import Foundation
import Listeners
import MillraceQueues
import Postgres
import Signatures
import Telemetry
import TestSupport
import Testing

@testable import Composition
@testable import MillraceCommand

/// The page behind a person's link to a question.
@Suite(.timeLimit(.minutes(10))) struct ApprovalPageTests {
    /// An open question to Ada and Bob, and a listener that serves its page.
    struct Scene {
        let connection: Connection
        let links: Links
        let database: String
        let origin: String
        let approval: String

        func ref(_ person: String) async throws -> String {
            try await Queue.approvalLink(approval, person: person, on: connection)
        }

        func address(_ person: String) async throws -> String {
            let link = try #require(links.approval(approval, ref: try await ref(person)))
            return origin + link.dropFirst("https://x.example".count)
        }

        func curl(_ arguments: String...) async throws -> String {
            // Names stand apart from the sentence around them.
            try await Program.run("curl", ["-s", "-m", "60", "-w", " %{http_code}"] + arguments).text
                .replacing("<bdi>", with: "").replacing("</bdi>", with: "")
        }

        func answers() async throws -> [String] {
            try await connection.column(
                "select answered_by || ' ' || approved || ' ' || coalesce(comment, '-') from millrace.approval where answered_at is not null"
            )
        }
    }

    static func with(
        _ template: Template = .migrated, request: String = #"{"amount": 7}"#, _ body: (Scene) async throws -> Void
    ) async throws {
        try await withDatabase(template) { database in
            let connection = try await database.connect()
            let approval = try #require(
                try await connection.value(
                    """
                    select millrace.approval_ask(millrace.enqueue('order.place', tenant => 'acme <x>'), 'large-order',
                        jsonb_build_object('request', '\(request)'::jsonb, 'seconds', 86400), 'acme <x>', 'x', millrace.now())
                    """))
            let links = Links(publicURL: "https://x.example/", secrets: ["a secret of ours"])
            let routes = ApprovalRoutes(pool: Pool(database.options, size: 2), log: .silent, links: links)
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let outcome: Result<Void, any Error>
            do {
                let scene = Scene(
                    connection: connection, links: links, database: database.url,
                    origin: "http://127.0.0.1:\(listener.address.port)",
                    approval: approval)
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

    @Test func `the page says who asks and what, escaped and redacted, and a GET answers nothing`() async throws {
        let request = #"""
            {"note": "<b>now</b>\u202e & then", "payer": {"number": "4111", "password": "hunter2"}, "lines": [{"sku": "A-1"}, true, null]}
            """#
        try await Self.with(request: request) { scene in
            try await scene.connection.run(
                """
                select millrace.person_profile('ada', 'Ada & Co', 'de', 'Europe/Berlin', actor => 'ada'),
                    millrace.kind_redactions_set('order.place', array['payer.number'])
                """)
            let link = try await scene.address("ada")
            for _ in 0..<2 {
                let page = try await scene.curl(link)
                #expect(page.hasSuffix(" 200") && page.contains("lang=\"de\""))
                for part in [
                    "large-order", "Ada &amp; Co, order.place bittet", "acme &lt;x&gt;", "(Europe/Berlin)",
                    "&lt;b&gt;now&lt;/b&gt;\u{fffd} &amp; then", "<dt>number</dt><dd>[redacted]</dd>",
                    "<dt>password</dt><dd>[redacted]</dd>", "<dt>sku</dt><dd>A-1</dd>", "<li>Ja</li><li>–</li>",
                ] { #expect(page.contains(part), "\(part)") }
                #expect(!page.contains("hunter2") && !page.contains("4111") && !page.contains("<b>"))
                #expect(!page.contains("src=") && !page.contains("http") && !page.contains("<script"))
            }
            #expect(try await scene.answers() == [])
            // Somebody of whom nothing is known reads what the browser asks for, in UTC.
            let other = try await scene.curl("-H", "Accept-Language: fr, en", try await scene.address("zed"))
            #expect(other.contains("zed, order.place asks for your answer.") && other.contains("(UTC)"))
            let headers = try await scene.curl("-i", link)
            #expect(headers.contains("default-src 'none'; style-src 'self'; form-action 'self'"))
            #expect(headers.contains("Referrer-Policy: no-referrer") && headers.contains("Cache-Control: no-store"))
            #expect(try await scene.curl("\(scene.origin)/v1/approvals/page.css").contains("min-height: 52px"))
        }
    }

    @Test func `fields stand in the order that is stated, sums and days as the language writes them`() async throws {
        let request = #"""
            {"$order": ["order", "total"], "day": "2026-11-28", "reason": "broken", "order": 10077, "total": {"amount": 1240.25, "currency": "EUR"}}
            """#
        try await Self.with(request: request) { scene in
            let link = try await scene.address("ada")
            let page = try await scene.curl("-H", "Accept-Language: de", link)
            for part in [
                "<dt>order</dt><dd>10077</dd><dt>total</dt><dd><bdi class=\"sum\" dir=\"ltr\">1.240,25 EUR</dd>",
                "<dt>day</dt><dd>28. November 2026</dd>",
            ] { #expect(page.contains(part), "\(part): \(page)") }
            #expect(!page.contains("$order"))
            let english = try await scene.curl("\(link)?language=en")
            #expect(english.contains("1,240.25 EUR") && english.contains("28 November 2026"))
            #expect(english.components(separatedBy: "<textarea").count == 2)
        }
    }

    @Test func `an answer counts once, is its person's, and later ones are told whose it was`() async throws {
        try await Self.with { scene in
            let (ada, bob) = (try await scene.address("ada"), try await scene.address("bob"))
            for wrong in ["answer=perhaps", "comment=x", "answer=%ff", "answer=yes&comment=%00"] {
                let page = try await scene.curl("-d", wrong, ada)
                #expect(page.hasSuffix(" 400"), "\(wrong)")
            }
            let long = String(repeating: "x", count: 501)
            #expect(try await scene.curl("-d", "answer=yes&comment=\(long)", ada).contains("500 characters at most"))
            #expect(
                try await scene.curl("-d", "answer=yes&comment=\(String(repeating: "x", count: 20_000))", ada)
                    .hasSuffix(" 413"))
            #expect(try await scene.answers() == [])
            let said = try await scene.curl(
                "-d", "answer=yes", "--data-urlencode", "comment=it's <fine>\r\nso far", ada)
            #expect(said.hasSuffix(" 200") && said.contains("Answered with “Yes” by ada, "))
            #expect(said.contains("it&#39;s &lt;fine&gt;\nso far") && !said.contains("<button"))
            #expect(try await scene.answers() == ["ada true it's <fine>\nso far"])
            // The same again, as a reload sends it; another one does not count.
            #expect(try await scene.curl("-d", "answer=yes", ada).hasSuffix(" 200"))
            let late = try await scene.curl("-d", "answer=no", bob)
            #expect(late.hasSuffix(" 409") && late.contains("The first answer counts") && late.contains("by ada, "))
            #expect(try await scene.curl(bob).contains("Answered with “Yes” by ada, "))
            #expect(try await scene.answers().count == 1)
        }
    }

    @Test func `of two answers that come at once one counts, and both readers see it`() async throws {
        try await Self.with { scene in
            let (ada, bob) = (try await scene.address("ada"), try await scene.address("bob"))
            async let first = scene.curl("-d", "answer=yes", ada)
            async let second = scene.curl("-d", "answer=no", bob)
            let pages = try await [first, second]
            #expect(pages.map { String($0.suffix(4)) }.sorted() == [" 200", " 409"])
            let answer = try #require(try await scene.answers().first)
            let shown = answer.hasPrefix("ada true") ? "Answered with “Yes” by ada, " : "Answered with “No” by bob, "
            for page in pages { #expect(page.contains(shown), "\(answer): \(page)") }
            #expect(
                try await scene.connection.int("select count(*) from millrace.signal where name = 'millrace.approval'")
                    == 1)
        }
    }

    @Test func `a link cannot be forged, nor moved to another person, question or kind of page`() async throws {
        try await Self.with { scene in
            let (ada, bob) = (try await scene.ref("ada"), try await scene.ref("bob"))
            let other = try #require(
                try await scene.connection.value(
                    "select millrace.approval_ask(millrace.enqueue('order.place'), 'other', '{}', null, 'x', now())"))
            let token = String(try await scene.address("ada").suffix(128))
            let strangers = Links(publicURL: "https://x.example", secrets: ["a secret of others"])
            func hex(_ id: String) -> String { id.replacing("-", with: "") }
            for forged in [
                "", "x", token + "00", String(token.dropLast(2)), String(token.reversed()),
                token.replacing(hex(ada), with: hex(bob)), token.replacing(hex(scene.approval), with: hex(other)),
                String(try #require(strangers.approval(scene.approval, ref: ada)).suffix(128)),
                // Well signed: a person of another question, and a link to an alarm.
                String(try #require(scene.links.approval(other, ref: ada)).suffix(128)),
                try #require(scene.links.alarmToken(scene.approval, contact: ada)),
            ] {
                for arguments in [[], ["-d", "answer=yes"]] {
                    let page = try await Program.run(
                        "curl",
                        ["-s", "-m", "60", "-w", " %{http_code}"] + arguments + [
                            "\(scene.origin)/v1/approvals/\(forged)"
                        ]
                    ).text
                    #expect(page.hasSuffix(" 404"), "\(forged): \(page)")
                    #expect(forged.isEmpty || page.contains("Unknown link"), "\(forged): \(page)")
                }
            }
            #expect(scene.links.openedAlarm(token) == nil && scene.links.opened(token) == nil)
            // A link that the secret before has signed still opens; an erased person's does not.
            let newer = Links(publicURL: "https://y", secrets: ["a newer secret", "a secret of ours"])
            #expect(newer.openedApproval(token)?.ref == ada)
            try await scene.connection.run("select millrace.person_erase('ada', 'ada')")
            #expect(try await scene.curl("\(scene.origin)/v1/approvals/\(token)").hasSuffix(" 404"))
            #expect(try await scene.answers() == [])
        }
    }

    @Test func `when its time is over, or its job has ended, a page says so and takes nothing`() async throws {
        try await Self.with(.movableClock) { scene in
            let late = try await scene.address("ada")
            let job = try await scene.connection.int("select millrace.enqueue('order.place')")
            let ended = try #require(
                try await scene.connection.value(
                    "select millrace.approval_ask(\(job), 'other', '{}', null, 'x', now())"))
            let link = try #require(
                scene.links.approval(
                    ended, ref: try await Queue.approvalLink(ended, person: "ada", on: scene.connection)))
            try await scene.connection.run(
                "select millrace.cancel(\(job)); select millrace.test_clock_advance('25 hours')")
            let over = scene.origin + link.dropFirst("https://x.example".count)
            for (address, words) in [(late, "Nobody had answered"), (over, "the job has ended")] {
                let page = try await scene.curl(address)
                #expect(page.hasSuffix(" 200") && page.contains(words) && !page.contains("<button"), "\(page)")
                let refused = try await scene.curl("-d", "answer=yes", address)
                #expect(refused.hasSuffix(" 409") && refused.contains(words), "\(refused)")
            }
            #expect(try await scene.answers() == [])
        }
    }

    @Test func `the command makes each person a link of their own, and says what it needs`() async throws {
        try await Self.with { scene in
            func run(_ words: [String], _ environment: [String: String]) async throws -> (ExitCode, Capture) {
                let capture = Capture()
                let code = await Application.run(
                    arguments: words + ["--database-url", scene.database], surroundings: .fake(environment),
                    console: capture.console)
                return (code, capture)
            }
            let keys = ["MILLRACE_PUBLIC_URL": "https://x.example", "MILLRACE_SECRET": "a secret of ours"]
            let words = ["approvals", "link", scene.approval, "--for", "ada"]
            let (code, capture) = try await run(words, keys)
            #expect(code == .done, "\(capture.errors)")
            let link = try #require(scene.links.approval(scene.approval, ref: try await scene.ref("ada")))
            #expect(capture.output == link + "\n")
            #expect(try await run(Array(words.dropLast(2)), keys).0 == .misused)
            #expect(try await run(words, [:]).0 == .misused)
            #expect(try await scene.connection.bool("select millrace.approval_answer('\(scene.approval)', true)"))
            #expect(try await run(words, keys).0 == .conflict)
        }
    }
}

/// The page as a browser shows it.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct ApprovalPageBrowserTests {
    @Test(arguments: ["en", "de", "ar"])
    func `a question is read and answered on a phone, by day and by night, without script`(language: String)
        async throws
    {
        let long = String(repeating: "a-very-long-word", count: 20)
        let request = #"{"number": 7, "cents": 120000, "note": "\#(long)", "lines": [{"sku": "A-1", "gift": true}]}"#
        try await ApprovalPageTests.with(request: request) { scene in
            let address = try await scene.address("ada")
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setLanguages(language == "de" ? "de-AT, en;q=0.5" : language)
                try await page.setSize(width: 390, height: 844, isPhone: true)
                try await page.setScript(false)
                func check(_ name: String, status: Int = 200, says words: String) async throws {
                    let problems = try await page.problems().filter {
                        status == 200 || !$0.contains("responded with a status of \(status)")
                    }
                    #expect(problems == [], "\(name) \(language)")
                    #expect(page.status == status, "\(name) \(language)")
                    #expect(page.requests(outside: scene.origin) == [], "\(name) \(language)")
                    let text = try await page.text()
                    #expect(text.contains(words), "\(name) \(language): \(text)")
                    let access = try await page.accessProblems()
                    #expect(
                        access.filter { !$0.hasPrefix(AlarmPageBrowserTests.ofTheConsole) } == [], "\(name) \(language)"
                    )
                    try await page.screenshot("links/approval-\(name)-\(language)-\(page.width)")
                    page.forget()
                }
                func say(_ english: String, _ german: String, _ arabic: String) -> String {
                    ["en": english, "de": german, "ar": arabic][language] ?? ""
                }
                for isDark in [false, true] {
                    try await page.setDark(isDark)
                    try await page.go(to: address)
                    // The buttons are in sight, however long the question is.
                    let bottom = try await page.evaluate(
                        "document.querySelector('button[value=yes]').getBoundingClientRect().bottom", as: Double.self)
                    #expect(bottom <= 844)
                    try await check(
                        "open-\(isDark ? "dark" : "light")",
                        says: say("asks for your answer", "bittet um deine Antwort", "يطلب ردك"))
                }
                try await page.go(to: address + "0")
                try await check("unknown", status: 404, says: say("no longer valid", "gilt nicht mehr", "لم يعد صالحًا"))
                try await page.go(to: address)
                try await page.fill("#comment", "far too much")
                try await page.follow("button[value=no]")
                try await check(
                    "answered",
                    says: say("Answered with “No” by ada", "Beantwortet mit „Nein“ von ada", "رد ada بـ «لا»"))
                #expect(try await scene.answers() == ["ada false far too much"])
            }
        }
    }
}
