import CommandKit
import Composition
import Foundation
import Listeners
import Postgres
import Telemetry
import TestSupport
import Testing

@testable import Console

/// One console over several databases: a start page, and the pages of each below it.
@Suite(.timeLimit(.minutes(10))) struct SeveralConsoleTests {
    /// A console as the settings make it. What is asked goes to it, and what is looked up in a database to `world`'s.
    private static func with(
        _ databases: [(name: String, url: String)], as world: ConsoleWorld, token: String? = nil,
        _ body: @Sendable (ConsoleWorld) async throws -> Void
    ) async throws {
        var environment = [
            "MILLRACE_DATABASES": databases.map { "\($0.name)=\($0.url)" }.joined(separator: "\n"),
            "MILLRACE_CONSOLE_LISTEN": "127.0.0.1:0",
        ]
        for (role, name) in world.roles { environment["MILLRACE_ROLE_\(role.rawValue.uppercased())"] = name }
        environment["MILLRACE_TOKEN"] = token
        let surroundings = Surroundings(
            environment: environment, workingDirectory: "/here", isWritableDirectory: { _ in false },
            read: { _, _ throws(FileProblem) in throw FileProblem(complaint: "no such file") },
            chunks: { _ throws(FileProblem) in throw FileProblem(complaint: "no such file") }, ask: { _ in nil })
        let settings = Settings.load(parsed: nil, surroundings: surroundings)
        #expect(settings.problems == [])
        var composer = Composer(
            settings: settings, surroundings: surroundings, database: ConnectionOptions(location: ""), direct: nil)
        composer.log = .silent
        let (console, pools) = try composer.severalConsole(version: "1.2.3")
        let listener = try composer.consoleListener(console)
        let running = Task { await console.run() }
        async let answering: Void = listener.run()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(
                try await body(
                    ConsoleWorld(
                        database: world.database, connection: world.connection, service: world.service,
                        port: listener.address.port, roles: world.roles)))
        } catch {
            outcome = .failure(error)
        }
        listener.stop()
        try await answering
        running.cancel()
        await running.value
        for pool in pools { await pool.close() }
        try outcome.get()
    }

    /// The same database under an address that differs: one address twice is refused.
    private static func again(_ url: String) -> String { url + "&application_name=again" }

    /// What a page leads to or loads.
    private static func addresses(in html: String) -> Set<String> {
        Set(
            html.matches(of: /(?:href|action|src|data-base|data-from)="([^"]*)"/).map {
                String($0.1).replacing("&amp;", with: "&")
            })
    }

    private static let shared: Set<String> = [
        "/console", "/console/look", "/console/signout", "/console/icon.svg", "/console/console.css?v=1.2.3",
        "/console/console.js?v=1.2.3",
    ]

    @Test func `every address of a database's pages stays below its name`() async throws {
        try await ConsoleWorld.with { eu in
            try await Self.with([("eu", eu.database.url), ("us", Self.again(eu.database.url))], as: eu) { site in
                var seen = 0
                for page in try await WalkTests.addresses(eu) {
                    let answer = try await site.get("/console/eu\(page.address)")
                    #expect(answer.status == 200, "\(page.name): \(answer.body.prefix(300))")
                    #expect(answer.body.contains("· eu · Millrace</title>"), "\(page.name)")
                    let own = Self.addresses(in: answer.body).filter { $0.hasPrefix("/") && !Self.shared.contains($0) }
                    seen += own.count
                    let strays = own.filter {
                        $0 != "/console/eu" && !$0.hasPrefix("/console/eu/") && !$0.hasPrefix("/console/eu?")
                    }
                    #expect(strays.isEmpty, "\(page.name)")
                }
                #expect(seen > 500)
                let found = try await site.get("/console/eu/palette?q=queues").body
                #expect(found.contains("/console/eu/queues"), "\(found)")
                #expect(try await site.get("/console/eu/").header("Location") == "/console/eu")
                #expect(try await site.get("/").header("Location") == "/console")
                for path in ["/console/ap", "/console/jobs", "/console/live", "/console/ap/jobs"] {
                    #expect(try await site.get(path).status == 404, "\(path)")
                }
                let live = try EventReader(site, at: "/console/eu")
                #expect(await live.next()?.texts["verdict"] != nil)
            }
        }
    }

    @Test func `a page of one database shows nothing of another, and acts there alone`() async throws {
        try await ConsoleWorld.with { eu in
            try await ConsoleWorld.with({ $0.addition = nil }) { us in
                try await eu.connection.run("select millrace.enqueue('only.eu', queue => 'shared')")
                try await us.connection.run("select millrace.enqueue('only.us', queue => 'shared')")
                try await Self.with([("eu", eu.database.url), ("us", us.database.url)], as: eu) { site in
                    for path in ["/jobs?queue=shared&state=ready", "/kinds", "/jobs?state=ready"] {
                        let pages = (
                            try await site.get("/console/eu\(path)").body, try await site.get("/console/us\(path)").body
                        )
                        #expect(!pages.0.contains("only.us"), "\(path)")
                        #expect(!pages.1.contains("only.eu"), "\(path)")
                        if path.hasPrefix("/jobs") {
                            #expect(pages.0.contains("only.eu"), "\(path)")
                            #expect(pages.1.contains("only.us"), "\(path)")
                        }
                    }
                    let page = try await site.get("/console/eu/queue?name=shared").body
                    let token = try #require(page.firstMatch(of: /name="form_token" value="([^"]+)"/)?.1)
                    let done = try await site.post(
                        "/console/eu/act/queue.pause",
                        [
                            ("form_token", String(token)), ("queue", "shared"), ("name", "shared"),
                            ("back", "/console/us/jobs"),
                        ],
                        [("Origin", site.origin)])
                    #expect(done.status == 303, "\(done.body)")
                    // Not to a page of another database, whatever the form says.
                    #expect(done.header("Location")?.hasPrefix("/console/eu") == true, "\(done.head)")
                    let paused = "select count(*) from millrace.queue where name = 'shared' and paused_at is not null"
                    #expect(try await eu.connection.int(paused) > 0)
                    #expect(try await us.connection.int(paused) == 0)
                    let start = try await site.get("/console")
                    #expect(!start.body.contains("method=\"post\" id=") && !start.body.contains("id=\"search\""))
                    let posted = try await site.post("/console", [("form_token", String(token))])
                    #expect([404, 405].contains(posted.status))
                }
            }
        }
    }

    @Test func `the start page has a line for each, and says which one is away`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { eu in
            try await eu.connection.run("select millrace.enqueue('only.eu') from generate_series(1, 12)")
            let away = "postgresql://nobody@/none?host=/nowhere"
            try await Self.with([("us", away), ("eu", eu.database.url)], as: eu) { site in
                let page = try await site.get("/console")
                #expect(page.status == 200, "\(page.body)")
                let rows = page.body.split(separator: "<tr").map(String.init).filter {
                    $0.contains("<td") || $0.contains("<th scope=\"row\"")
                }
                #expect(rows.count == 2, "\(page.body)")
                let (us, here) = (rows.first ?? "", rows.last ?? "")
                #expect(
                    us.contains("/console/us") && us.contains("UNKNOWN")
                        && us.contains("the database cannot be reached"), "\(us)")
                #expect(here.contains("/console/eu") && here.contains("12"), "\(here)")
                #expect(!page.body.contains("nobody"))
                #expect(try await site.get("/console/us/jobs").status == 503)
                #expect(try await site.get("/console/eu/jobs").status == 200)
            }
        }
    }

    @Test func `a database that does not answer delays no other`() async throws {
        let (answers, answering) = AsyncStream.makeStream(of: Void.self)
        let slow = DatabaseGlance(name: "slow") { () async throws(DatabaseGlance.Unread) in
            for await _ in answers {}
            return DatabaseGlance.Reading(word: "OK", findings: [])
        }
        let quick = DatabaseGlance(name: "quick") { () async throws(DatabaseGlance.Unread) in
            var reading = DatabaseGlance.Reading(word: "DEGRADED", findings: ["one thing", "another"])
            reading.ready = 7
            return reading
        }
        func cells(within limit: Duration) async throws -> [[String]] {
            let page = await StartPage.page([slow, quick], within: limit)
            guard case .table(let table)? = page.parts.first else { return [] }
            return table.rows.map { $0.map(\.text) }
        }
        let first = try await cells(within: .milliseconds(20))
        #expect(first[0][1] == "UNKNOWN" && first[0][5].hasPrefix("the database has not answered for"), "\(first)")
        answering.finish()
        let second = try await cells(within: .ample)
        #expect(second[0][1] == "OK")
        #expect(second[1] == ["quick", "DEGRADED", "–", "7", "–", "one thing, and 1 more"])
    }

    @Test func `people sign in once, and out everywhere, also while a database is away`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { eu in
            let away = "postgresql://nobody@/none?host=/nowhere"
            let all = [("eu", eu.database.url), ("us", Self.again(eu.database.url)), ("ap", away)]
            try await Self.with(all, as: eu, token: "a-token-that-is-long-enough") { site in
                let refused = try await site.get("/console/us/jobs?state=dead")
                #expect(refused.status == 303)
                let sign = try #require(refused.header("Location"))
                #expect(sign == "/console/signin?back=%2Fconsole%2Fus%2Fjobs%3Fstate%3Ddead")
                #expect(try await site.get("/console").header("Location") == "/console/signin?back=%2Fconsole")
                #expect(try await site.get(sign).body.contains("value=\"/console/us/jobs?state=dead\""))
                let entered = try await site.post(
                    "/console/signin",
                    [("secret", "a-token-that-is-long-enough"), ("to", "/console/us/jobs?state=dead")])
                #expect(entered.header("Location") == "/console/us/jobs?state=dead")
                let set = try #require(entered.header("Set-Cookie"))
                #expect(set.contains("; Path=/console;"), "\(set)")
                let cookie = [("Cookie", String(set.prefix { $0 != ";" }))]
                for path in ["/console", "/console/eu", "/console/us/jobs"] {
                    #expect(try await site.get(path, cookie).status == 200, "\(path)")
                }
                let page = try await site.get("/console", cookie).body
                let token = try #require(page.firstMatch(of: /name="form_token" value="([^"]+)"/)?.1)
                let left = try await site.post(
                    "/console/signout", [("form_token", String(token))], cookie + [("Origin", site.origin)])
                #expect(left.header("Location") == "/console/signin", "\(left.body)")
                for path in ["/console", "/console/eu", "/console/us/jobs", "/console/ap"] {
                    #expect(try await site.get(path, cookie).status == 303, "\(path)")
                }
                // Of the database, so that other consoles hear it.
                #expect(try await eu.connection.int("select count(*) from millrace.console_signed_out") == 1)
            }
        }
    }

    @Test func `a name that is an address of the start page is refused`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { eu in
            let failure = try await failure(as: Failure.self) {
                try await Self.with([("signin", eu.database.url), ("us", Self.again(eu.database.url))], as: eu) { _ in }
            }
            #expect(failure?.exitCode == .misused, "\(String(describing: failure))")
        }
    }
}
