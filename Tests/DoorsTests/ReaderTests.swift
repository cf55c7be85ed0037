import Postgres
import TestSupport
import Testing

/// A mail is in the language of its reader's profile, and shows nobody the language of somebody else.
@Suite struct ReaderTests {
    @Test func `a mail is in the language of a person only for who may speak for that person`() async throws {
        try await DoorWorld.with { world in
            try await world.owner.run(
                """
                select millrace.person_profile('alice', locale => 'de-AT', actor => 'alice');
                select millrace.person_profile('bob', locale => 'ar', actor => 'bob')
                """)
            let send =
                "millrace.mail_send(array['a@b.example'], template => 'welcome', data => '{\"user_name\": \"A\"}'"
            for (role, person, named, about) in [
                ("signed in", "alice", "de-AT", "de-AT"),  // itself
                ("signed in", "bob", "42501", "none"),
                ("client", "alice", "42501", "none"),
                ("no claims", "alice", "42501", "none"),
                ("anon", "alice", "42501", "none"),
                ("back end", "bob", "ar", "ar"),
                ("admin", "bob", "ar", "ar"),
            ] {
                let caller = try await world.caller(role).connection
                func locale(_ call: String) async throws -> String {
                    let error = try await caller.refusal(of: "select \(call)")
                    if let error { return error.sqlState }
                    return try await world.owner.value("select locale from millrace.mail order by seq desc limit 1")
                        ?? "none"
                }
                #expect(try await locale("\(send), person => '\(person)')") == named, "\(role) names \(person)")
                #expect(
                    try await locale("millrace.mail_welcome('a@b.example', 'A', '{\"person\": \"\(person)\"}')")
                        == named, "\(role) names \(person) in options")
                // The account that a password is reset of is named by everybody who asks for that, and shows nothing.
                #expect(
                    try await locale("millrace.mail_password_reset('a@b.example', 't', '\(person)')") == about,
                    "\(role) resets the password of \(person)")
                await caller.close()
            }
        }
    }

    @Test func `who can log in proves nothing by claims, and what one says of the locale goes first`() async throws {
        try await DoorWorld.with { world in
            try await world.owner.run("select millrace.person_profile('alice', locale => 'de', actor => 'alice')")
            let client = try await world.caller("client").connection
            try await client.run(#"select set_config('request.jwt.claims', '{"sub": "alice"}', false)"#)
            try await client.run("select millrace.mail_password_reset('a@b.example', 't', 'alice')")
            let last = "select coalesce(locale, 'none') from millrace.mail order by seq desc limit 1"
            #expect(try await world.owner.value(last) == "none")
            await client.close()
            let backend = try await world.caller("back end").connection
            try await backend.run(
                #"select millrace.mail_welcome('a@b.example', 'A', '{"person": "alice", "locale": "ar"}')"#)
            #expect(try await world.owner.value(last) == "ar")
            // Handed in again after the profile has changed it is the same message.
            let id = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"
            let call = "select millrace.mail_welcome('a@b.example', 'A', '{\"person\": \"alice\", \"id\": \"\(id)\"}')"
            try await backend.run(call)
            try await world.owner.run("select millrace.person_profile('alice', locale => 'ar', actor => 'alice')")
            #expect(try await backend.refusal(of: call) == nil)
            #expect(try await world.owner.value(last) == "de")
            // By name, too, where the data give none: only the reader that is named, not the user of a password reset.
            try await world.owner.run("select millrace.person_profile('alice', 'Alice', actor => 'alice')")
            let named =
                "select coalesce(c.data ->> 'user_name', 'none') from millrace.mail m join millrace.mail_content c on c.message = m.id order by m.seq desc limit 1"
            for (call, name) in [
                ("mail_send(array['a@b.example'], template => 'welcome', person => 'alice')", "Alice"),
                ("mail_welcome('a@b.example', 'Ada', '{\"person\": \"alice\"}')", "Ada"),
                (
                    "mail_send(array['a@b.example'], template => 'welcome', data => '{\"user_name\": \"Ada\"}', person => 'alice')",
                    "Ada"
                ),
                ("mail_password_reset('a@b.example', 't', 'alice')", "none"),
            ] {
                try await backend.run("select millrace.\(call)")
                #expect(try await world.owner.value(named) == name, "\(call)")
            }
            for (call, field) in [
                ("mail_send(array['a@b.example'], template => 'welcome', person => 'bob')", "data"),
                ("mail_send(array['a@b.example', 'c@d.example'], 's', 't', person => 'alice')", "person"),
                ("mail_send(array['a@b.example'], 's', 't', person => '')", "person"),
                ("mail_welcome('a@b.example', 'A', '{\"person\": 7}')", "person"),
            ] {
                let refusal = try await backend.refusal(of: "select millrace.\(call)")
                #expect(refusal?.sqlState == "22023" && refusal?.detail?.contains("\"\(field)\"") == true, "\(call)")
            }
            await backend.close()
        }
    }
}
