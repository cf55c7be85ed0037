import FoundationEssentials
import MillraceQueues
import Postgres
import TestSupport
import Testing

@Suite struct ProtectionTests {
    @Test func `eight takers at once never get more than the burst and what was gained since`() async throws {
        try await withDatabase { database in
            let (rate, burst) = (200.0, 30.0)
            let clock = ContinuousClock()
            let began = clock.now
            let granted = try await withThrowingTaskGroup { group in
                for taker in 0..<8 {
                    group.addTask {
                        let connection = try await database.connect()
                        var granted = 0
                        for turn in 0..<50 {
                            // The other key is asked for before it or after it.
                            let keys = turn % 2 == taker % 2 ? "'{subject:ada,address:x}'" : "'{address:x,subject:ada}'"
                            granted += try await connection.int(
                                """
                                select granted from millrace.gateway_take(\(keys), '{\(rate),\(rate)}', '{\(burst),\(burst)}', '{3,3}')
                                 where key = 'subject:ada'
                                """)
                        }
                        await connection.close()
                        return granted
                    }
                }
                return try await group.reduce(0, +)
            }
            let seconds = (clock.now - began) / .seconds(1)
            #expect(Double(granted) <= burst + rate * seconds)
            #expect(granted >= Int(burst))
        }
    }

