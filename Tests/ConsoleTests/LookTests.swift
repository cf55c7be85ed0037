import Foundation
import TestSupport
import Testing

@testable import Console

/// What Sources/Faces/Console/DESIGN.md promises, as far as it can be counted.
@Suite struct LookTests {
    @Test func `stylesheet and script stay below 40 kB together`() {
        let bytes = PackageResources.console_css.count + PackageResources.console_js.count
        #expect(bytes <= 40_000, "\(bytes) bytes")
    }

    @Test(arguments: [Scale.count, .rate, .span, .bytes])
    func `no two steps of an axis are spelled alike, and the last one reaches the largest value`(scale: Scale) {
        for most in [0, 0.01, 0.4, 1, 1.2, 2, 3, 7, 49, 61, 100, 3599, 45_004, 1e6, 3.3e9] {
            let steps = scale.steps(to: most)
            let labels = steps.map(scale.spell)
            #expect(Set(labels).count == labels.count, "\(most): \(labels)")
            #expect((2...5).contains(steps.count) && steps[0] == 0, "\(most): \(labels)")
            #expect(steps[steps.count - 1] >= most - 1e-9, "\(most): \(labels)")
        }
    }

    @Test func `what is short never breaks, and what is long has the rest of the row`() {
        let table = ConsoleTable(
            columns: [.text("Job"), .number("Attempt"), .text("Error")],
            rows: [[ConsoleCell("2060580"), ConsoleCell("20"), ConsoleCell(String(repeating: "x ", count: 40))]],
            empty: "")
        let cells = table.value.list("rows")[0].list("cells")
        #expect(cells.map { $0.text("kind") } == [nil, "number", "wrap"])
        #expect(cells[0].text("tone") == "id")
    }

    @Test func `only what failed is red`() {
        #expect(StateTone.of("running") == "run" && StateTone.of("dead") == "bad" && StateTone.of("paused") == "warn")
        #expect(StateTone.of("ready") == nil && StateTone.of("scheduled") == nil)
    }

    @Test func `colours and times are chosen by a form, and a cookie keeps them`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            func choose(_ form: [(String, String)], _ cookie: String = "") async throws -> String {
                let headers = cookie.isEmpty ? [] : [("Cookie", cookie)]
                let answer = try await world.post("/console/look", form + [("back", "/console/queues")], headers)
                #expect(answer.status == 303 && answer.header("Location") == "/console/queues")
                let set = answer.header("Set-Cookie") ?? ""
                #expect(set.contains("HttpOnly") && set.contains("SameSite=Strict"))
                return String(set.prefix { $0 != ";" })
            }
            let plain = try await world.get("/console/queues").body
            #expect(plain.contains("<html lang=\"en\">") && plain.contains("times in UTC"))
            let dark = try await choose([("theme", "dark")])
            #expect(dark == "millrace_look=dark:utc:")
            let both = try await choose([("clock", "local"), ("zone", "Europe/Vienna")], dark)
            let page = try await world.get("/console/queues", [("Cookie", both)]).body
            #expect(page.contains("data-theme=\"dark\"") && page.contains("times in Europe/Vienna"))
            // What is no zone is not taken, and no other site may choose.
            #expect(try await choose([("clock", "local"), ("zone", "../etc/passwd")]) == "millrace_look=auto:utc:")
            let broken = try await world.get("/console", [("Cookie", "millrace_look=<b>:local:Mars/Olympus")])
            #expect(broken.status == 200 && broken.body.contains("times in UTC"))
            let foreign = try await world.post(
                "/console/look", [("theme", "dark")], [("Origin", "https://evil.example")])
            #expect(foreign.status == 403 && foreign.header("Set-Cookie") == nil)
            let away = try await world.post("/console/look", [("theme", "dark"), ("back", "https://evil.example")])
            #expect(away.header("Location") == "/console")
        }
    }

    @Test func `the navigation has the rooms that are installed, and counts what needs somebody`() async throws {
        try await ConsoleWorld.with { world in
            let page = try await world.get("/console").body
            for name in ["Now", "Flow", "Rooms", "Record"] { #expect(page.contains(">\(name)</p>"), "\(name)") }
            #expect(page.contains("href=\"/console/quests\""))
            #expect(page.contains("title=\"causes in the last hour\">2</span>"))
        }
        let navigation = Navigation(added: [])
        let without = navigation.value(current: "Overview", .init(rooms: ["mail"]))
        let labels = without.elements.flatMap { $0.list("entries").compactMap { $0.text("label") } }
        #expect(labels.contains("Mail") && !labels.contains("Quests") && labels.contains("Jobs"))
    }
}
