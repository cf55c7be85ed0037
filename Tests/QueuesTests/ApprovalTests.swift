import Postgres
import TestSupport
import Testing

/// Questions to people: who is told, when, and that nobody is told or may answer who should not.
@Suite struct ApprovalTests {
    /// A job that waits for an answer.
    private struct Question {
        let connection: Connection
        let job: Int
        let id: String

        init(_ connection: Connection, _ options: String = "") async throws {
            self.connection = connection
            job = try await connection.claimedJob()
            let given = #"{"request": {"amount": 7}\#(options.isEmpty ? "" : ", \(options)")}"#
            #expect(try await connection.value("millrace.wait('1-9-\(job)', 'refund', 'approval', '\(given)')") == nil)
            id = try await connection.value("select id from millrace.approval where job = \(job)") ?? ""
        }

        func advance(_ interval: String) async throws {
            try await connection.run("select millrace.test_clock_advance('\(interval)')")
        }

        func remind() async throws -> Int { try await connection.int("select millrace.approvals_remind()") }

        /// Who was told what, in that order.
        func told() async throws -> [String] {
            try await connection.column(
                "select person || ' ' || kind from millrace.notice where parent is null order by created_at, person")
        }

        func link(_ person: String) async throws -> String {
            try await connection.value("select millrace.approval_link('\(id)', '\(person)')") ?? ""
        }
    }

    private static let plan =
        #""notify": ["ada", "boss@example.com"], "remind_seconds": 86400, "escalate_seconds": 129600, "escalate_to": ["eve"]"#