    @Test func `a bucket says how long to wait, fills with time, and is forgotten when it is full`() async throws {
        try await withConnection(.movableClock) { connection in
            // A token each thousand seconds, so that a slow machine changes nothing.
            func take(_ want: Int) async throws -> [String] {
                try await connection.records(
                    """
                    select granted, case when wait_s = 0 then 'none' when wait_s > 900 and wait_s <= 1000 then 'long' else wait_s::text end
                      from millrace.gateway_take('{a}', '{0.001}', '{5}', '{\(want)}')
                    """)
            }
            #expect(try await take(3) == ["(3,none)"])
            #expect(try await take(3) == ["(2,long)"])
            #expect(try await take(0) == ["(0,none)"])
            try await connection.run("select millrace.gateway_expire()")
            #expect(try await take(1) == ["(0,long)"])
            try await connection.run("select millrace.test_clock_advance('1001 seconds')")
            #expect(try await take(2) == ["(1,long)"])
            try await connection.run("select millrace.test_clock_advance('2 hours'), millrace.gateway_expire()")
            #expect(try await connection.int("select count(*) from millrace.gateway_bucket") == 0)
            #expect(try await take(9) == ["(5,long)"])
            for call in [
                "'{a,a}', '{1,1}', '{1,1}', '{1,1}'", "'{a}', '{0}', '{1}', '{1}'", "'{a}', '{1}', '{0}', '{1}'",
                "'{a}', '{1}', '{1}', '{-1}'", "'{a}', '{1}', '{1}', '{}'", "'{}', '{}', '{}', '{}'",
                "'{a}', '{NaN}', '{1}', '{1}'",
                "null, null, null, null", "'{null}', '{1}', '{1}', '{1}'",
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.gateway_take(\(call))")?.sqlState == "22023",
                    "\(call)")
            }
        }
    }

    @Test func `a call with a key takes effect once, and its answer is told again for a day`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            #expect(try await phone.records("select * from millrace.gateway_begin('k', 'one')") == ["(t,,)"])
            #expect(try await phone.bool(#"select millrace.gateway_end('k', 200, '{"a": 1}')"#))
            #expect(
                try await phone.records("select is_new, status, answer ->> 'a' from millrace.gateway_begin('k', 'one')")
                    == ["(f,200,1)"])
            #expect(try await phone.bool("select millrace.gateway_end('k', 500, '2')") == false)
            let other = try await phone.refusal(of: "select millrace.gateway_begin('k', 'two')")
            #expect(
                other?.detail?.contains("\"conflict\"") == true && other?.detail?.contains("Idempotency-Key") == true)
            // Another person's key is another key.
            let eve = try await world.phone(of: "eve")
            #expect(try await eve.records("select * from millrace.gateway_begin('k', 'two')") == ["(t,,)"])
            await eve.close()
            // What is too large is given once.
            try await phone.run("select millrace.gateway_begin('large', 'r')")
            #expect(
                try await phone.bool("select millrace.gateway_end('large', 200, to_jsonb(repeat('x', 2000000)))")
                    == false)
            #expect(try await phone.refusal(of: "select millrace.gateway_begin('large', 'r')")?.sqlState == "23505")
            try await world.owner.run("select millrace.test_clock_advance('1 day 1 second')")
            #expect(try await phone.records("select * from millrace.gateway_begin('k', 'two')") == ["(t,,)"])
            try await world.owner.run("select millrace.test_clock_advance('1 day 1 second'), millrace.maintain()")
            #expect(try await world.owner.int("select count(*) from millrace.gateway_answer") == 0)
            for key in ["''", "'a b'", "'ä'", "null"] {
                #expect(try await phone.refusal(of: "select millrace.gateway_begin(\(key), 'r')")?.sqlState == "22023")
            }
            await phone.close()
        }
    }

    @Test func `what was answered in one tenant is not told again to the same person in another`() async throws {
        try await SyncWorld.with { world in
            for turn in 1...2 {
                for tenant in ["shop", "mill"] {
                    let phone = try await world.phone(of: "ada", tenant: tenant)
                    let begun = try await phone.records(
                        "select is_new, answer #>> '{}' from millrace.gateway_begin('k', 'one')")
                    #expect(begun == [turn == 1 ? "(t,)" : "(f,\(tenant))"])
                    if turn == 1 {
                        #expect(try await phone.bool("select millrace.gateway_end('k', 200, '\"\(tenant)\"')"))
                    }
                    await phone.close()
                }
            }
            // One of before answers were a tenant's is told as it was, for its day.
            try await world.owner.run(
                "insert into millrace.gateway_answer (person, key, request, status, answer, at) values ('ada', 'old', sha256('one'), 200, '1', millrace.now())"
            )
            let phone = try await world.phone(of: "ada", tenant: "shop")
            #expect(try await phone.records("select * from millrace.gateway_begin('old', 'one')") == ["(f,200,1)"])
            try await world.owner.run("select millrace.test_clock_advance('1 day 1 second')")
            #expect(try await phone.records("select * from millrace.gateway_begin('old', 'one')") == ["(t,,)"])
            await phone.close()
        }
    }

    @Test func `a second call with the same key waits for the first, and takes its place if that fails`() async throws {
        try await SyncWorld.with { world in
            for isCommitted in [true, false] {
                let key = "key-\(isCommitted)"
                let (first, second) = (try await world.phone(of: "ada"), try await world.phone(of: "ada"))
                let process = try await second.process()
                try await first.run(
                    "begin; select millrace.gateway_begin('\(key)', 'r'); select millrace.gateway_end('\(key)', 201, '1')"
                )
                async let waiting = second.records("select * from millrace.gateway_begin('\(key)', 'r')")
                try await waitUntilBlocked(process, seenBy: world.owner)
                try await first.run(isCommitted ? "commit" : "rollback")
                #expect(try await waiting == [isCommitted ? "(f,201,1)" : "(t,,)"])
                await first.close()
                await second.close()
            }
        }
    }

    @Test func `of many calls with one key at once exactly one takes effect`() async throws {
        try await SyncWorld.with { world in
            try await world.owner.run("create table public.effect (n int)")
            let answers = try await withThrowingTaskGroup { group in
                for caller in 0..<8 {
                    group.addTask {
                        let phone = try await world.phone(of: "ada")
                        try await phone.run("begin")
                        let begun = try await phone.records(
                            "select is_new, answer from millrace.gateway_begin('k', 'r')")
                        if begun == ["(t,)"] {
                            try await phone.run(
                                "insert into public.effect values (\(caller)); select millrace.gateway_end('k', 200, '\(caller)')"
                            )
                        }
                        try await phone.run("commit")
                        await phone.close()
                        return begun == ["(t,)"] ? "\(caller)" : begun[0].dropFirst(3).dropLast().description
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let effects = try await world.owner.column("select n from public.effect")
            #expect(effects.count == 1 && answers == Array(repeating: effects[0], count: 8))
        }
    }

    @Test func `the list of doors is what the role may call, with types, and without what is the gateway's`()
        async throws
    {
        let office = try await TestCluster.office()
        let role = TestCluster.name("client")
        try await office.run("create role \(role)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", role)]).migrate(on: owner)
            let names = try await owner.column("select name from millrace.gateway_doors('\(role)')")
            // enqueue_as is behind enqueue, and takes the caller's name first. wait_for would keep a connection. The others are for back ends.
            let granted = try await owner.column(
                """
                select proname from pg_proc
                 where pronamespace = 'millrace'::regnamespace and has_function_privilege('\(role)', oid, 'execute')
                   and proname not like 'gateway%'
                   and proname not in ('enqueue_as', 'wait_for', 'error_map', 'notice_send', 'notice_sent', 'notice_take_back',
                                       'points_award')
                 order by 1
                """)
            #expect(names == granted && names.contains("sync_push") && !names.contains("claim"))
            // A function that the role may call and that has no line is not for apps.
            try await owner.run("grant execute on function millrace.job_lives to \(role)")
            #expect(try await owner.column("select name from millrace.gateway_doors('\(role)')") == names)
            #expect(
                try await owner.column(
                    "select name from millrace.gateway_doors('\(role)') where comment !~ '^[A-Z].*[.]$'"
                ).isEmpty)
            func door(_ name: String, _ what: String) async throws -> String? {
                try await owner.value("select \(what) from millrace.gateway_doors('\(role)') where name = '\(name)'")
            }
            #expect(
                try await door("check_in", "arguments")
                    == #"[{"name": "person", "type": "text", "required": true}, {"name": "at", "type": "timestamp with time zone", "default": "NULL::timestamp with time zone", "required": false}, {"name": "actor", "type": "text", "default": "NULL::text", "required": false}, {"name": "place", "type": "jsonb", "default": "NULL::jsonb", "required": false}]"#
            )
            #expect(try await door("check_in", "result") == #"{"kind": "scalar", "type": "timestamp with time zone"}"#)
            #expect(try await door("hobby_presets", "result") == #"{"kind": "rows", "type": "text"}"#)
            #expect(
                try await door("document_delete", "result")
                    == #"{"kind": "rows", "columns": [{"name": "id", "type": "uuid"}, {"name": "deleted", "type": "boolean"}]}"#
            )
            #expect(try await door("document", "result -> 'columns' -> 0") == #"{"name": "id", "type": "uuid"}"#)
            #expect(try await owner.int("select count(*) from millrace.gateway_doors('nobody at all')") == 0)
            try await owner.run("revoke execute on function millrace.check_in from \(role)")
            #expect(try await door("check_in", "name") == nil)
            await owner.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `a gateway that beats is shown, silent after a while, and gone after a day`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run("select millrace.gateway_beat('host-1', 'http://[::1]:8080', 3, 17, '1.0')")
            try await connection.run("select millrace.gateway_beat('host-1', 'http://[::1]:8080', 4, 18, '1.0')")
            let shown = "select name, address, version, streams, requests, is_silent from millrace.gateways_shown()"
            #expect(try await connection.records(shown) == ["(host-1,http://[::1]:8080,1.0,4,18,f)"])
            try await connection.run("select millrace.test_clock_advance('16 seconds'), millrace.gateway_expire()")
            #expect(try await connection.bool("select is_silent from millrace.gateways_shown()"))
            try await connection.run("select millrace.test_clock_advance('1 day'), millrace.gateway_expire()")
            #expect(try await connection.records(shown).isEmpty)
            try await connection.run("select millrace.gateway_beat('host-1')")
            #expect(try await connection.bool("select millrace.gateway_leave('host-1')"))
            #expect(try await connection.records(shown).isEmpty)
        }
    }
}
