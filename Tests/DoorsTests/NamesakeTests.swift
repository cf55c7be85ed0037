import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A person and a tenant may have one name. What is the one's is not the other's, at every door.
@Suite struct NamesakeTests {
    /// Lists that a signed-in person may read, without naming an object.
    private static let lists = [
        "own_jobs(page => 500)", "feed_mine(page => 500)", "sync_pull()", "document_list(page => 500)",
        "lesson_list(page => 500)", "ai_own(page => 500)",
        "chat_threads()", "document_search('x')", "document_feed(tenant => null, lesson_id => null)",
        "subscription_mine()",
    ]

    @Test func `a person and a tenant of one name see nothing of each other, at any door`() async throws {
        let table = try DoorTests.table.get()
        try await DoorWorld.with { world in
            // bob is a person without a tenant, and acts; then alice acts in a tenant that is called bob.
            try await Self.expect(
                #"{"sub": "alice", "tenant": "bob"}"#, toSeeNothingOf: "bob", by: table, in: world)
            // Then what is bob's by name is of a tenant that is called alice, and the person alice looks.
            let bob = try await world.caller("signed in")
            try await bob.connection.run(
                #"select set_config('request.jwt.claims', '{"sub": "bob", "tenant": "alice"}', false)"#)
            try await bob.connection.run("delete from public.made where role = 'signed in' and person = 'bob'")
            try await bob.connection.run(
                """
                insert into public.made select 'signed in', 'bob', 'job', millrace.enqueue('mine')::text;
                insert into public.made select 'signed in', 'bob', 'mail', millrace.mail_send(array['a@b.example'], 's', 't')::text;
                insert into public.made select 'signed in', 'bob', 'document', millrace.document_register('https://a.example/x')::text;
                insert into public.made select 'signed in', 'bob', 'lesson', 'of-tenant-alice' from millrace.lesson_put('of-tenant-alice')
                """)
            await bob.connection.close()
            try await Self.expect(#"{"sub": "alice"}"#, toSeeNothingOf: "bob", by: table, in: world)
        }
    }

    private static func expect(
        _ claims: String, toSeeNothingOf other: String, by table: DoorTable, in world: DoorWorld
    ) async throws {
        let caller = try await world.caller("signed in")
        try await caller.connection.run("select set_config('request.jwt.claims', '\(claims)', false)")
        var cells = 0
        for door in try await DoorTable.doors(on: world.owner) where door.rule.hasPrefix("tenant") {
            let expected = try #require(table.outcomes[door.rule]?["other's"]?["signed in"])
            let absent = try await caller.answer(door, object: .absent, in: world)
            let answer = try await caller.answer(door, object: .others, in: world)
            #expect(
                answer.isRefused || answer.isClosed || answer.text == absent.text,
                "\(door.name) with \(claims), expected \(expected): \(answer.text)")
            cells += 1
        }
        #expect(cells > 20)
        let theirs = try await world.owner.column(
            "select id from public.made where role = 'signed in' and person = '\(other)'")
        #expect(theirs.count >= 4)
        for list in lists {
            let found =
                try await caller.connection.value(
                    "select coalesce(string_agg(t::text, ';'), '') from millrace.\(list) t") ?? ""
            for id in theirs {
                #expect(!found.contains(Int(id) == nil ? id : "(\(id),mine"), "\(list) with \(claims) shows \(id)")
            }
        }
        #expect(
            try await caller.connection.refusal(of: "select millrace.enqueue('mine', tenant => '\(other)')") == nil
                || claims.contains("tenant") == false)
        await caller.connection.close()
    }

    @Test func `the erasure of a person takes nothing from a tenant of that name, nor a family's account`() async throws
    {
        try await DoorWorld.with { world in
            let job = try await world.owner.int("select millrace.enqueue('mine', '{\"n\": 1}', tenant => 'alice')")
            try await world.owner.run(
                """
                select millrace.quota_set('alice', 'pages', 10), millrace.quota_set('person:alice', 'pages', 10), millrace.quota_set('fam-a', 'ai_tokens', 10),
                       millrace.quota_set('family:fam-a', 'ai_tokens', 5);
                select millrace.cancel(\(job));
                select millrace.subscription_set('pro', person => 'alice'), millrace.subscription_set('pro', tenant => 'alice');
                select millrace.person_erase('alice', actor => 'alice')
                """)
            #expect(try await world.owner.value("select args ->> 'n' from millrace.job(\(job))") == "1")
            #expect(try await world.owner.value("select tenant from millrace.job(\(job))") == "alice")
            #expect(
                try await world.owner.column(
                    "select tenant || ' ' || name from millrace.quota where tenant ~ 'alice|fam-a' order by 1")
                    == ["alice pages", "fam-a ai_tokens", "family:fam-a ai_tokens"])
            #expect(
                try await world.owner.column("select account from millrace.subscription where account ~ 'alice'") == [
                    "alice"
                ])
        }
    }
}
