import Listeners
import Postgres
import TestSupport
import Testing

@testable import Console

/// What each role sees and may do; the database decides, whatever page or request it comes through.
@Suite(.timeLimit(.minutes(10))) struct ConsoleRoleTests {
    private func with(_ role: ConsoleRole, _ body: @Sendable (ConsoleWorld) async throws -> Void) async throws {
        try await ConsoleWorld.with({ $0.access.localRole = role }, body)
    }

    /// Of a visitor from this machine.
    private func token(_ world: ConsoleWorld, _ role: ConsoleRole) -> String {
        world.service.options.access.formToken(of: Visitor(name: "local", role: role))
    }

    @Test func `a viewer sees every page without a button, and is told plainly what is not for viewers`() async throws {
        try await with(.viewer) { world in
            for one in try await WalkTests.addresses(world) {
                let answer = try await world.get("/console\(one.address)")
                if one.path == "/documents/{id}/page" {
                    #expect(answer.status == 403)
                    #expect(answer.body.contains("a viewer may not see what documents contain"))
                    #expect(!answer.body.contains("Hello"))
                    continue
                }
                #expect(answer.status == 200, "\(one.address): \(answer.body.suffix(900))")
                #expect(!answer.body.contains("class=\"act"), "\(one.address) has a button")
                #expect(!answer.body.contains("permission denied"), "\(one.address)")
            }
            for file in ConsolePages.files {
                let path = file.path.replacing("{id}", with: Seed.document)
                let answer = try await world.get("/console\(path)?name=invoice&version=1")
                #expect([200, 403, 404].contains(answer.status), "\(path): \(answer.body)")
            }
        }
    }

    @Test func `a viewer's crafted requests for every action are refused and change nothing`() async throws {
        try await with(.viewer) { world in
            let before = try await world.connection.int("select count(*) from millrace.audit")
            for (action, form) in try await ActionSamples.all(world) {
                let answer = try await world.post(
                    "/console/act/\(action.name)", form.map { ($0, $1) } + [("form_token", token(world, .viewer))])
                #expect(answer.status == 403, "\(action.name): \(answer.status) \(answer.body.suffix(700))")
                #expect(answer.body.contains("your role may not do this"), "\(action.name)")
            }
            #expect(try await world.connection.int("select count(*) from millrace.audit") == before)
        }
    }

    @Test func `in SQL a viewer is refused each action, every table, and the other roles`() async throws {
        try await with(.viewer) { world in
            let viewer = try await world.database.connect(as: try #require(world.roles[.viewer]))
            for (action, form) in try await ActionSamples.all(world) {
                let error = try await failure {
                    _ = try await viewer.json(action.sql, try action.parameters(form))
                }
                #expect(error?.sqlState == "42501", "\(action.name): \(error.map { "\($0)" } ?? "done")")
            }
            // Each function that an operator or an admin may call and a viewer may not, called without arguments where it takes none.
            let acting = try await world.connection.column(
                """
                select p.oid::text from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace
                   and (has_function_privilege('\(world.roles[.operator] ?? "")', p.oid, 'execute') or has_function_privilege('\(world.roles[.admin] ?? "")', p.oid, 'execute'))
                   and p.proname ~ '^(cancel|retry|reschedule|pause|resume|job_delete|job_priority|jobs_do|limit_set|.*_(set|force|resolve|cancel|retry|enable|start|stop|undo|remove|rotate|erase|publish|use|step|run|pause|resume|suppress|unsuppress|keep|redeliver|send|add|put|take|grant|revoke|purge))$'
                """)
            #expect(acting.count > 60)
            for signature in acting {
                #expect(
                    try await !viewer.bool("select has_function_privilege(\(signature)::oid, 'execute')"),
                    "a viewer may call \(signature)")
            }
            let tables = try await viewer.column(
                """
                select c.relname from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p')
                   and (has_table_privilege(c.oid, 'select') or has_any_column_privilege(c.oid, 'select') or has_table_privilege(c.oid, 'insert') or has_table_privilege(c.oid, 'update') or has_table_privilege(c.oid, 'delete'))
                """)
            #expect(tables == [])
            for role in [ConsoleRole.operator, .admin] {
                let name = world.roles[role] ?? ""
                #expect(try await viewer.refusal(of: "set role \(name)")?.sqlState == "42501")
            }
            for view in ["jobs", "schedules", "mail_events", "notices", "documents", "events", "families"] {
                #expect(
                    try await viewer.refusal(of: "select * from millrace.\(view)")?.sqlState == "42501", "\(view)")
            }
            await viewer.close()
        }
    }

    @Test(arguments: ConsoleRole.allCases)
    func `secrets in arguments are redacted, and sealed arguments stay sealed`(role: ConsoleRole) async throws {
        try await with(role) { world in
            let report = try await world.job("running")
            let sealed = try #require(
                try await world.connection.value("select min(id) from millrace.job where args ? '$millrace'"))
            let pages = [
                "/jobs/\(report)", "/jobs/\(sealed)", "/jobs?state=running", "/schedule?name=nightly", "/schedules",
                "/jobs/\(try await world.job("dead"))/edit", "/schedule/edit?name=nightly",
                "/operations/new?state=dead&action=retry", "/approvals", "/approvals/\(Seed.approval)", "/mail",
                "/mail/\(Seed.mail)", "/documents/\(Seed.document)",
                "/audit", "/subscriptions", "/subscriptions/\(Seed.subscription)",
            ]
            var all = ""
            for page in pages { all += try await world.get("/console\(page)").body }
            #expect(all.contains("[redacted]") && all.contains("sealed"))
            for secret in ["4111111111111111", "hunter2", "ann@example.com", "The text", "hidden-person"] {
                #expect(!all.contains(secret), "\(secret) is shown to a \(role)")
            }
        }
    }

    @Test(arguments: ConsoleRole.allCases)
    func `what a person wrote with an alarm is for staff, on every page and in SQL`(role: ConsoleRole) async throws {
        try await with(role) { world in
            let note = "at the lake"
            let mayRead = role > .viewer
            let page = try await world.get("/console/alarms/\(try await world.alarm())").body
            #expect(page.contains("bob") && page.contains(note) == mayRead)
            for address in ["/checkins", "/notices", "/mail", "/audit", "/search?q=lake"] {
                #expect(try await !world.get("/console\(address)").body.contains(note), "\(address)")
            }
            let visitor = try await world.database.connect(as: try #require(world.roles[role]))
            for sql in ["millrace.alarms", "millrace.alarms_shown()", "millrace.alarms_shown(50)"] {
                let notes = try await visitor.column("select note from \(sql) where person like 'bob%'")
                #expect(notes.contains { $0.contains(note) } == mayRead && notes.count == 1, "\(sql): \(notes)")
            }
            #expect(
                try await !visitor.column("select h::text from millrace.alarm_history h").contains { $0.contains(note) }
            )
            await visitor.close()
        }
    }

    @Test func `an operator may do all but what is an admin's`() async throws {
        try await with(.operator) { world in
            let samples = try await ActionSamples.all(world)
            for (action, form) in samples {
                let answer = try await world.post(
                    "/console/act/\(action.name)", form.map { ($0, $1) } + [("form_token", token(world, .operator))])
                if action.role == .admin {
                    #expect(answer.status == 403, "\(action.name): \(answer.body.suffix(500))")
                } else {
                    #expect(
                        [303, 409].contains(answer.status),
                        "\(action.name): \(answer.status) \(answer.body.suffix(700))")
                }
            }
            let dead = try await world.connection.column("select id from millrace.jobs where state = 'dead'")
            for id in dead {
                #expect(try await !world.get("/console/jobs/\(id)").body.contains("Delete for good"))
            }
            #expect(try await !world.get("/console/jobs?state=dead").body.contains("<option>delete"))
            let bulk = try await world.post(
                "/console/act/operation.start",
                [
                    ("form_token", token(world, .operator)), ("action", "delete"), ("filter", #"{"state": "dead"}"#),
                    ("key", "d"),
                ])
            #expect(bulk.status == 403, "\(bulk.body.suffix(700))")
            #expect(try await world.connection.column("select id from millrace.jobs where state = 'dead'") == dead)
        }
    }

    @Test func `each action of the audit says who did it, in which role`() async throws {
        let key = Array("a key of thirty-two bytes for tests".utf8)
        let users = try ConsoleUsers(
            parsing: "ada:operator:scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0")
        try await ConsoleWorld.with({ $0.access = ConsoleAccess(key: key, users: users) }) { world in
            let cookie = try await world.cookie("ada", "correct horse battery")
            let page = try await world.get("/console/queue?name=reports", [("Cookie", cookie)])
            #expect(page.body.contains("<span class=\"who\">ada</span>") && page.body.contains("operator"))
            let token = try await world.formToken([("Cookie", cookie)])
            let answer = try await world.post(
                "/console/act/queue.pause", [("queue", "reports"), ("form_token", token)], [("Cookie", cookie)])
            #expect(answer.status == 303, "\(answer.body)")
            let row = try await world.connection.records(
                "select who, said_by, action, object from millrace.audit where said_by like 'console%'")
            #expect(row == ["(\(world.roles[.operator] ?? ""),\"console: ada\",queue.pause,reports)"])
        }
    }
}
