import Postgres
import TestSupport
import Testing

/// A caller that may not see a thing does not block it either: the statement that locks also checks the right.
@Suite(.enabled(if: Template.hasRooms)) struct LockRightsTests {
    @Test func `what a caller may not see it does not lock`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                """
                select millrace.grant_enqueue('\(roles.client)'), millrace.grant_backend('\(roles.client)'),
                       millrace.grant_backend('\(roles.neighbour)')
                """)
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let document =
                try await client.value("millrace.document_register('https://a.example/x.pdf', actor => 'ada')") ?? ""
            let mail = try await client.value("millrace.mail_send(array['a@b.example'], 's', 't')") ?? ""
            try await owner.run(
                """
                select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'mum', 'parent'),
                       millrace.check_in_alarm('ada', actor => 'ada')
                """)
            let alarm = try await owner.value("select id from millrace.alarm") ?? ""
            for (claims, call, row) in [
                (
                    "", "document_delete(array['\(document)'::uuid], actor => 'eve')",
                    "document where id = '\(document)'"
                ),
                ("", "document_retry('\(document)', actor => 'eve')", "document where id = '\(document)'"),
                ("", "mail_cancel('\(mail)')", "mail where id = '\(mail)'"),
                ("", "mail_reschedule('\(mail)', now())", "mail where id = '\(mail)'"),
                ("eve", "family_zone('f', 'Asia/Tokyo')", "family where family = 'f'"),
                ("eve", "family_leave('f', 'mum')", "family where family = 'f'"),
                ("eve", "family_leave('f', 'eve')", "family where family = 'f'"),
                ("eve", "family_join('f', 'eve', 'teen')", "family where family = 'f'"),
                ("eve", "family_join('f', 'bob', 'teen')", "family where family = 'f'"),
                ("eve", "quest_undo('f', 'eve')", "family where family = 'f'"),
                ("eve", "quest_complete('f', 'eve')", "family where family = 'f'"),
                ("eve", "check_in_respond('\(alarm)', 'eve', 'safe')", "alarm where id = '\(alarm)'"),
            ] {
                try await neighbour.run("begin")
                if !claims.isEmpty {
                    try await neighbour.run(
                        "select set_config('request.jwt.claims', '{\"sub\": \"\(claims)\"}', true)")
                }
                _ = try await neighbour.refusal(of: "select millrace.\(call)")  // or an empty answer; its locks stay
                let held = try await owner.refusal(of: "select from millrace.\(row) for update nowait")
                #expect(held == nil, "\(call): \(held?.message ?? "")")
                try await neighbour.run("rollback")
            }
            // A caller that may see it does lock it, so this test can fail.
            try await client.run("begin")
            try await client.run("select millrace.mail_reschedule('\(mail)', now() + interval '1 hour')")
            #expect(
                try await owner.refusal(of: "select from millrace.mail where id = '\(mail)' for update nowait")?
                    .sqlState == "55P03")
            try await client.run("rollback")
            for connection in [client, neighbour] { await connection.close() }
        }
    }
}
