import Foundation
import TestSupport
import Testing

@testable import Console

/// Lists that are sorted by the headings of their columns.
@Suite(.timeLimit(.minutes(10))) struct SortingTests {
    /// The numbers of the jobs on a page, in their order.
    private func jobs(_ page: String) -> [Int] {
        page.matches(of: /<a href="\/console\/jobs\/(\d+)"[^>]*>\1<\/a>/).compactMap { Int($0.1) }
    }

    private func next(_ page: String) -> String? {
        page.firstMatch(of: /<a rel="next" href="([^"]+)"/).map { String($0.1).replacing("&amp;", with: "&") }
    }

    @Test func `the columns of jobs sort them, and again the other way`() async throws {
        try await ConsoleWorld.with { world in
            let dead = try await world.connection.column(
                "select id from millrace.jobs where state = 'dead' order by id"
            ).compactMap { Int($0) }
            let plain = try await world.get("/console/jobs?state=dead").body
            #expect(jobs(plain) == dead.reversed() && !plain.contains("aria-sort"))
            #expect(plain.contains("aria-label=\"Sort by Kind, ascending\""))
            let sorted = try await world.get("/console/jobs?state=dead&sort=number").body
            #expect(jobs(sorted) == dead && sorted.contains("aria-sort=\"ascending\""))
            #expect(sorted.contains("sort=number%20reversed\" aria-label=\"Sort by Job, descending\""), "\(sorted)")
            let back = try await world.get("/console/jobs?state=dead&sort=number%20reversed").body
            #expect(jobs(back) == dead.reversed() && back.contains("aria-sort=\"descending\""))
            #expect(!back.contains("there are others"))
            for state in JobPages.states {
                for sort in ["kind", "queue", "time", "attempts reversed", "nonsense", "\"><script>"] {
                    let address = PageAddress.to("/jobs", [("state", state), ("sort", sort)])
                    let page = try await world.get(address)
                    #expect(page.status == 200, "\(address): \(page.body.suffix(900))")
                    #expect(
                        Set(jobs(page.body)) == Set(jobs(try await world.get("/console/jobs?state=\(state)").body)),
                        "\(address)")
                }
            }
        }
    }

    @Test func `each column's order is that of its values`() async throws {
        try await ConsoleWorld.with { world in
            for (state, column, sort) in [
                ("dead", "finished_at desc", "time"), ("retrying", "attempt desc", "attempts"),
                ("scheduled", "run_at desc", "time"), ("ready", "kind collate \"C\"", "kind"),
                ("ready", "queue collate \"C\" desc", "queue reversed"), ("running", "started_at", "time reversed"),
            ] {
                let page = try await world.get(PageAddress.to("/jobs", [("state", state), ("sort", sort)])).body
                let shown = jobs(page)
                let expected = try await world.connection.column(
                    """
                    select j.id from millrace.jobs j where j.id = any ('{\(shown.map(String.init).joined(separator: ","))}')
                     order by \(column), id desc
                    """)
                #expect(!shown.isEmpty && shown.map(String.init) == expected, "\(state) by \(sort)")
            }
        }
    }

    @Test func `page after page shows every job once, in the order of five hundred at a time`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                "select count(millrace.enqueue('sorted.' || i % 3, queue => 'sorted')) from generate_series(1, 620) i")
            var address: String? = "/console/jobs?state=ready&queue=sorted&sort=kind"
            var pages: [[Int]] = []
            while let current = address, pages.count < 20 {
                let page = try await world.get(current).body
                pages.append(jobs(page))
                #expect(page.contains("jobs found so far are sorted"), "\(current)")
                address = next(page)
            }
            let all = pages.flatMap { $0 }
            #expect(all.count == 620 && Set(all).count == 620, "\(pages.map(\.count))")
            let kinds = try await world.connection.column(
                "select j.kind from unnest('{\(all.map(String.init).joined(separator: ","))}'::bigint[]) with ordinality x(id, n) join millrace.jobs j on j.id = x.id order by x.n"
            )
            #expect(kinds.prefix(500) == kinds.prefix(500).sorted()[...])
            #expect(kinds.suffix(120) == kinds.suffix(120).sorted()[...])
        }
    }

    @Test func `the columns of failures sort them`() async throws {
        try await ConsoleWorld.with { world in
            let page = try await world.get("/console/failures?kind=report.build&sort=failed").body
            #expect(page.components(separatedBy: "aria-sort=\"descending\"").count == 2)
            #expect(page.contains("/console/failures?kind=report.build&amp;sort=dead\""), "\(page)")
            #expect(try await world.get("/console/failures?sort=last%20reversed").status == 200)
        }
    }

    @Test func `a saved search is a link for everybody, with its order; what the list does not know is refused`()
        async throws
    {
        try await ConsoleWorld.with { world in
            let token = try await world.formToken()
            func save(_ name: String, _ filter: String) async throws -> RawAnswer {
                try await world.post(
                    "/console/act/search.save", [("form_token", token), ("name", name), ("filter", filter)])
            }
            let page = try await world.get("/console/jobs?state=dead&tag=night&sort=kind%20reversed").body
            let filter = #"{"sort":"kind reversed","state":"dead","tag":"night"}"#
            #expect(page.contains("value=\"\(filter.replacing("\"", with: "&quot;"))\""))
            #expect(try await save(" <b>ours</b> ", filter).status == 303)
            let link = "/console/jobs?state=dead&amp;tag=night&amp;sort=kind%20reversed"
            let others = try await world.get("/console/jobs").body
            #expect(others.contains("<a href=\"\(link)\">&lt;b&gt;ours&lt;/b&gt;</a>"), "\(others)")
            let here = try await world.get(link.replacing("&amp;", with: "&")).body
            #expect(here.contains("<a href=\"\(link)\" class=\"here\">") && jobs(here).count == 3)
            for (name, filter) in [
                ("x", #"{"state": "dead", "after": "7"}"#), ("x", #"{"state": 7}"#), ("x", "[]"), ("x", "null"),
                ("x", "{"), (String(repeating: "x", count: 129), "{}"), ("", "{}"),
                ("x", "{\"error\": \"\(String(repeating: "x", count: 5000))\"}"),
            ] {
                #expect(try await save(name, filter).status == 400, "\(name) \(filter.prefix(60))")
            }
            let again = try await world.post(
                "/console/act/search.save", [("form_token", token), ("name", "<b>ours</b>"), ("filter", filter)])
            #expect(again.header("Location")?.hasSuffix("said=nothing") == true)
        }
    }
}
