import Clusters
import Glibc
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Which caller a session is, and what belongs to it.
@Suite struct CallerTests {
    @Test func `nobody can give a caller's name but its own`() async throws {
        try await DoorWorld.with { world in
            let client = try await world.caller("client").connection
            let job = try await world.owner.int("select millrace.enqueue('mine')")
            for name in [world.names.owner, world.names.worker, world.names.admin, world.other, "", "nobody"] {
                for call in [
                    "select millrace.cancel(\(job), caller => '\(name)')",
                    "select millrace.cancel(\(job), caller => '\(name)'::name)",
                    "prepare forged(millrace.caller_name) as select millrace.cancel(\(job), caller => $1); execute forged('\(name)')",
                    "do $$ declare me millrace.caller_name := '\(name)'; begin perform millrace.cancel(\(job), me); end $$",
                ] {
                    let refusal = try await client.refusal(of: call)
                    #expect(refusal?.sqlState == "23514", "\(call): \(refusal?.message ?? "it went through")")
                    try await client.run("deallocate all")
                }
            }
            #expect(
                try await client.refusal(of: "create temporary table t (me millrace.caller_name)")?.sqlState == "42501")
            // A domain lets the null of a missing row through without a check: it is nobody's name.
            let missing = "(select current_user::millrace.caller_name where false)"
            #expect(
                try await client.refusal(of: "select millrace.cancel(\(job), caller => \(missing))")?.sqlState
                    == "P0002")
            #expect(
                try await client.refusal(
                    of:
                        "select millrace.enqueue_as('theirs', '{}', null, null, null, null, 'skip', null, null, null, null, null, null, 17, \(missing))"
                )?.sqlState == "42501")
            #expect(try await world.owner.value("select state from millrace.job(\(job))") == "ready")
            #expect(try await client.bool("select millrace.cancel(millrace.enqueue('mine'), caller => current_user)"))
            await client.close()
        }
    }

    /// The server's real autovacuum, not a superuser in its place; on a separate server, because it would analyse the other tests' tables.
    @Test func `what autovacuum runs of a client's is a client's`() async throws {
        let cluster = try Cluster(
            directory: "/tmp/millrace-vacuum-\(getpid())", binaries: .locate(environment: [:]),
            settings: ["fsync": "off", "autovacuum_naptime": "1s", "shared_buffers": "32MB"])
        _ = try await cluster.start(deadline: .seconds(120))
        let root = try await Connection.open(ConnectionOptions(location: cluster.url()), name: "root")
        _ = try await Migrator.ofAllRooms(roles: [("client", "clients"), ("worker", "workers")]).migrate(on: root)
        try await root.run("create role clients; create role workers; create role intruder login in role clients")
        _ = try await Migrator.ofAllRooms(roles: [("client", "clients"), ("worker", "workers")]).migrate(on: root)
        let job = try await root.int("select millrace.enqueue('secret', '{\"secret\": 1}')")
        try await root.run(
            "do $$ begin execute format('grant create on database %I to intruder', current_database()); end $$")
        let client = try await Connection.open(
            ConnectionOptions(location: cluster.url().replacing("//millrace@", with: "//intruder@")), name: "intruder")
        try await TrapTests.build(client, job: job, names: ["millrace", "workers"])
        try await client.run(
            """
            insert into bait select n from generate_series(1, 200) n;
            create index on bait (spied(a));
            alter table bait set (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0);
            update bait set a = a + 1
            """)
        try await eventually("autovacuum analyses the table") {
            try await client.bool("select exists (select from trap.log where session <> 'intruder')")
        }
        let gained = try await client.column(
            """
            select act from trap.log where gained is not null and session <> 'intruder'
            except select act from trap.log where gained is not null and session = 'intruder'
            """)
        #expect(gained.isEmpty, "\(gained)")
        #expect(try await root.value("select state from millrace.job(\(job))") == "ready")
        for connection in [client, root] { await connection.close() }
        try await cluster.remove(deadline: .seconds(60))
    }

    @Test func `claims count for a role that only a gateway takes on, in either form`() async throws {
        try await DoorWorld.with { world in
            let own = "select millrace.streak('alice')"
            let gateway = try await world.caller("signed in").connection
            #expect(try await gateway.refusal(of: own) == nil)
            #expect(try await gateway.refusal(of: "select millrace.streak('bob')")?.sqlState == "42501")
            // As gateways set them that have a setting for each claim.
            try await gateway.run("reset request.jwt.claims; set request.jwt.claim.sub = 'alice'")
            #expect(try await gateway.refusal(of: own) == nil)
            #expect(try await gateway.refusal(of: "select millrace.streak('bob', 'bob')")?.sqlState == "42501")
            try await gateway.run("reset request.jwt.claim.sub; set request.jwt.claim.role = 'anon'")
            #expect(try await gateway.refusal(of: "select millrace.streak('alice', 'alice')")?.sqlState == "42501")
            try await gateway.run("reset request.jwt.claim.role")
            for broken in [
                "{", "[]", "\"alice\"", "null", "{\"sub\": \"\(String(repeating: "a", count: 200))\"}",
                "{\"sub\": \"\"}",
            ] {
                try await gateway.run("select set_config('request.jwt.claims', '\(broken)', false)")
                let refusal = try await gateway.refusal(of: own)
                #expect(
                    ["22023", "42501"].contains(refusal?.sqlState),
                    "\(broken): \(refusal?.message ?? "it went through")")
                #expect(refusal?.detail?.hasPrefix("{") == true)
            }
            await gateway.close()
            // A client that can run its own statements can set any claims.
            let client = try await world.caller("client").connection
            try await client.run("select set_config('request.jwt.claims', '{\"sub\": \"alice\"}', false)")
            #expect(try await client.refusal(of: own)?.sqlState == "42501")
            await client.close()
            let backend = try await world.caller("back end").connection
            #expect(try await backend.refusal(of: "select millrace.streak('bob', 'bob')") == nil)
            try await backend.run("select set_config('request.jwt.claims', '{\"sub\": \"alice\"}', false)")
            #expect(try await backend.refusal(of: own) == nil)
            #expect(try await backend.refusal(of: "select millrace.streak('bob', 'bob')")?.sqlState == "42501")
            #expect(try await world.owner.bool("select millrace.revoke_backend('\(world.backend)')"))
            #expect(try await backend.refusal(of: own)?.sqlState == "42501")
            await backend.close()
        }
    }

    @Test func `a key of one client stands in nobody else's way`() async throws {
        try await DoorWorld.with { world in
            try await world.owner.run("select millrace.limit_set('key', 'slot', '{\"concurrency\": 1}')")
            let enqueue =
                "select millrace.enqueue('mine', unique_key => 'receipt-8', run_at => now() + interval '9 years', on_conflict =>"
            var holders: Set<Int> = []
            for role in ["signed in", "client", "back end", "owner"] {
                let caller = try await world.caller(role)
                let first = try await caller.connection.int("\(enqueue) 'skip')")
                #expect(holders.insert(first).inserted, "\(role) was given another's job")
                #expect(try await caller.connection.int("\(enqueue) 'skip')") == first)
                #expect(try await caller.connection.int("\(enqueue) 'replace')") == first)
                #expect(try await caller.connection.refusal(of: "\(enqueue) 'error')")?.sqlState == "23505")
                #expect(
                    try await caller.connection.refusal(
                        of: "select millrace.enqueue('mine', limit_key => 'slot')") == nil)
                await caller.connection.close()
            }
            let bob = try await world.caller("signed in")
            try await bob.connection.run("select set_config('request.jwt.claims', '{\"sub\": \"bob\"}', false)")
            #expect(try await holders.insert(bob.connection.int("\(enqueue) 'skip')")).inserted)
            try await bob.connection.run("select millrace.enqueue('mine', limit_key => 'slot')")
            await bob.connection.close()
            // One job of each caller with that limit key may run at once: five callers, five gates.
            #expect(
                try await world.owner.int(
                    "select count(distinct millrace.key_gate(limit_key, limit_scope)) from millrace.job where limit_key = 'slot'"
                ) == 5)
        }
    }

    @Test func `the id of a signal is its sender's own, also where many persons call as one role`() async throws {
        try await DoorWorld.with { world in
            let send = "select millrace.signal('paid', '7', '5', id => 'invoice-8')"
            let other = "select millrace.signal('paid', '7', '6', id => 'invoice-8')"
            for role in ["signed in", "client", "back end", "owner"] {
                let caller = try await world.caller(role).connection
                #expect(try await caller.bool(send), "\(role) was told that another's signal is its own")
                #expect(try await caller.bool(send) == false)
                #expect(try await caller.refusal(of: other)?.sqlState == "23505")
                await caller.close()
            }
            let bob = try await world.caller("signed in").connection
            try await bob.run("select set_config('request.jwt.claims', '{\"sub\": \"bob\"}', false)")
            #expect(try await bob.bool(other))
            // Claims that name nobody reach no job, and not those of all.
            let anon = try await world.caller("anon").connection
            #expect(try await anon.bool("select millrace.signal('paid', '7')"))
            #expect(
                try await world.owner.bool("select tenant = '' from millrace.signal where owner = '\(world.anon)'"))
            for connection in [bob, anon] { await connection.close() }
        }
    }

    @Test func `a client's alarm by mail is bounded like its other mail, and stands in line with it`() async throws {
        try await DoorWorld.with { world in
            for (role, isAlarm) in [("client", false), ("back end", true)] {
                let caller = try await world.caller(role).connection
                var verdicts: [String] = []
                for n in 0..<3 {
                    let id =
                        try await caller.value(
                            "millrace.mail_send(array['a\(n)@d\(n).example'], 's', 't', sender => 'ada', purpose => 'alarm', priority => 'urgent')"
                        ) ?? ""
                    verdicts.append(
                        try await world.owner.value(
                            "select verdict from millrace.mail_batch_open('resend', array['\(id)'], true, 1, 60, 2, 60, 0, 0)"
                        ) ?? "")
                    let priority = try await world.owner.int(
                        "select priority from millrace.jobs where id = (select job from millrace.mail where id = '\(id)')"
                    )
                    #expect(priority == (isAlarm ? 0 : 1), "\(role)")
                }
                #expect(verdicts == (isAlarm ? ["in", "in", "in"] : ["in", "in", "wait"]), "\(role)")
                await caller.close()
            }
        }
    }

    /// Jobs of before have their keys without a scope.
    @Test func `a client that holds a key from before clients had keys of their own still holds it`() async throws {
        try await DoorWorld.with { world in
            let client = try await world.caller("client").connection
            let id = try await client.int("select millrace.enqueue('mine', unique_key => 'k')")
            let before = "millrace.unique_hash('k', 'mine', 'default', null, null, null)"
            try await world.owner.run(
                """
                update millrace.unique_key set hash = \(before) where hash = (select unique_hash from millrace.job where id = \(id));
                update millrace.unique_lock set hash = \(before) where job = \(id);
                update millrace.job set unique_hash = \(before) where id = \(id)
                """)
            #expect(try await client.int("select millrace.enqueue('mine', unique_key => 'k')") == id)
            let other = try await world.caller("back end").connection
            #expect(try await other.int("select millrace.enqueue('mine', unique_key => 'k')") != id)
            #expect(try await client.bool("select millrace.cancel(\(id))"))
            let next = try await client.int("select millrace.enqueue('mine', unique_key => 'k')")
            #expect(next != id)
            #expect(try await client.int("select millrace.enqueue('mine', unique_key => 'k')") == next)
            for connection in [client, other] { await connection.close() }
        }
    }

    /// A backslash in a plain literal means something else there.
    @Test func `checks read the same whatever standard_conforming_strings is`() async throws {
        try await DoorWorld.with { world in
            let odd = try await world.owner.column(
                #"""
                select p.proname from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace
                   and regexp_replace(regexp_replace(p.prosrc, E'--[^\n]*', '', 'g'), E'E''([^''\\\\]|\\\\.|'''')*''', '', 'g') like E'%\\\\%'
                """#)
            #expect(odd.isEmpty)
            let caller = try await world.caller("signed in").connection
            try await caller.run("set standard_conforming_strings = off")
            #expect(
                try await caller.refusal(of: "select millrace.check_in_alarm(concat('al', chr(7), 'ice'))")?.sqlState
                    == "22023")
            #expect(
                try await caller.refusal(
                    of:
                        "select millrace.notice_preferences('alice', 'UTC', '1:00', '2:00', '{\"sms\": \"+4930123456\"}', 'en')"
                )
                    == nil)
            #expect(
                try await caller.refusal(
                    of: "select millrace.mail_send(array['a@b.example'], concat('s', chr(10)), 't')")?.sqlState
                    == "22023")
            await caller.close()
        }
    }
}
