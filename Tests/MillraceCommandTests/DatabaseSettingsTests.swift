import Foundation
import JSON
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Several databases, as settings and commands have them.
@Suite struct DatabaseSettingsTests {
    private static let both = "eu=postgres://u:hunter2@h1/a, us=postgres://u:hunter2@h2/b"

    private static func load(_ environment: [String: String]) -> Settings {
        .load(parsed: nil, surroundings: .fake(environment))
    }

    private static func run(_ arguments: [String], _ environment: [String: String]) async -> (code: ExitCode, Capture) {
        let capture = Capture()
        let code = await Application.run(
            arguments: arguments, surroundings: .fake(environment), console: capture.console)
        return (code, capture)
    }

    @Test func `several stand in place of one`() {
        let settings = Self.load(["MILLRACE_DATABASES": Self.both, "PGHOST": "elsewhere"])
        #expect(settings.problems == [])
        #expect(settings.databases.map(\.name) == ["eu", "us"])
        #expect(settings.database == .none)
        #expect(Self.load(["DATABASE_URL": "postgres://h/a"]).databases.isEmpty)
    }

    @Test(arguments: [
        (["DATABASE_URL": "postgres://u:hunter2@h/a"], "DATABASE_URL and MILLRACE_DATABASES are both set"),
        (["MILLRACE_DIRECT_URL": "postgres://u:hunter2@h/a"], "NAME.direct=postgres://"),
        (["MILLRACE_WAKER": "/run/waker.sock"], "{database}"),
        (["MILLRACE_ROUTES": "acme=ap"], "MILLRACE_ROUTES sends 'acme' to ap"),
    ])
    func `what is for one database and for several is refused, without a secret`(more: [String: String], says: String) {
        let problems = Self.load(more.merging(["MILLRACE_DATABASES": Self.both]) { $1 }).problems
        #expect(problems.count == 1 && problems[0].contains(says), "\(problems)")
        #expect(!problems.joined().contains("hunter2"))
    }

    @Test func `the settings of one of them lead to its own places`() {
        let settings = Self.load([
            "MILLRACE_DATABASES": Self.both + ",eu.direct=postgres://d/a", "MILLRACE_PUBLIC_URL": "https://x.example/",
            "MILLRACE_WAKER": "/run/{database}.sock",
        ])
        #expect(settings.problems == [])
        let eu = settings.chosen(settings.databases[0])
        #expect(eu.database == .text("postgres://u:hunter2@h1/a"))
        #expect(eu.directURL == "postgres://d/a")
        #expect(eu.text(.publicURL) == "https://x.example/eu")
        #expect(eu.text(.waker) == "/run/eu.sock")
        #expect(eu.databases.isEmpty)
        #expect(settings.chosen(settings.databases[1]).directURL == nil)
    }

    @Test func `a command on one database asks which, and config shows no secret`() async {
        let environment = ["MILLRACE_DATABASES": Self.both]
        let (code, capture) = await Self.run(["jobs", "list"], environment)
        #expect(code == .misused && capture.errors.contains("--database NAME, one of eu and us"), "\(capture.errors)")
        let (other, said) = await Self.run(["jobs", "list", "--database", "ap"], environment)
        #expect(other == .misused && said.errors.contains("there is no database 'ap'"), "\(said.errors)")
        let (_, config) = await Self.run(["config", "--json"], environment)
        #expect(config.output.contains("eu=postgres://u:***@h1/a, us=postgres://u:***@h2/b"))
        #expect(!config.output.contains("hunter2"))
    }

    @Test func `one status shows all, and its exit code is the worst`() async throws {
        try await withDatabase { eu in
            let environment = ["MILLRACE_DATABASES": "eu=\(eu.url),us=postgres://127.0.0.1:1/x?connect_timeout=2"]
            let (code, capture) = await Self.run(["status", "--json"], environment)
            #expect(code == .unreachable)
            let json = try JSONValue.read(Array(capture.output.utf8))
            #expect(json["verdict"]?.text == "critical")
            guard case .array(let databases)? = json["databases"] else {
                Issue.record("\(capture.output)")
                return
            }
            #expect(databases.map { $0["database"]?.text } == ["eu", "us"])
            #expect(databases[0]["status"]?["verdict"]?.text == "ok" && databases[0]["error"] == .null)
            #expect(databases[1]["status"] == .null && databases[1]["error"]?["message"]?.text != nil)
            let (_, brief) = await Self.run(["status", "--quiet"], environment)
            #expect(
                brief.output.hasPrefix("eu  OK  nothing needs attention\nus  UNKNOWN  the database cannot be reached"))
            let (one, alone) = await Self.run(["status", "--database", "eu", "--json"], environment)
            #expect(one == .done && alone.output.contains("\"queues\""))
        }
    }

    @Test func `a tenant's job goes to its database, and a job without one asks`() async throws {
        try await withDatabase { eu in
            try await withDatabase { us in
                let environment = [
                    "MILLRACE_DATABASES": "eu=\(eu.url),us=\(us.url)", "MILLRACE_ROUTES": "beta=us",
                ]
                for tenant in ["acme", "beta"] {
                    let (code, said) = await Self.run(["enqueue", "work", "--tenant", tenant], environment)
                    #expect(code == .done, "\(said.errors)")
                }
                let tenants = "select string_agg(tenant, ',') from millrace.jobs"
                let (inEurope, inAmerica) = (try await eu.connect(), try await us.connect())
                #expect(try await inEurope.value(tenants) == "acme")
                #expect(try await inAmerica.value(tenants) == "beta")
                let (code, said) = await Self.run(["enqueue", "work"], environment)
                #expect(code == .misused && said.errors.contains("give --tenant"), "\(said.errors)")
            }
        }
    }

    @Test func `a tenant moves, is held and put back, and is listed`() async throws {
        try await withDatabase { eu in
            try await withDatabase { us in
                let environment = ["MILLRACE_DATABASES": "eu=\(eu.url),us=\(us.url)"]
                let here = try await eu.connect()
                try await here.run("select millrace.enqueue('work', '{}', tenant => 'acme') from generate_series(1, 7)")
                let ends = ["acme", "--from", "eu", "--to", "us"]
                let (code, held) = await Self.run(["move", "tenant"] + ends + ["--hold", "--batch", "3"], environment)
                #expect(code == .done && held.output.contains("7 jobs taken to us"), "\(held.output)\(held.errors)")
                let (_, listed) = await Self.run(["move", "list", "--json"], environment)
                #expect(listed.output.contains("\"taking\""), "\(listed.output)")
                let (back, undone) = await Self.run(["move", "undo"] + ends, environment)
                #expect(back == .done && undone.output.contains("7 jobs put back in eu"), "\(undone.errors)")
                let (done, moved) = await Self.run(["move", "tenant"] + ends + ["--json"], environment)
                #expect(done == .done, "\(moved.errors)")
                let json = try JSONValue.read(Array(moved.output.utf8))
                #expect(json["state"]?.text == "done")
                let target = try await us.connect()
                #expect(try await target.int("select count(*) from millrace.jobs where tenant = 'acme'") == 7)
                #expect(try await here.int("select count(*) from millrace.jobs") == 0)
                let (late, refused) = await Self.run(["move", "undo"] + ends, environment)
                #expect(late == .conflict && refused.errors.contains("is not on its way"), "\(refused.errors)")
                let (same, sentence) = await Self.run(
                    ["move", "tenant", "acme", "--from", "eu", "--to", "eu"], environment)
                #expect(same == .misused && sentence.errors.contains("the same database"))
            }
        }
    }
}
