import Postgres
import TestSupport
import Testing

/// What a client role may do with mail and templates.
@Suite(.enabled(if: Template.hasRooms)) struct RoleMailTests {
    @Test func `a client has templates rendered where it may, and learns nothing of them elsewhere`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            let client = try await database.connect(as: roles.client)
            for template in ["welcome", "nosuch"] {
                let refusal = try await client.refusal(of: "select millrace.template_render('\(template)')")
                #expect(refusal?.sqlState == "42501" && refusal?.hint?.contains("grant_enqueue") == true)
            }
            try await owner.run("select millrace.grant_enqueue('\(roles.client)', 'template.render', 'default')")
            let render = #"millrace.template_render('welcome', '{"app_name": "A", "user_name": "B"}'"#
            let id = try await client.int("select \(render))")
            #expect(try await client.value("select kind from millrace.job(\(id))") == "template.render")
            #expect(
                try await client.refusal(of: "select \(render), queue => 'mail')")?.sqlState == "42501")
            #expect(try await client.refusal(of: "select millrace.template_render('nosuch')")?.sqlState == "P0002")
        }
    }

    @Test func `a client hands in mail where it may, and sees and cancels its own messages only`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let send = "select millrace.mail_send(array['a@b.example'], 's', 't')"
            #expect(try await client.refusal(of: send)?.sqlState == "42501")
            try await owner.run("select millrace.grant_enqueue('\(roles.client)', 'mail.send')")
            let id = try await client.value("millrace.mail_send(array['a@b.example'], 's', 't')") ?? ""
            #expect(try await client.value("select status from millrace.mail_message('\(id)')") == "queued")
            #expect(try await neighbour.value("select status from millrace.mail_message('\(id)')") == nil)
            #expect(try await neighbour.refusal(of: "select millrace.mail_cancel('\(id)')")?.sqlState == "P0002")
            let taken = "select millrace.mail_send(array['a@b.example'], 's', 't', id => '\(id)')"
            #expect(try await neighbour.refusal(of: taken)?.sqlState == "23505")
            for call in ["mail_suppress('a@b.example', 'x')", "mail_erase('a@b.example')", "mail_list()"] {
                #expect(try await client.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            try await client.run("select set_config('request.jwt.claims', '{\"sub\": \"u1\"}', false)")
            let own = try await client.value("millrace.mail_send(array['a@b.example'], 's', 't')") ?? ""
            #expect(
                try await owner.value("select sender || ' ' || tenant from millrace.mail where id = '\(own)'")
                    == "u1 person:u1")
            let another = "select millrace.mail_send(array['a@b.example'], 's', 't', sender => 'u2')"
            #expect(try await client.refusal(of: another)?.sqlState == "42501")
            #expect(try await client.bool("select millrace.mail_cancel('\(own)')"))
        }
    }
}
