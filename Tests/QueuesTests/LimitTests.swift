import Postgres
import TestSupport
import Testing

@Suite struct LimitTests {
    @Test func `no more of a key run at once than its limit, and the others wait aside in their order`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "user:1", #"{"concurrency": 3}"#)
            var ids: [Int] = []
            for _ in 0..<6 { ids.append(try await connection.enqueue("'test', limit_key => 'user:1'")) }
            let free = try await connection.enqueue("'test', limit_key => 'user:2'")
            let plain = try await connection.enqueue()
            try await connection.openSession()
            #expect(Set(try await connection.claim()) == Set(ids[..<3] + [free, plain]))
            #expect(
                try await connection.column("select job from millrace.parked order by job")
                    == ids[3...].map(String.init))
            #expect(
                try await connection.records("select state, limited_by from millrace.job(\(ids[4]))") == [
                    "(ready,user:1)"
                ])
            #expect(try await connection.int("select ready from millrace.queues where queue = 'default'") == 3)
            #expect(try await connection.int("select (millrace.gates_open()).moved") == 0)
            #expect(try await connection.claim(number: 16).isEmpty)

            try await connection.end([ids[0]])
            try await connection.expectExactSlots(held: 2)
            #expect(try await connection.int("select (millrace.gates_open()).moved") == 1)
            #expect(try await connection.claim(number: 24) == [ids[3]])
            try await connection.expectExactSlots(held: 3)
            try await connection.expectOnePlaceEach()
        }
    }

    enum Ending: String, CaseIterable {
        case finished, retried, snoozed, released, cancelled, dead, completed, rescued, returned
    }

    /// Every way to end the claim gives the slot back, once.
    @Test(arguments: Ending.allCases)
    func `every way to end a claim gives its slots back`(ending: Ending) async throws {
        try await withConnection { connection in
            try await connection.limit("key", "k", #"{"concurrency": 1}"#)
            try await connection.limit("queue", "default", #"{"concurrency": 5}"#)
            try await connection.limit("tenant", "acme", #"{"concurrency": 5}"#)
            let id = try await connection.enqueue("'test', limit_key => 'k', tenant => 'acme'")
            try await connection.openSession()
            #expect(try await connection.claim() == [id])
            try await connection.expectExactSlots(held: 3)
            switch ending {
            case .finished: try await connection.end([id])
            case .cancelled: try await connection.end([id], outcome: 2)
            case .dead: try await connection.end([id], outcome: 3)
            case .retried: try await connection.end([id], outcome: 4)
            case .snoozed: try await connection.end([id], outcome: 5)
            case .released: try await connection.end([id], outcome: 6)
            case .completed:
                #expect(try await connection.bool("select millrace.complete('1-9-\(id)')"))
                #expect(try await connection.bool("select millrace.complete('1-9-\(id)')") == false)
            case .rescued: _ = try await connection.rescue()
            case .returned: try await connection.run("select millrace.leases_return(1, array[9])")
            }
            try await connection.expectExactSlots(held: 0)
            // A late end under the old token gives nothing back again.
            if ending != .completed { try await connection.end([id]) }
            try await connection.expectExactSlots(held: 0)
        }
    }

    @Test func `eight workers that claim and finish at once never hold more than the limit`() async throws {
        try await withDatabase { database in
            let watcher = try await database.connect()
            try await watcher.limit("key", "k", #"{"concurrency": 3}"#)
            try await watcher.run(
                "select count(millrace.enqueue('test', limit_key => 'k')) from generate_series(1, 200)")
            try await watcher.openSession(99)
            let most = try await withThrowingTaskGroup(of: Int.self) { group in
                for session in 1...8 {
                    group.addTask {
                        let connection = try await database.connect()
                        try await connection.openSession(session)
                        var most = 0
                        var turn = 0
                        while try await connection.int("select count(*) from millrace.history") < 200, turn < 2000 {
                            turn += 1
                            let ids = try await connection.claim(session, number: turn * 8, wanted: 10)
                            let running = try await connection.int("select coalesce(sum(n), 0) from millrace.lease")
                            most = max(most, running)
                            if !ids.isEmpty {
                                try await connection.end(ids, session: session, number: turn * 8 + 1)
                            }
                            try await connection.run("select millrace.gates_open()")
                        }
                        await connection.close()
                        return most
                    }
                }
                return try await group.reduce(0, max)
            }
            #expect(most <= 3 && most > 0)
            #expect(try await watcher.int("select count(*) from millrace.history where outcome = 1") == 200)
            try await watcher.expectExactSlots(held: 0)
            await watcher.close()
        }
    }

    @Test func `a queue's limit holds across its lines and lanes, and what it turns away stays in line`() async throws {
        try await withConnection { connection in
            try await connection.limit("queue", "default", #"{"concurrency": 2}"#)
            let last = try await connection.enqueue("'test', priority => 9")
            let first = try await connection.enqueue("'test', priority => 0")
            let keyed = try await connection.enqueue("'test', priority => 0, limit_key => 'k'")
            let tenant = try await connection.enqueue("'test', priority => 1, tenant => 'acme'")
            let free = try await connection.enqueue("'test', queue => 'other'")
            try await connection.openSession()
            #expect(Set(try await connection.claim()) == [first, keyed, free])
            #expect(try await connection.int("select count(*) from millrace.parked") == 0)
            #expect(try await connection.int("select count(*) from millrace.ready") == 2)
            try await connection.end([first, keyed])
            #expect(Set(try await connection.claim(number: 16)) == [tenant, last])
            try await connection.expectExactSlots(held: 2)
        }
    }

    @Test func `a tenant's limit holds in all queues together`() async throws {
        try await withConnection { connection in
            try await connection.limit("tenant", "acme", #"{"concurrency": 2, "weight": 3}"#)
            for queue in ["a", "b", "a", "b"] {
                try await connection.enqueue("'test', queue => '\(queue)', tenant => 'acme'")
            }
            let other = try await connection.enqueue("'test', queue => 'a', tenant => 'small'")
            try await connection.openSession()
            let ids = try await connection.claim()
            #expect(ids.count == 3 && ids.contains(other))
            #expect(try await connection.claim(number: 16).isEmpty)
            try await connection.expectExactSlots(held: 2)
        }
    }

    @Test func `a rate lets a burst through, then one after the other, and never more in any span`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            try await connection.limit("key", "k", #"{"rate": 2, "per": 1, "burst": 4}"#)
            try await connection.limit("queue", "q", #"{"rate": 2, "per": 1, "burst": 4}"#)
            for queue in ["default", "q"] {
                let key = queue == "q" ? "null" : "'k'"
                try await connection.run(
                    "select count(millrace.enqueue('test', queue => '\(queue)', limit_key => \(key))) from generate_series(1, 40)"
                )
            }
            try await connection.openSession()
            func clock() async throws -> Double {
                let text = try await connection.value("select extract(epoch from millrace.now())") ?? ""
                return try #require(Double(text))
            }
            var taken = 0
            var first = (before: 0.0, after: 0.0)
            for turn in 1...6 {
                let before = try await clock()
                try await connection.run("select millrace.gates_open()")
                taken += try await connection.claim(number: turn * 8).count
                let after = try await clock()
                if turn == 1 { first = (before, after) }
                // Four of each at once, then one of each every half second; the clock also moves on its own.
                let least = turn == 1 ? 4 : 4 + Int((before - first.after) / 0.5)
                let most = 4 + Int((after - first.before) / 0.5)
                #expect((2 * least...2 * most).contains(taken), "turn \(turn)")
                // When the next opens; unless this took so long that one had opened meanwhile.
                let wait = try await connection.value("select next_s from millrace.gates_open()")
                let later = try await clock()
                let isOpen = wait == nil && 4 + Int((later - first.before) / 0.5) > least
                #expect(isOpen || Double(wait ?? "").map { $0 > 0 && $0 <= 0.5 } == true, "turn \(turn)")
                try await connection.run("select millrace.test_clock_advance('510 ms')")
            }
            // After a long rest no more than the burst.
            try await connection.run("select millrace.test_clock_advance('1 hour')")
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 80).count == 8)
            await connection.close()
        }
    }

    @Test func `a prefix is the rule of each of its keys, and a key's own rule goes before`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "user:*", #"{"concurrency": 1}"#)
            try await connection.limit("key", "user:vip:*", #"{"concurrency": 2}"#)
            try await connection.limit("key", "user:vip:7", #"{"concurrency": 3}"#)
            for key in ["user:1", "user:2", "user:vip:1", "user:vip:7", "other"] {
                try await connection.run(
                    "select count(millrace.enqueue('test', limit_key => '\(key)')) from generate_series(1, 4)")
            }
            try await connection.openSession()
            try await connection.claim()
            #expect(
                try await connection.records(
                    """
                    select j.limit_key, count(*) from millrace.lease l cross join unnest(l.ids) u(id) join millrace.job j on j.id = u.id
                     group by 1 order by 1
                    """) == ["(other,4)", "(user:1,1)", "(user:2,1)", "(user:vip:1,2)", "(user:vip:7,3)"])
        }
    }

    @Test func `a limit that is changed holds at once, up, down and away`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "select count(millrace.enqueue('test', limit_key => 'k')) from generate_series(1, 20)")
            try await connection.limit("key", "k", #"{"concurrency": 2}"#)
            try await connection.openSession()
            #expect(try await connection.claim(number: 8).count == 2)
            try await connection.limit("key", "k", #"{"concurrency": 5}"#)
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 16).count == 3)
            try await connection.limit("key", "k", #"{"concurrency": 1}"#)
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 24).isEmpty)
            #expect(try await connection.bool("select millrace.limit_set('key', 'k', null)"))
            #expect(try await connection.bool("select millrace.limit_set('key', 'k', '{}')") == false)
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 32).count == 15)
            try await connection.expectExactSlots(held: 5)
        }
    }

    @Test func `a concurrency of nothing stops a queue and loses nothing`() async throws {
        try await withConnection { connection in
            try await connection.limit("queue", "default", #"{"concurrency": 0}"#)
            let id = try await connection.enqueue()
            try await connection.openSession()
            #expect(try await connection.claim().isEmpty)
            try await connection.run("select millrace.limit_set('queue', 'default', null)")
            #expect(try await connection.claim(number: 16) == [id])
        }
    }

    @Test func `a parked job is cancelled, moved, replaced and deleted like any that waits`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "k", #"{"concurrency": 0}"#)
            var ids: [Int] = []
            for n in 0..<4 {
                ids.append(try await connection.enqueue("'test', limit_key => 'k', unique_key => 'u\(n)'"))
            }
            try await connection.openSession()
            #expect(try await connection.claim().isEmpty)
            #expect(try await connection.int("select count(*) from millrace.parked") == 4)
            #expect(try await connection.bool("select millrace.cancel(\(ids[0]))"))
            #expect(try await connection.state(ids[0]) == "cancelled")
            #expect(try await connection.bool("select millrace.reschedule(\(ids[1]), now() + interval '1 hour')"))
            #expect(try await connection.state(ids[1]) == "scheduled")
            #expect(
                try await connection.enqueue("'test', '{\"n\": 2}', unique_key => 'u2', on_conflict => 'replace'")
                    == ids[2])
            #expect(try await connection.bool("select millrace.job_delete(\(ids[3]))"))
            #expect(try await connection.int("select count(*) from millrace.parked") == 0)
            // The replacement has no limit key any more.
            #expect(try await connection.claim(number: 16) == [ids[2]])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a job for a key whose jobs wait aside goes behind them, and is let in after them`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "k", #"{"concurrency": 1}"#)
            let first = try await connection.enqueue("'test', limit_key => 'k'")
            let second = try await connection.enqueue("'test', limit_key => 'k'")
            try await connection.openSession()
            #expect(try await connection.claim() == [first])
            let third = try await connection.enqueue("'test', limit_key => 'k'")
            try await connection.run("select millrace.enqueue_bulk('test', array['{}', '{}'], the_limit_key => 'k')")
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
            try await connection.end([first])
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 16) == [second])
            try await connection.end([second], number: 17)
            try await connection.run("select millrace.gates_open()")
            #expect(try await connection.claim(number: 24) == [third])
        }
    }

    @Test func `slots are folded as they are used, and forgotten when nothing is held`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "k", #"{"concurrency": 2}"#)
            try await connection.openSession()
            for turn in 1...200 {
                let id = try await connection.enqueue("'test', limit_key => 'k'")
                #expect(try await connection.claim(number: turn * 8) == [id])
                try await connection.end([id], number: turn * 8 + 1)
            }
            #expect(try await connection.int("select count(*) from millrace.slot") < 200)
            #expect(try await connection.int("select count(*) from millrace.slot where base") >= 1)
            // A base stays while the gate may be in use: who counts starts there.
            try await connection.run("select millrace.slots_sweep()")
            #expect(try await connection.records("select n, base from millrace.slot") == ["(0,t)"])
            try await connection.run("select millrace.slots_sweep()")
            #expect(try await connection.int("select count(*) from millrace.slot") == 0)
        }
    }

    /// An end draws its place among the slots, others fold past it, and only then does it commit.
    @Test func `a slot given back late, behind a fold, is gathered by the sweep`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let late = try await database.connect()
            try await connection.limit("key", "k", #"{"concurrency": 2}"#)
            try await connection.openSession()
            let slow = try await connection.enqueue("'test', limit_key => 'k'")
            try await connection.claim()
            try await late.run("begin; select millrace.complete('1-9-\(slow)')")
            for turn in 2...200 {
                let id = try await connection.enqueue("'test', limit_key => 'k'")
                #expect(try await connection.claim(number: turn * 8) == [id])
                try await connection.end([id], number: turn * 8 + 1)
            }
            try await late.run("commit")
            try await connection.run(
                "select count(millrace.enqueue('test', limit_key => 'k')) from generate_series(1, 3)")
            try await connection.run("select millrace.slots_sweep()")
            try await connection.expectExactSlots(held: 0)
            #expect(try await connection.claim(number: 4000).count == 2)
            for one in [connection, late] { await one.close() }
        }
    }

    @Test(arguments: [
        ("'shop', 'x', '{}'", "scope"), ("'key', '', '{}'", "name"),
        ("'queue', 'x y', '{\"concurrency\": 1}'", "queue"),
        ("'key', 'x', '[]'", "limits"), ("'key', 'x', '{\"speed\": 1}'", "limits.speed"),
        ("'key', 'x', '{\"weight\": 1}'", "limits.weight"),
        ("'key', 'x', '{\"concurrency\": -1}'", "limits.concurrency"),
        ("'key', 'x', '{\"concurrency\": 1.5}'", "limits.concurrency"), ("'key', 'x', '{\"rate\": 0}'", "limits.rate"),
        ("'key', 'x', '{\"rate\": \"10\"}'", "limits.rate"), ("'key', 'x', '{\"burst\": 3}'", "limits.rate"),
    ])
    func `a limit that makes no sense is refused with its field`(arguments: String, field: String) async throws {
        try await withConnection { connection in
            let refusal = try #require(try await connection.refusal(of: "select millrace.limit_set(\(arguments))"))
            #expect(refusal.sqlState == "22023")
            #expect(refusal.detail?.contains("\"field\" : \"\(field)\"") == true)
            #expect(try await connection.int("select count(*) from millrace.limit_rule") == 0)
        }
    }
}
