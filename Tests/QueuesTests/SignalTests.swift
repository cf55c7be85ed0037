import Postgres
import TestSupport
import Testing

/// Signals and waits at the level of statements: what crosses, what is repeated, and whom a signal reaches.
@Suite struct SignalTests {
    private static func wait(_ id: Int, _ options: String = #"{"name": "paid", "key": "7"}"#) -> String {
        "millrace.wait('1-9-\(id)', 'pay', 'signal', '\(options)')"
    }

    private static let sent = #"select millrace.signal('paid', '7', '{"cents": 5}')"#
    private static let tell = "select told from millrace.signals_tell()"

    @Test func `a wait that is asked again after a lost answer says the same, and a lost lease is refused`()
        async throws
    {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            #expect(try await connection.value(Self.wait(id)) == nil)
            #expect(try await connection.value(Self.wait(id)) == nil)
            let refused = try await connection.refusal(of: "select millrace.step('1-9-\(id)', 'more')")
            #expect(refused?.sqlState == "55000")
            #expect(try await connection.refusal(of: "select \(Self.wait(id + 1))")?.sqlState == "55000")
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 8") == 1)
            #expect(try await connection.int("select count(*) from millrace.timer") == 1)
        }
    }

    @Test func `a signal that is told while a wait commits finds it`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let teller = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.claimedJob()
            try await worker.run("begin")
            #expect(try await worker.value(Self.wait(id)) == nil)
            try await watcher.run(Self.sent)
            let process = try await teller.process()
            async let told = teller.int(Self.tell)
            try await waitUntilBlocked(process, seenBy: watcher)
            try await worker.run("commit")
            // It may have given up before the commit, and looks again.
            if try await told == 0 {
                try await eventually("it is looked at again") { try await watcher.int(Self.tell) == 1 }
            }
            #expect(try await watcher.int("select job from millrace.ready") == id)
            #expect(try await watcher.int("select taken_by from millrace.signal where state = 2") == id)
            for connection in [worker, teller, watcher] { await connection.close() }
        }
    }

    /// 1. A handler's transaction in repeatable read takes its snapshot. 2. A signal is sent, and kept, for nobody waits. 3. The handler waits for it.
    @Test func `a wait with an older snapshot finds a signal that was kept since`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let sender = try await database.connect()
            let id = try await worker.claimedJob()
            try await worker.run("begin isolation level repeatable read; select count(*) from millrace.job")
            try await sender.run(Self.sent)
            #expect(try await sender.int(Self.tell) == 0)
            #expect(try await worker.value(Self.wait(id)) == nil)
            try await worker.run("commit")
            #expect(try await sender.int(Self.tell) == 1)
            #expect(try await worker.value("select value -> 'value' ->> 'cents' from millrace.steps(\(id))") == "5")
            for connection in [worker, sender] { await connection.close() }
        }
    }

    @Test func `a wait that begins while a signal is told finds it`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let teller = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.claimedJob()
            try await watcher.run(Self.sent)
            try await teller.run("begin")
            #expect(try await teller.int(Self.tell) == 0)
            let process = try await worker.process()
            async let answer = worker.value(Self.wait(id) + " #>> '{value,cents}'")
            try await waitUntilBlocked(process, seenBy: watcher)
            try await teller.run("commit")
            #expect(try await answer == "5")
            #expect(try await watcher.int("select taken_by from millrace.signal where state = 2") == id)
            // Taken, it is on record: a run that has lost the answer gets the same.
            #expect(try await worker.value(Self.wait(id) + " #>> '{value,cents}'") == "5")
            for connection in [worker, teller, watcher] { await connection.close() }
        }
    }

    /// 1. A wait has its turn. 2. A worker looks for signals to tell, and needs that turn. 3. The wait takes the signal.
    @Test func `a wait and a worker that tells the same signal do not wait for each other`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let teller = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.claimedJob()
            try await watcher.run(Self.sent)
            try await worker.run("begin")
            try await worker.run(
                "select millrace.turns_wait('signal', array[millrace.signal_bucket('paid', '7')])")
            let process = try await teller.process()
            async let told = teller.int(Self.tell)
            try await waitUntilBlocked(process, seenBy: watcher)
            #expect(try await worker.value(Self.wait(id) + " #>> '{value,cents}'") == "5")
            try await worker.run("commit")
            #expect(try await told == 0)
            for connection in [worker, teller, watcher] { await connection.close() }
        }
    }

    @Test func `a transaction that cancels a waiting job holds up no signals, and loses none when it is rolled back`()
        async throws
    {
        try await withDatabase { database in
            let user = try await database.connect()
            let connection = try await database.connect()
            let held = try await connection.claimedJob()
            #expect(try await connection.value(Self.wait(held)) == nil)
            try await user.run("begin")
            #expect(try await user.bool("select millrace.cancel(\(held))"))
            try await connection.run(Self.sent)
            try await connection.run("set lock_timeout = '5 s'")
            #expect(try await connection.int(Self.tell) == 0)
            #expect(try await connection.int("select state from millrace.signal") == 0)
            try await user.run("rollback")
            try await eventually("it is looked at again") { try await connection.int(Self.tell) == 1 }
            #expect(try await connection.int("select job from millrace.ready") == held)
            for connection in [user, connection] { await connection.close() }
        }
    }

    /// 1. A transaction cancels eight waiting jobs, and stays open. 2. All of them are told something, and so is another. 3. Workers look at five
    /// signals at a time.
    @Test func `however many waiting jobs a transaction holds, others are told, and those later in their order`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let user = try await database.connect()
            let connection = try await database.connect()
            for _ in 0..<8 { try await connection.enqueue() }
            let last = try await connection.claimedJob()
            let ids = try await connection.column("select unnest(ids) from millrace.lease order by 1").map {
                Int($0) ?? 0
            }
            for id in ids {
                let name = id == last ? "other" : "paid"
                #expect(
                    try await connection.value("millrace.wait('1-9-\(id)', 'pay', 'signal', '{\"name\": \"\(name)\"}')")
                        == nil)
            }
            try await user.run("begin; select count(millrace.cancel(job)) from millrace.wait where name = 'paid'")
            for n in 1...8 { try await connection.run("select millrace.signal('paid', payload => '\(n)')") }
            try await connection.run("select millrace.signal('other'); set lock_timeout = '5 s'")
            func tell() async throws -> Int {
                try await connection.int("select told from millrace.signals_tell(most => 5)")
            }
            #expect(try await tell() == 0)
            #expect(try await tell() == 1)
            #expect(try await connection.int("select job from millrace.ready") == last)
            // One that comes later is not told before the others of its name and key.
            try await user.run("rollback")
            try await connection.run("select millrace.signal('paid', payload => '9')")
            #expect(try await tell() == 0)
            try await connection.run("select millrace.test_clock_advance('2 s')")
            #expect(try await tell() == 5)
            try await connection.run("select millrace.test_clock_advance('2 s')")
            #expect(try await tell() == 3)
            #expect(
                try await connection.column(
                    "select value ->> 'value' from millrace.step where asked ->> 'name' = 'paid' order by job")
                    == (1...8).map(String.init))
            #expect(try await connection.int("select count(*) from millrace.signal where state = 1") == 1)
            for connection in [user, connection] { await connection.close() }
        }
    }

    /// 1. A wait of an open transaction has its turn. 2. A signal of that name is sent, and one of another.
    @Test func `an open transaction that waits for one signal keeps no other waiting`() async throws {
        try await withDatabase { database in
            let user = try await database.connect()
            let connection = try await database.connect()
            try await connection.enqueue()
            let last = try await connection.claimedJob()
            let other = #"{"name": "other"}"#
            #expect(
                try await connection.value("millrace.wait('1-9-\(last)', 'pay', 'signal', '\(other)')") == nil)
            try await user.run(
                "begin; select millrace.wait('1-9-\(last - 1)', 'pay', 'signal', '{\"name\": \"paid\"}')")
            try await connection.run("select millrace.signal('paid'); select millrace.signal('other')")
            try await eventually("the other is told") { try await connection.int(Self.tell) == 1 }
            // Alone, it does not keep the teller for long either.
            #expect(try await connection.int(Self.tell) == 0)
            try await user.run("commit")
            try await eventually("it is told") { try await connection.int(Self.tell) == 1 }
            for connection in [user, connection] { await connection.close() }
        }
    }

    @Test func `a wait that is rolled back takes nothing`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.run(Self.sent)
            try await connection.run("begin")
            #expect(try await connection.value(Self.wait(id) + " #>> '{value,cents}'") == "5")
            try await connection.run("rollback")
            #expect(try await connection.int("select count(*) from millrace.signal where state < 2") == 1)
            #expect(try await connection.int("select count(*) from millrace.step") == 0)
        }
    }

    @Test func `a signal reaches the jobs that its sender may see`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let worker = try await database.connect()
            func claims(_ tenant: String) async throws {
                try await client.run(
                    "select set_config('request.jwt.claims', '{\"sub\": \"p\", \"tenant\": \"\(tenant)\"}', false)")
            }
            try await claims("a")
            let id = try await client.int("select millrace.enqueue('test')")
            try await worker.openSession()
            try await worker.claim()
            #expect(try await worker.value(Self.wait(id)) == nil)
            try await claims("b")
            try await client.run(Self.sent)
            #expect(try await owner.int(Self.tell) == 0)
            #expect(try await owner.int("select count(*) from millrace.ready") == 0)
            try await claims("a")
            try await client.run(Self.sent)
            #expect(try await owner.int(Self.tell) == 1)
            #expect(try await owner.value("select tenant from millrace.signal where state = 2") == "a")
            let denied = try await client.refusal(of: "select millrace.approval_answer(gen_random_uuid(), true)")
            #expect(denied?.sqlState == "42501")
            for connection in [client, worker] { await connection.close() }
        }
    }

    @Test func `what is wrong with a signal is said, and nothing is kept of it`() async throws {
        try await withConnection { connection in
            for (call, state) in [
                ("''", "22023"), ("null", "22023"), ("repeat('x', 129)", "22023"), ("'a', E'\\u0001'", "22023"),
                ("'a', keep => '0 s'", "22023"), ("'a', id => ''", "22023"), ("'millrace.approval'", "22023"),
                ("'a', payload => to_jsonb(repeat('x', 70000))", "53400"),
            ] {
                let refused = try await connection.refusal(of: "select millrace.signal(\(call))")
                #expect(refused?.sqlState == state, "\(call): \(refused?.message ?? "taken")")
            }
            #expect(try await connection.int("select count(*) from millrace.signal") == 0)
            try await connection.run(
                "insert into millrace.signal (name, key, payload, to_all, owner, anywhere, at, expires_at, state) select 'a', '', 'null', false, o, true, now(), now() + '1 d', 1 from generate_series(1, 10000), unnest(array['x', current_user]) o"
            )
            #expect(try await connection.refusal(of: "select millrace.signal('a')")?.sqlState == "53400")
            try await connection.run("update millrace.signal set expires_at = now() - interval '1 s' where seq % 2 = 0")
            #expect(try await connection.int("select millrace.signals_expire()") == 10000)
            try await connection.run("delete from millrace.signal")
            // What another sender keeps is no hindrance, and a job finds its signal behind it.
            try await connection.run(
                "insert into millrace.signal (name, key, payload, to_all, owner, tenant, anywhere, at, expires_at, state) select 'a', '', 'null', false, 'x', 't' || n % 7, false, now(), now() + '1 d', 1 from generate_series(1, 20000) n"
            )
            #expect(try await connection.bool("select millrace.signal('a', payload => '\"ours\"')"))
            let id = try await connection.claimedJob()
            #expect(try await connection.value("millrace.signal_take(\(id), 'a', '') #>> '{value}'") == "ours")
            #expect(try await connection.value("millrace.signal_take(\(id), 'a', '') #>> '{value}'") == nil)
        }
    }
}
