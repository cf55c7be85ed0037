import Postgres
import TestSupport
import Testing

@Suite struct RegisteredQueueTests {
    @Test func `a kind that is registered for another queue takes its grants along, and no others`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                """
                select millrace.register_kinds('{mail,other}', '{post,null}');
                select millrace.grant_enqueue('\(roles.client)', 'mail', 'post'), millrace.grant_enqueue('\(roles.client)', 'other', 'slow'),
                       millrace.grant_enqueue('\(roles.neighbour)', '*', 'post');
                """)
            let client = try await database.connect(as: roles.client)
            _ = try await client.enqueue("'mail'")
            try await owner.run("select millrace.register_kinds('{mail,other}', '{letters,letters}')")
            let moved = try await client.enqueue("'mail'")
            #expect(try await owner.value("select queue from millrace.job(\(moved))") == "letters")
            _ = try await client.enqueue("'mail', queue => 'post'")
            // A grant for a queue that was not the kind's own stays with that queue, and one for all kinds of a queue with that.
            #expect(try await client.refusal(of: "select millrace.enqueue('other')")?.sqlState == "42501")
            #expect(
                try await owner.column("select kind || ' ' || queue from millrace.client_grant order by 1")
                    == ["* post", "mail letters", "mail post", "other slow"])
        }
    }
}
