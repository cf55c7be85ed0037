import Postgres
import TestSupport
import Testing

/// An app's own server, as it comes: with a login, or through PostgREST with a token that names a role and nobody.
@Suite struct BackendTests {
    private static let mail = "00000000-0000-4000-8000-00000000000a"

    @Test func `a token of the app's server does all that its login would`() async throws {
        try await DoorWorld.with { world in
            for role in ["back end", "service role"] {
                let server = try await world.caller(role).connection
                try await server.run("begin")
                // What it hands in is its own, also a second time, for whom it names.
                let send =
                    "select millrace.mail_send(array['a@b.example'], 's', 't', id => '\(Self.mail)', sender => 'joanie', person => 'alice', tenant => 'school')"
                for _ in 0..<2 { #expect(try await server.value(send) == Self.mail, "\(role)") }
                #expect(
                    try await server.value(
                        "select status || ' ' || coalesce(authentication_error, 'well') from millrace.mail_message('\(Self.mail)')"
                    )
                        == "queued well", "\(role)")
                let job = try await server.int("select millrace.enqueue('mine', unique_key => 'k')")
                #expect(try await server.column("select id from millrace.own_jobs(page => 500)").contains("\(job)"))
                #expect(try await server.bool("select millrace.mail_cancel('\(Self.mail)')"), "\(role)")
                let document =
                    try await server.value(
                        "select millrace.document_register('https://a.example/1', tenant => 'school', actor => 'bob')")
                    ?? ""
                #expect(
                    try await server.value("select owner from millrace.document('\(document)', actor => 'bob')")
                        == "bob")
                // It says who acts, call by call or for a transaction.
                for person in ["alice", "bob"] {
                    #expect(
                        try await server.value("select millrace.mood_log('\(person)', 'calm', actor => '\(person)')")
                            != nil)
                }
                try await server.run("savepoint one; set local millrace.person = 'alice'")
                #expect(try await server.refusal(of: "select millrace.streak('alice')") == nil)
                #expect(try await server.value("select millrace.mood_log('alice', 'happy')") != nil)
                let other = try await server.refusal(of: "select millrace.mood_log('bob', 'happy')")
                #expect(other?.sqlState == "42501")
                try await server.run("rollback to one")
                #expect(try await server.value("select current_setting('millrace.person', true)") ?? "" == "")
                // What only a server says.
                let notice = "select millrace.notice_send('alice', 'app.news', '{}', key => 'n')"
                let first = try await server.value(notice)
                #expect(try await server.value(notice) == first)
                #expect(try await server.value("select id from millrace.notice_sent('alice', 'n')") == first)
                #expect(try await server.bool("select millrace.notice_take_back('alice', 'n')"))
                #expect(try await server.value("select status from millrace.notice_sent('alice', 'n')") == "cancelled")
                #expect(try await server.bool("select millrace.points_award('alice', 5, 'k', 'r')"))
                #expect(try await server.bool("select millrace.points_award('alice', 5, 'k', 'r')") == false)
                #expect(try await server.value("select millrace.subscription_set('pro', 'alice')") != nil)
                #expect(
                    try await server.value(
                        "select authentication_error from millrace.error_map() where error_class = 'unavailable'")
                        == "networkConnectionFailed")
                try await server.run("rollback")
                await server.close()
            }
        }
    }

    /// Every way in which a claim can be there, or not.
    private static func tokens(_ world: DoorWorld) -> [String] {
        let subs = ["", #""sub": "","#, #""sub": null,"#, #""sub": "alice","#, #""sub": 7,"#]
        let tenants = ["", #""tenant": "","#, #""tenant": "school","#]
        let roles =
            [
                world.service, world.backend, world.signedIn, world.anon, world.names.owner, world.names.worker,
                "postgres",
            ]
            .map { "\"\($0)\"" } + ["[\"\(world.service)\"]", "null", "true"]
        return subs.flatMap { sub in
            tenants.flatMap { tenant in roles.map { "{\(sub)\(tenant)\"role\": \($0)}" } }
        }
    }

    @Test func `no token of a person gives the rights of the app's server, whatever it claims`() async throws {
        try await DoorWorld.with { world in
            let service = try await world.caller("service role").connection
            let theirs = try await service.int("select millrace.enqueue('mine')")
            await service.close()
            // As an app makes one for what its tables keep: it runs with the rights of the schema's owner.
            try await world.owner.run(
                """
                create function public.wrapped() returns jsonb language sql security definer set search_path = pg_catalog, pg_temp
                as $$ select millrace.streak('bob', 'bob') $$;
                grant execute on function public.wrapped() to public
                """)
            let calls = [
                "select millrace.streak('bob', 'bob')", "select public.wrapped()",
                "select millrace.points_award('alice', 5, 'k', 'r')",
                "select millrace.notice_send('alice', 'app.news')", "select millrace.notice_sent('alice', 'k')",
                "select millrace.subscription_set('pro', 'alice')",
                "select millrace.mood_log('bob', 'happy', actor => 'bob')",
                "select millrace.person_export('bob', actor => 'bob')", "select millrace.cancel(\(theirs))",
            ]
            var wrong: [String] = []
            let tokens = Self.tokens(world)
            #expect(tokens.count == 150)
            for role in ["signed in", "anon"] {
                let caller = try await world.caller(role).connection
                try await caller.run("set millrace.person = 'bob'")
                for token in tokens {
                    try await caller.run("select set_config('request.jwt.claims', '\(token)', false)")
                    for call in calls {
                        let state = try await caller.refusal(of: call)?.sqlState
                        if !["42501", "P0002", "22023"].contains(state) {
                            wrong.append("\(role), \(token), \(call): \(state ?? "it went through")")
                        }
                    }
                }
                // As gateways set them that have a setting for each claim.
                try await caller.run("reset request.jwt.claims; set request.jwt.claim.role = '\(world.service)'")
                for call in calls {
                    let state = try await caller.refusal(of: call)?.sqlState
                    if !["42501", "P0002", "22023"].contains(state) {
                        wrong.append("\(role), one setting a claim, \(call)")
                    }
                }
                await caller.close()
            }
            // A client with a login says whatever it likes.
            let client = try await world.caller("client").connection
            for token in tokens + [""] {
                try await client.run(
                    "select set_config('request.jwt.claims', '\(token)', false), set_config('millrace.person', 'bob', false)"
                )
                for call in calls where !call.contains("wrapped") {
                    let state = try await client.refusal(of: call)?.sqlState
                    if !["42501", "P0002", "22023"].contains(state) { wrong.append("client, \(token), \(call)") }
                }
            }
            await client.close()
            #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
        }
    }

    @Test func `a token of the app's server that names a tenant or nobody's name is no server's`() async throws {
        try await DoorWorld.with { world in
            let server = try await world.caller("service role").connection
            let own = "select millrace.streak('bob', 'bob')"
            #expect(try await server.refusal(of: own) == nil)
            for claims in [
                #"{"role": "\#(world.service)", "tenant": "school"}"#, #"{"role": "\#(world.service)", "sub": ""}"#,
                #"{"role": "\#(world.service)", "sub": "alice"}"#, #"{"role": "\#(world.signedIn)"}"#, "{}",
            ] {
                try await server.run("select set_config('request.jwt.claims', '\(claims)', false)")
                #expect(try await server.refusal(of: own)?.sqlState == "42501", "\(claims)")
            }
            try await server.run("select set_config('request.jwt.claims', '{\"role\": \"\(world.service)\"}', false)")
            #expect(try await world.owner.bool("select millrace.revoke_backend('\(world.service)')"))
            #expect(try await server.refusal(of: own)?.sqlState == "42501")
            await server.close()
        }
    }

    @Test func `a person that a login says for itself counts for a back end alone`() async throws {
        try await DoorWorld.with { world in
            try await world.owner.run(
                """
                create function public.mine() returns uuid language sql security definer set search_path = pg_catalog, pg_temp
                as $$ select millrace.mood_log('bob', 'happy') $$;
                grant execute on function public.mine() to public
                """)
            let client = try await world.caller("client").connection
            try await client.run("set millrace.person = 'bob'")
            #expect(try await client.refusal(of: "select public.mine()")?.sqlState == "22023")
            #expect(try await client.refusal(of: "select millrace.mood_log('bob', 'happy')")?.sqlState == "42501")
            await client.close()
            let server = try await world.caller("back end").connection
            try await server.run("set millrace.person = 'bob'")
            #expect(try await server.refusal(of: "select public.mine()") == nil)
            for broken in [String(repeating: "b", count: 129), "a\u{7}b", " "] {
                try await server.run("select set_config('millrace.person', '\(broken)', false)")
                #expect(try await server.refusal(of: "select millrace.mood_log('bob', 'happy')")?.sqlState == "22023")
            }
            await server.close()
        }
    }

    @Test func `what became of a mail is an event where an admin wants that, without an address`() async throws {
        try await DoorWorld.with { world in
            let server = try await world.caller("service role").connection
            func send(_ id: String) async throws {
                try await server.run(
                    "select millrace.mail_send(array['ada@b.example'], 's', 't', id => '\(id)', person => 'alice', tenant => 'school')"
                )
                #expect(try await server.bool("select millrace.mail_cancel('\(id)')"))
            }
            let events =
                "select type || ' ' || tenant || ' ' || (data ->> 'person') || ' ' || (data ->> 'status') || ' ' || subject from millrace.events where type like 'millrace.mail.%'"
            try await send("00000000-0000-4000-8000-00000000000b")
            #expect(try await world.owner.column(events).isEmpty)
            #expect(try await world.owner.bool("select millrace.mail_events_set(true)"))
            try await send(Self.mail)
            #expect(
                try await world.owner.column(events) == ["millrace.mail.cancelled school alice cancelled \(Self.mail)"])
            #expect(
                try await world.owner.int("select count(*) from millrace.events where data::text like '%ada@%'") == 0)
            try await world.owner.run("select millrace.person_erase('alice')")
            #expect(try await world.owner.column(events).isEmpty)
            await server.close()
        }
    }
}
