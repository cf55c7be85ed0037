import Clusters
import Foundation
import Listeners
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import Console

/// The console when something around it is missing.
@Suite(.timeLimit(.minutes(10))) struct BadDayTests {
    @Test func `without its database it says so, and comes back with it`() async throws {
        try await withCluster { cluster in
            let url = cluster.url()
            let connection = try await Connection.open(ConnectionOptions(location: url))
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            await connection.close()
            let database = TestDatabase(name: "postgres", url: url)
            let idle = try await TestCluster.office()
            try await ConsoleWorld.serve(database, idle, ConsoleWorld.Setup(), [:]) { world in
                #expect(try await world.get("/console/queues").status == 200)
                let reader = try EventReader(world)
                #expect(await reader.next()?.name == "look")
                try await cluster.stop(.immediate, deadline: .ample)
                for address in ["", "/queues", "/jobs", "/failures", "/storage"] {
                    let answer = try await world.get("/console\(address)")
                    #expect(answer.status == 503, "\(address): \(answer.status)")
                    #expect(answer.body.contains("The database cannot be used now"), "\(answer.body.suffix(800))")
                    #expect(answer.body.contains("<nav"), "one can go on from there")
                }
                #expect(await reader.next()?.name == "lost")
                let action = try await world.post(
                    "/console/act/queue.pause",
                    [
                        ("queue", "x"),
                        (
                            "form_token",
                            world.service.options.access.formToken(of: Visitor(name: "local", role: .admin))
                        ),
                    ])
                #expect(action.status == 503)
                _ = try await cluster.start(deadline: .ample)
                try await eventually("pages are there again") { try await world.get("/console/queues").status == 200 }
                while let event = await reader.next() {
                    if event.name == "look" { break }
                }
            }
            await idle.close()
        }
    }

    @Test func `without a schema, and with an old one, it names the command that helps`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            try await ConsoleWorld.serve(database, connection, ConsoleWorld.Setup(), [:]) { world in
                for page in try await Self.pages(world) {
                    let answer = try await world.get("/console\(page)")
                    #expect(
                        answer.status == 503 && answer.body.contains("run: millrace migrate"),
                        "\(page): \(answer.body.suffix(600))")
                }
            }
            await connection.close()
        }
        try await ConsoleWorld.with({ $0.roles = .none }) { world in
            // What a schema of an earlier version lacks.
            try await world.connection.run("drop function millrace.queue_page; drop function millrace.audit_list")
            for page in ["/queues", "/audit"] {
                let answer = try await world.get("/console\(page)")
                #expect(
                    answer.status == 503 && answer.body.contains("run: millrace migrate"), "\(answer.body.suffix(600))")
            }
        }
    }

    private static func pages(_ world: ConsoleWorld) async throws -> [String] {
        [
            "/queues", "/jobs", "/failures", "/schedules", "/workers", "/limits", "/mail", "/documents", "/checkins",
            "/audit", "/storage",
        ]
    }

    @Test func `without the role of a visitor nothing is shown, and the commands that make it are named`() async throws
    {
        try await ConsoleWorld.with({
            $0.access.localRole = .viewer
            $0.roles = .none
        }) { world in
            let answer = try await world.get("/console/queues")
            #expect(answer.status == 503, "\(answer.body)")
            for words in [
                "has no role console_viewer", "millrace migrate --print-roles | psql", "grant &quot;console_viewer",
            ] {
                #expect(answer.body.contains(words), "\(answer.body.suffix(900))")
            }
        }
    }

    @Test func `a role that is dropped or taken away while it runs is never replaced by a higher one`() async throws {
        try await ConsoleWorld.with({
            $0.access.localRole = .viewer
            $0.roles = .own
        }) { world in
            #expect(try await world.get("/console/queues").status == 200)
            let viewer = try #require(world.roles[.viewer])
            try await world.connection.run("drop owned by \(viewer); drop role \(viewer)")
            for _ in 0..<2 {
                let answer = try await world.get("/console/queues")
                #expect(answer.status == 503 && answer.body.contains("print-roles"), "\(answer.body.suffix(900))")
            }
            let office = try await TestCluster.office()
            try await office.run("create role \(viewer)")
            await office.close()
        }
    }

    @Test func `deep, long and strange contents are shown whole or cut, never as nothing`() async throws {
        try await ConsoleWorld.with { world in
            let deep = String(repeating: "[", count: 200) + String(repeating: "]", count: 200)
            let wide =
                "{" + (0..<500).map { "\"k\($0)\": \"\(String(repeating: "x", count: 20))\"" }.joined(separator: ", ")
                + "}"
            for args in [
                #"{"a": \#(deep)}"#, wide, #"{"n": 12345678901234567890123456789.5, "e": ""}"#,
                #"{"s": "‮\u202e💥\u0001"}"#, "[]", "7", "null",
            ] {
                let id = try await world.connection.value("select millrace.enqueue('image.resize', '\(args)')")
                guard let id else { continue }
                let answer = try await world.get("/console/jobs/\(id)")
                #expect(answer.status == 200, "\(args.prefix(40)): \(answer.status)")
                if args.contains("12345678901234567890123456789.5") {
                    #expect(answer.body.contains("12345678901234567890123456789.5"))
                }
            }
        }
    }

    @Test func `alone it takes samples and steps bulk actions, also beside a worker that was killed`() async throws {
        try await ConsoleWorld.with({ $0.keepsHouse = true }) { world in
            try await world.connection.run(
                "delete from millrace.sample_fresh; update millrace.beat set at = now() - interval '5 minutes'")
            try await eventually("the bulk action is done") {
                try await world.connection.bool(
                    "select not exists (select from millrace.operation where state = 'running')")
            }
            try await eventually("a sample is taken") {
                try await world.connection.bool("select exists (select from millrace.sample_fresh)")
            }
        }
    }

    // MARK: the program

    /// Beside the test bundle, where the build puts every product.
    private static let program: String = {
        var directory = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        for _ in 0..<6 {
            let candidate = directory.appending(path: "millrace")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate.path }
            directory.deleteLastPathComponent()
        }
        return ".build/debug/millrace"
    }()

    private func console(_ arguments: [String], url: String, input: String = "", _ more: [String: String] = [:])
        async throws -> Program.Outcome
    {
        // The program warns of variables that it does not know, and tests have some.
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MILLRACE_") }
        environment["DATABASE_URL"] = url.isEmpty ? nil : url
        for (name, value) in more { environment[name] = value }
        return try await Program.run(
            Self.program, ["console"] + arguments, input: Data(input.utf8), errors: true, environment: environment)
    }

    @Test func `what cannot start ends with a sentence and its own code`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let url = world.database.url
            let taken = try await console(["--listen", "127.0.0.1:\(world.port)"], url: url)
            #expect(
                taken.status == 1 && taken.text.contains("127.0.0.1:\(world.port) is taken by another process"),
                "\(taken.text)")
            let open = try await console(["--listen", "0.0.0.0:0"], url: url)
            #expect(open.status == 2 && open.text.contains("MILLRACE_CONSOLE_USERS_FILE"), "\(open.text)")
            let flag = try await console(["--nonsense"], url: url)
            #expect(flag.status == 2 && flag.text.contains("--nonsense"), "\(flag.text)")
            let role = try await console(["--console-role", "root"], url: url)
            #expect(role.status == 2 && role.text.contains("viewer"), "\(role.text)")
            let users = try await console(["--console-users", "ada:operator:plain"], url: url)
            #expect(
                users.status == 2 && users.text.contains("line 1") && !users.text.contains("plain"), "\(users.text)")
            let frames = try await console(["--console-frames", "*; script-src *"], url: url)
            #expect(frames.status == 2, "\(frames.text)")
            let nowhere = try await console([], url: "postgres://127.0.0.1:1/none")
            #expect(nowhere.status == 5, "\(nowhere.status) \(nowhere.text)")
            let secret = try await console(
                ["--listen", "127.0.0.1:0"], url: url, ["MILLRACE_CONSOLE_JWT_SECRET": "short"])
            #expect(secret.status == 2 && !secret.text.contains("short\n"), "\(secret.text)")
        }
        try await withDatabase(.empty) { database in
            let none = try await console(["--listen", "127.0.0.1:0"], url: database.url)
            #expect(none.status == 6 && none.text.contains("millrace migrate"), "\(none.status) \(none.text)")
        }
    }

    @Test func `the line of a new user signs that user in, and weak or odd ones are refused`() async throws {
        let made = try await console(
            ["--make-user", "ada", "--role", "operator"], url: "", input: "correct horse battery\n")
        #expect(made.status == 0, "\(made.text)")
        let users = try ConsoleUsers(parsing: made.lines.first { $0.hasPrefix("ada:") } ?? made.text)
        #expect(users.user(named: "ada", password: "correct horse battery")?.role == .operator)
        #expect(users.user(named: "ada", password: "correct horse") == nil)
        #expect(try await console(["--make-user", "ada"], url: "", input: "short").status == 2)
        #expect(try await console(["--make-user", "a:b"], url: "", input: "correct horse battery").status == 2)
        #expect(try await console(["--make-user", "a|b"], url: "", input: "correct horse battery").status == 2)
        #expect(try await console(["--make-user", "a\nb"], url: "", input: "correct horse battery").status == 2)
    }
}
