import Foundation
import TestSupport
import Testing

@testable import Console

/// What somebody sees on a desk before they scroll.
@Suite(
    .enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"),
    .timeLimit(.minutes(10)))
struct FoldTests {
    private static let rows = """
        [...document.querySelectorAll('tbody tr')].filter(row => row.getBoundingClientRect().bottom <= innerHeight).length
        """

    @Test func `17 jobs and 21 causes of failures are in sight, also below saved searches`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Incident.fill(world.connection)
            try await world.connection.run(
                """
                select set_config('millrace.actor', 'ann', false);
                select millrace.console_search_save('night', '{"state": "dead"}')
                """)
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1440, height: 900, isPhone: false)
                for (address, least) in [("/jobs?state=ready", 17), ("/jobs?state=dead", 17), ("/failures", 21)] {
                    try await page.go(to: "\(world.origin)/console\(address)")
                    let rows = try await page.evaluate(Self.rows, as: Int.self)
                    #expect(rows >= least, "\(address): \(rows)")
                }
            }
        }
    }

    @Test func `the steps of a job, a whole flow and the state of a provider are in sight`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Incident.fill(world.connection)
            let job = try #require(
                try await world.connection.value("select min(l.lo) from millrace.lease l where l.session = 1"))
            let flow = try #require(
                try await world.connection.value(
                    "select min(id) from millrace.jobs where state = 'blocked' and kind = 'report.build'"))
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1440, height: 900, isPhone: false)
                for (name, address, part, least) in [
                    ("job", "/jobs/\(job)", "td.span", 5), ("flow", "/jobs/\(flow)?flow=yes", ".graph a", 7),
                    ("provider", "/provider?name=stripe", ".state", 3),
                ] {
                    try await page.go(to: "\(world.origin)/console\(address)")
                    let seen = try await page.evaluate(
                        "[...document.querySelectorAll('\(part)')].filter(e => e.getBoundingClientRect().bottom <= innerHeight).length",
                        as: Int.self)
                    #expect(seen >= least, "\(name): \(seen)")
                    try await page.screenshot("readme/\(name)", isWhole: false)
                }
            }
        }
    }

    @Test func `the verdict of an incident and its figures fit one screen, also with 45 paused queues`() async throws {
        struct Places: Decodable {
            let verdict: Double
            let figures: Double
            let findings: Int
            let buttons: Int
        }
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Incident.fill(world.connection)
            try await withBrowser { browser in
                let page = try await browser.page()
                for paused in [0, 45] {
                    try await world.connection.run(
                        """
                        select millrace.enqueue('image.resize', queue => 'paused-' || n) from generate_series(1, \(paused)) n;
                        select millrace.pause('paused-' || n) from generate_series(1, \(paused)) n
                        """)
                    for (width, height) in [(1440, 900), (1024, 768)] {
                        try await page.setSize(width: width, height: height, isPhone: false)
                        try await page.go(to: "\(world.origin)/console")
                        let places = try await page.evaluate(
                            """
                            ({
                                verdict: document.querySelector('.verdict').getBoundingClientRect().bottom,
                                figures: document.querySelector('.tiles').getBoundingClientRect().bottom,
                                findings: document.querySelectorAll('.verdict .finding').length,
                                buttons: document.querySelectorAll('.verdict button').length,
                            })
                            """, as: Places.self)
                        let look = "\(paused) at \(width) by \(height): \(places)"
                        #expect(places.figures <= Double(height) && places.verdict < places.figures, "\(look)")
                        #expect((3...5).contains(places.findings) && places.buttons > 0, "\(look)")
                        if paused == 0, width == 1440 { try await page.screenshot("readme/console", isWhole: false) }
                    }
                }
            }
        }
    }
}
