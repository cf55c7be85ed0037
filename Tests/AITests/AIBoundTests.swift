import Fakes
import Postgres
import TestSupport
import Testing

@testable import AI

/// Who pays for a question, how much a person may cause in a day, and what a provider cannot change of that.
@Suite struct AIBoundTests {
    private let good = goodAnswers["sentiment"] ?? ""

    private static func put(_ limits: String) -> String {
        #"millrace.ai_purpose_put('mood', 'You judge.', 'How is: {{text}}?', '{"text": {"type": "text", "required": true}}', '{"type": "object", "required": ["mood"], "properties": {"mood": {"type": "string"}}}', limits => '\#(limits)')"#
    }

    /// What the next statements do, as somebody who is signed in.
    private func signIn(_ person: String, _ tenant: String = "shop", on connection: Connection) async throws {
        try await connection.run(
            "select set_config('request.jwt.claims', '{\"sub\": \"\(person)\", \"tenant\": \"\(tenant)\"}', false)")
    }

    private func signOut(_ connection: Connection) async throws {
        try await connection.run("select set_config('request.jwt.claims', '', false)")
    }

    @Test(arguments: [false, true])
    func `a person uses no more tokens in a day than the purpose allows, however many questions run at once`(
        batches: Bool
    ) async throws {
        try await withAI { _ in
            .answer(#"{"mood": "fine"}"#)
        } _: { bench in
            if batches { try await bench.configureBatches(false) } else { try await bench.configure() }
            let most = 3000
            try await bench.connection.run("select \(Self.put(#"{"max_tokens": 200, "client_tokens": \#(most)}"#))")
            try await signIn("anna", on: bench.connection)
            for n in 0..<60 {
                try await bench.ask(
                    "mood", #"{"text": "day \#(n)"}"#, batches ? #"null, '{"may_wait": true}'"# : "null, '{}'")
            }
            try await signOut(bench.connection)
            if batches { try await bench.gather() }
            try await bench.withWorker {
                try await eventually("all have ended") {
                    if batches { try await bench.gather() }
                    return try await bench.count("ended_at is not null") == 60
                }
                if batches { try await bench.settled() }
            }
            let told = bench.fake.told
            let used = try await bench.connection.int(
                "select n from millrace.day_count where what = 'ai:mood' and who = millrace.keyed_hash('person', 'anna')"
            )
            #expect(told.tokensIn + told.tokensOut <= most && used == told.tokensIn + told.tokensOut)
            #expect(try await bench.count("status = 'answered'") == told.calls && told.calls > 2)
            #expect(try await bench.count("status = 'refused' and reason = 'quota'") == 60 - told.calls)
            // Another one of the same tenant has its own, and so has a back end.
            try await bench.connection.run(
                "update millrace.day_count set n = \(most) where what = 'ai:mood'")
            let question = #"select millrace.ai_ask('mood', '{"text": "more"}', 'shop')"#
            try await signIn("anna", on: bench.connection)
            let refusal = try await bench.connection.refusal(of: question)
            #expect(refusal?.sqlState == "53400" && refusal?.detail?.contains("\"actor\"") == true)
            try await signIn("ben", on: bench.connection)
            #expect(try await bench.connection.refusal(of: question) == nil)
            try await signOut(bench.connection)
            #expect(try await bench.connection.refusal(of: question) == nil)
        }
    }

    @Test
    func `a purpose says how much a person may use, or is refused; one that was put before has a bound all the same`()
        async throws
    {
        try await withAI { bench in
            try await bench.configure()
            let db = bench.connection
            let refusal = try await db.refusal(of: "select \(Self.put(#"{"max_tokens": 200}"#))")
            #expect(refusal?.sqlState == "22023" && refusal?.message == "limits.client_tokens is missing")
            for strange in ["-1", "1.5", "1000000001", "\"many\""] {
                #expect(
                    try await db.refusal(of: "select \(Self.put("{\"client_tokens\": \(strange)}"))")?.sqlState
                        == "22023",
                    "\(strange)")
            }
            #expect(try await db.int(Self.put(#"{"client_tokens": 0}"#)) == 1)
            let question = #"select millrace.ai_ask('mood', '{"text": "x"}', 'shop')"#
            try await signIn("anna", on: db)
            #expect(try await db.refusal(of: question)?.sqlState == "42501")
            try await signOut(db)
            #expect(try await db.refusal(of: question) == nil)
            // As a release before left it. The same again is nothing new; another has to say it.
            try await db.run("update millrace.ai_purpose set limits = '{}'")
            #expect(try await db.int(Self.put("{}")) == 1)
            #expect(try await db.refusal(of: "select \(Self.put(#"{"max_tokens": 99}"#))")?.sqlState == "22023")
            #expect(try await AIAdmin.troubles(on: db, deadline: .ample).unbounded == ["mood"])
            try await signIn("anna", on: db)
            #expect(try await db.refusal(of: question) == nil)
            #expect(
                try await db.int("select person_most from millrace.ai_question order by seq desc limit 1") == 500_000)
            #expect(
                try await db.column("select name from millrace.ai_purposes() where built_in and client_tokens > 0")
                    .count == 6)
        }
    }

    @Test
    func
        `what rooms ask in a person's name counts for the person, and a family called like a tenant uses nothing of it`()
        async throws
    {
        try await withAI { _ in
            .answer(goodAnswers["flash_card"] ?? "")
        } _: { bench in
            try await bench.configure("smith")
            let db = bench.connection
            try await db.run(
                """
                select millrace.quota_set('smith', 'ai_tokens', 5000), millrace.family_create('smith', 'UTC'), millrace.family_join('smith', 'eve', 'parent'),
                    millrace.ai_switch('family', 'smith', true, actor => 'eve'), millrace.hobby_save('eve', 'Chess', 'Knights jump', actor => 'eve')
                """)
            try await bench.withWorker { try await bench.ended(1) }
            let told = bench.fake.told.tokensIn + bench.fake.told.tokensOut
            #expect(try await bench.used("ai_tokens", tenant: "smith") == 0)
            #expect(try await bench.used("ai_tokens", tenant: "family:smith") == told && told > 0)
            #expect(try await bench.used("ai_tokens:flash_card", tenant: "family:smith") == told)
            #expect(try await db.int("select n from millrace.day_count where what = 'ai:flash_card'") == told)
            // Above the person's bound a new fact is saved all the same, without a question.
            try await db.run(
                """
                update millrace.day_count set n = 50000 where what = 'ai:flash_card';
                select millrace.hobby_save('eve', 'Go', 'Stones stay', actor => 'eve')
                """)
            #expect(try await bench.count("true") == 1)
            #expect(try await db.int("select count(*) from millrace.card") == 2)
        }
    }

    static let figures = [(-5000, -5000), (-1, 20), (20, -1), (0, 0), (Int.max, 5), (5, Int.max), (Int.min, Int.min)]

    @Test(arguments: [false, true], [false, true])
    func `figures of a provider that cannot be true give nothing back: the call costs what was reserved`(
        anthropic: Bool, batches: Bool
    ) async throws {
        let good = good
        try await withAI { asked in
            let figures = Self.figures[
                (Int(asked.prompt.split(separator: "figure ").last?.prefix { $0.isNumber } ?? "") ?? 0)]
            return .answerBilled(good, tokensIn: figures.0, tokensOut: figures.1)
        } _: { bench in
            if batches { try await bench.configureBatches(anthropic) } else { try await bench.configure() }
            for n in Self.figures.indices {
                try await bench.ask(
                    "sentiment", #"{"text": "figure \#(n)"}"#, batches ? #"null, '{"may_wait": true}'"# : "null, '{}'")
            }
            if batches { try await bench.gather() }
            try await bench.withWorker(onlyAnthropic: anthropic) {
                try await bench.ended(Self.figures.count)
                if batches { try await bench.settled() }
            }
            #expect(try await bench.count("status = 'answered'") == Self.figures.count)
            let reserved = try await bench.connection.int("select sum(reserved) from millrace.ai_call")
            #expect(try await bench.used() == reserved && reserved > 0)
            #expect(try await bench.used("ai_tokens:sentiment") == reserved)
            #expect(
                try await bench.connection.int("select count(*) from millrace.ai_call where tokens_in is not null") == 0
            )
        }
    }

    @Test func `what was answered for one tenant is not told to the same person in another`() async throws {
        try await withAI { bench in
            try await bench.configure()
            try await bench.configure("mill")
            let id = try await bench.ask("sentiment", #"{"text": "a secret of the shop"}"#, "'anna'")
            try await bench.withWorker { try await bench.ended(1) }
            let role = "\(bench.database.name)_app"
            try await bench.connection.run(
                """
                create role \(role) nologin; grant usage on schema millrace to \(role); select millrace.grant_backend('\(role)');
                grant execute on function millrace.ai_answer(uuid, text, millrace.caller_name), millrace.ai_own(uuid, int, text, millrace.caller_name) to \(role);
                """)
            try await bench.connection.run("set role \(role)")
            for (tenant, count) in [("shop", 1), ("mill", 0)] {
                try await signIn("anna", tenant, on: bench.connection)
                #expect(
                    try await bench.connection.refusal(of: "select * from millrace.ai_answer('\(id)')")?.sqlState
                        == (count == 1 ? nil : "P0002"), "\(tenant)")
                #expect(try await bench.connection.int("select count(*) from millrace.ai_own()") == count, "\(tenant)")
            }
            try await signOut(bench.connection)
            // The app's server sees what it asked, of whatever tenant.
            #expect(
                try await bench.connection.refusal(of: "select * from millrace.ai_answer('\(id)', 'anna')") == nil)
            try await bench.connection.run("reset role; drop owned by \(role); drop role \(role)")
        }
    }
}
