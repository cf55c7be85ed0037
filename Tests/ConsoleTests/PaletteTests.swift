import Foundation
import TestSupport
import Testing

@testable import Console

/// The field that a key opens, and what it finds.
@Suite(.timeLimit(.minutes(10))) struct PaletteTests {
    private struct Found: Decodable {
        let label: String
        let href: String
    }

    private static func found(_ text: String, _ world: ConsoleWorld) async throws -> [Found] {
        let answer = try await world.get("/console/palette?q=\(PageAddress.encoded(text))")
        #expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
        return try JSONDecoder().decode([Found].self, from: Data(answer.body.utf8))
    }

    @Test func `pages, queues, kinds and numbers are found, and each leads somewhere`() async throws {
        try await ConsoleWorld.with { world in
            let all = try await Self.found("", world)
            #expect(Set(all.map(\.href)) == Set(Navigation.groups.flatMap { $0.entries }.map { "/console\($0.path)" }))
            let reports = try await Self.found("REPORT", world)
            #expect(reports.map(\.label) == ["Queue reports", "Kind report.build"])
            let number = try await Self.found(try await world.job("dead"), world)
            #expect(number.first?.label.hasPrefix("Job ") == true && number.count == 3)
            let message = try await Self.found(Seed.mail, world)
            #expect(message.first?.href == "/console/mail/\(Seed.mail)")
            for one in all + reports + [number[0], message[0]] {
                #expect(try await world.get(one.href).status == 200, "\(one.href)")
            }
            #expect(try await Self.found(Seed.script, world).isEmpty)
            #expect(try await Self.found("-5", world).isEmpty)
            let page = try await world.get("/console/search?q=queues")
            #expect(
                page.body.contains("href=\"/console/queues\">Queues"), "without a script the search finds pages, too")
        }
    }

    @Test(.enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"))
    func `a key opens it, letters narrow it, and Enter goes there`() async throws {
        try await ConsoleWorld.with { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1280, height: 844, isPhone: false)
                try await page.go(to: "\(world.origin)/console/queues")
                func press(_ key: String, on target: String, control: Bool = false) async throws {
                    _ = try await page.evaluate(
                        "\(target).dispatchEvent(new KeyboardEvent('keydown', { key: '\(key)', ctrlKey: \(control), bubbles: true, cancelable: true })) || true",
                        as: Bool.self)
                }
                try await press("k", on: "document.body", control: true)
                #expect(try await page.evaluate("document.getElementById('palette').open", as: Bool.self))
                try await eventually("it shows all pages") {
                    try await page.evaluate("document.querySelectorAll('#palette a').length", as: Int.self) > 15
                }
                try await page.fill("#palette input", "report.b")
                try await eventually("it shows what fits") {
                    try await page.evaluate(
                        "[...document.querySelectorAll('#palette a')].map(a => a.textContent).join()", as: String.self)
                        == "Kind report.build"
                }
                try await press("Enter", on: "document.querySelector('#palette input')")
                try await eventually("it has gone there") {
                    try await page.evaluate("location.pathname + location.search", as: String.self)
                        == "/console/kind?name=report.build"
                }
            }
        }
    }
}