    @Test(.enabled(if: Template.hasRooms))
    func `those who are asked are told once, reminded when that is due, and others are asked then`() async throws {
        try await withConnection(.movableClock) { connection in
            let one = try await Question(connection, Self.plan)
            let first = ["ada approval.asked", "boss@example.com approval.asked"]
            #expect(try await one.told() == first)
            // A run that comes to its wait again asks nobody again.
            _ = try await connection.value("millrace.wait('1-9-\(one.job)', 'refund', 'approval', '{}')")
            #expect(try await one.remind() == 0)
            try await one.advance("25 hours")
            #expect(try await one.remind() == 1)
            #expect(try await one.remind() == 0)
            let reminded = first + ["ada approval.reminder", "boss@example.com approval.reminder"]
            #expect(try await one.told() == reminded)
            try await one.advance("12 hours")
            #expect(try await one.remind() == 1)
            #expect(try await one.remind() == 0)
            #expect(try await one.told() == reminded + ["eve approval.escalated"])
            // Several that were missed are one, and those who were asked last hear it, too.
            try await one.advance("5 days")
            #expect(try await one.remind() == 1)
            #expect(
                try await one.told().suffix(3) == ["ada", "boss@example.com", "eve"].map { "\($0) approval.reminder" })
            #expect(
                try await connection.records(
                    "select reminded, jsonb_path_query_array(people, '$[*].how'), escalate_at, escalated_at is not null from millrace.approval_list()"
                ) == [#"(2,"[""asked"", ""asked"", ""escalated""]",,t)"#])
            #expect(
                try await connection.column("select action from millrace.audit order by id") == [
                    "approval.ask", "approval.remind", "approval.escalate", "approval.remind",
                ])
            #expect(
                try await connection.int("select count(*) from millrace.audit where detail::text like '%boss%'") == 0)
            let why = try await connection.value("select millrace.why(\(one.job)) ->> 'sentence'") ?? ""
            #expect(
                why.contains("asked: ada, *@example.com, eve; reminded 2 times; the next reminder is due"), "\(why)")
            // Nobody hears of it for ever.
            for _ in 0..<40 {
                try await one.advance("25 hours")
                _ = try await one.remind()
            }
            #expect(try await connection.int("select reminded from millrace.approval") == 30)
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `a person is told by its own channels, in a notice with its link; an address gets a mail`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.notice_preferences('eve@example.com', 'Europe/Berlin', '00:00', '00:00', '{"mail": "eve@home.example"}', 'de')
                """)
            let one = try await Question(
                connection, #""notify": ["boss@example.com", "eve@example.com", "zed"], "seconds": 3600"#)
            #expect(try await connection.int("select count(*) from millrace.notice_take(false, 10, 1, 30)") == 2)
            #expect(
                try await connection.column(
                    "select person || ' ' || coalesce(channel || ' ' || address, '-') || ' ' || status from millrace.notice order by person"
                ) == [
                    "boss@example.com mail boss@example.com attempting",
                    "eve@example.com mail eve@home.example attempting",
                    "zed - suppressed",
                ])
            #expect(
                try await connection.int(
                    """
                    select count(*) from millrace.notice n join millrace.approval_person p on p.person = n.person
                     where n.data ->> 'ref' = p.ref::text and n.data ->> 'approval' = '\(one.id)' and n.data ->> 'due' like '%(%)' and n.expires_at is not null
                    """) == 3)
            #expect(
                try await connection.value("select people -> 2 ->> 'notice' from millrace.approval_list()")
                    == "suppressed")
        }
    }

    @Test(.enabled(if: Template.hasRooms), arguments: ["answered", "late", "cancelled"])
    func `nothing is sent after an answer, a timeout or a cancellation`(how: String) async throws {
        try await withConnection(.movableClock) { connection in
            let one = try await Question(connection, Self.plan + #", "seconds": 172800"#)
            try await one.advance("25 hours")
            #expect(try await one.remind() == 1)
            switch how {
            case "answered": #expect(try await connection.bool("select millrace.approval_answer('\(one.id)', true)"))
            case "cancelled": #expect(try await connection.bool("select millrace.cancel(\(one.job))"))
            default: try await one.advance("24 hours")
            }
            try await one.advance("12 hours")
            _ = try await one.remind()
            #expect(try await one.told().count == 4)
            #expect(try await connection.int("select count(*) from millrace.approval where next_at is not null") == 0)
            // What was about to be sent is not.
            #expect(try await connection.int("select count(*) from millrace.notice_take(false, 10, 1, 30)") == 0)
            let ends = try await connection.column("select distinct status from millrace.notice")
            #expect(ends == [how == "late" ? "expired" : "suppressed"])
            #expect(
                try await connection.refusal(of: "select millrace.approval_link('\(one.id)', 'zed')")?.sqlState
                    == "55000")
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `while its job runs again nobody is reminded, and afterwards they are`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            let one = try await Question(connection, Self.plan)
            try await one.advance("25 hours")
            #expect(try await connection.bool("select millrace.retry(\(one.job))"))
            #expect(try await one.remind() == 1)
            #expect(try await one.told().count == 2)
            try await connection.claim(number: 16)
            _ = try await connection.value("millrace.wait('1-17-\(one.job)', 'refund', 'approval', '{}')")
            try await one.advance("2 minutes")
            #expect(try await one.remind() == 1)
            #expect(try await one.told().count == 4)
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `two workers that look at once remind once, and neither waits`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let (first, second) = (try await database.connect(), try await database.connect())
            let one = try await Question(first, Self.plan)
            try await one.advance("25 hours")
            try await first.run("begin")
            #expect(try await one.remind() == 1)
            #expect(try await second.int("select millrace.approvals_remind()") == 0)
            try await first.run("rollback")
            #expect(try await second.int("select millrace.approvals_remind()") == 1)
            #expect(try await one.told().count == 4)
            for connection in [first, second] { await connection.close() }
        }
    }

    @Test func `a link is for one person and one question, and names who has answered`() async throws {
        try await withConnection { connection in
            let one = try await Question(connection, #""notify": ["ada"]"#)
            let (ada, bob) = (try await one.link("ada"), try await one.link("bob"))
            #expect(ada != bob)
            #expect(try await one.link("bob") == bob)
            let other =
                try await connection.value("select millrace.approval_ask(\(one.job), 'more', '{}', null, 'x', now())")
                ?? ""
            #expect(try await connection.value("select millrace.approval_page('\(other)', '\(ada)')") == nil)
            for (id, ref) in [(other, ada), (one.id, other), (ada, one.id)] {
                let answer = "select millrace.approval_answer_by_link('\(id)', '\(ref)', true)"
                #expect(try await connection.refusal(of: answer)?.sqlState == "P0002")
            }
            #expect(
                try await connection.bool(
                    "select millrace.approval_answer_by_link('\(one.id)', '\(bob)', false, 'no money')"))
            #expect(try await !connection.bool("select millrace.approval_answer_by_link('\(one.id)', '\(ada)', false)"))
            #expect(
                try await connection.refusal(
                    of: "select millrace.approval_answer_by_link('\(one.id)', '\(ada)', true)")?
                    .sqlState == "55000")
            #expect(
                try await connection.records(
                    "select answered_by, approved, comment from millrace.approval where answered_by is not null")
                    == [#"(bob,f,"no money")"#])
            #expect(
                try await connection.value(
                    "select payload ->> 'by' from millrace.signal where name = 'millrace.approval'")
                    == "bob")
        }
    }

    @Test func `strangers make no links, answer nothing, and forge no answer by a signal`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                """
                select millrace.grant_enqueue('\(roles.client)'), millrace.grant_enqueue('\(roles.neighbour)');
                grant execute on function millrace.approval_link(uuid, text, millrace.caller_name) to \(roles.client), \(roles.neighbour)
                """)
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let worker = try await database.connect(as: roles.worker)
            let job = try await client.int("select millrace.enqueue('test')")
            let id =
                try await owner.value(
                    "select millrace.approval_ask(\(job), 'refund', '{}', null, '\(roles.client)', now())") ?? ""
            // Who was given the right makes links for what is its own.
            let ref = try await client.value("select millrace.approval_link('\(id)', 'ada')") ?? ""
            #expect(
                try await neighbour.refusal(of: "select millrace.approval_link('\(id)', 'ada')")?.sqlState == "P0002")
            for door in [
                "approval_page('\(id)', '\(ref)')", "approval_answer_by_link('\(id)', '\(ref)', true)",
                "approvals_remind()",
                "approval_answer('\(id)', true)",
            ] + (Template.hasRooms ? ["approval_shown('\(id)')", "approvals_shown()"] : []) {
                #expect(try await client.refusal(of: "select millrace.\(door)")?.sqlState == "42501", "\(door)")
            }
            for call in ["'millrace.approval', '\(id)', '{\"approved\": true}'", "'millrace.else'"] {
                #expect(try await client.refusal(of: "select millrace.signal(\(call))")?.sqlState == "22023", "\(call)")
            }
            // A worker serves the page; the person who answers is in the audit beside its role.
            #expect(try await worker.bool("select millrace.approval_answer_by_link('\(id)', '\(ref)', true)"))
            #expect(
                try await owner.records(
                    "select who, said_by, action from millrace.audit where action like 'approval.a%' order by id") == [
                        "(\(roles.client),,approval.ask)", "(\(roles.worker),ada,approval.answer)",
                    ])
            for connection in [client, neighbour, worker] { await connection.close() }
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `what is wrong with the people of a question is said, and nobody is asked`() async throws {
        try await withConnection { connection in
            let job = try await connection.claimedJob()
            for options in [
                #""notify": "ada""#, #""notify": [7]"#, #""notify": [""]"#, #""notify": ["a\u0007"]"#,
                #""notify": [\#((0..<21).map { "\"p\($0)\"" }.joined(separator: ","))]"#, #""remind_seconds": 60"#,
                #""notify": ["ada"], "remind_seconds": 59"#, #""notify": ["ada"], "remind_seconds": "60""#,
                #""escalate_seconds": 60"#, #""escalate_to": ["eve"]"#, #""escalate_to": [], "escalate_seconds": 60"#,
            ] {
                let call = "select millrace.wait('1-9-\(job)', 'refund', 'approval', '{\(options)}')"
                #expect(try await connection.refusal(of: call)?.sqlState == "22023", "\(options)")
            }
            #expect(try await connection.int("select count(*) from millrace.approval") == 0)
            #expect(try await connection.int("select count(*) from millrace.notice") == 0)
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `with its person, its job or its steps a link goes`() async throws {
        try await withConnection { connection in
            let one = try await Question(
                connection, #""notify": ["ada", "bob"], "escalate_seconds": 60, "escalate_to": ["ada", "eve"]"#)
            let erased = try await connection.value("millrace.person_erase('ada', 'ada') ->> 'approvals'")
            #expect(erased == "1")
            #expect(try await connection.value("select escalate_to from millrace.approval") == "{eve}")
            #expect(try await connection.int("select count(*) from millrace.notice where person = 'ada'") == 0)
            #expect(try await connection.column("select person from millrace.approval_person") == ["bob"])
            #expect(try await connection.bool("select millrace.retry_fresh(\(one.job))"))
            #expect(try await connection.int("select count(*) from millrace.approval_person") == 0)
            try await connection.run(
                "insert into millrace.approval_person (ref, approval, job, person, how, at) values (gen_random_uuid(), gen_random_uuid(), 999999, 'x', 1, now())"
            )
            #expect(try await connection.int("select millrace.trace_sweep()") >= 1)
            #expect(try await connection.int("select count(*) from millrace.approval_person") == 0)
        }
    }
}
