import Postgres
import TestSupport
import Testing

@Suite struct LifeTests {
    @Test func `a claim takes the first in line, of known kinds, in queues that are not paused`() async throws {
        try await withConnection { connection in
            let late = try await connection.enqueue("'test', priority => 9")
            let first = try await connection.enqueue("'test', priority => 0")
            let second = try await connection.enqueue("'test', priority => 0")
            let other = try await connection.enqueue("'other', priority => 0")
            let paused = try await connection.enqueue("'test', queue => 'still'")
            try await connection.run("select millrace.pause('still')")
            try await connection.openSession()
            #expect(try await connection.claim(wanted: 2, kinds: ["test"]) == [first, second])
            #expect(try await connection.claim(number: 16, kinds: ["test"]) == [late])
            #expect(try await connection.state(other) == "ready")
            #expect(try await connection.state(paused) == "ready")
            try await connection.run("select millrace.resume('still')")
            #expect(Set(try await connection.claim(number: 24)) == [other, paused])
            #expect(try await connection.claim(number: 32).isEmpty)
            #expect(try await connection.int("select count(*) from millrace.lease") == 3)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a claim stays above the floor, below the ceiling, and within the limit of a lane`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<6 { ids.append(try await connection.enqueue()) }
            try await connection.openSession()
            let taken = try await connection.column(
                """
                select id from millrace.claim(1, 8, array[1], array[1], array[17], array[\(ids[1])]::bigint[], array[\(ids[4])]::bigint[],
                    array[2], 100, '{}', '{}') order by seq
                """)
            #expect(taken == [ids[2], ids[3]].map(String.init))
        }
    }

    /// A snapshot alone lists no writer that is younger than the youngest that has ended.
    @Test func `the horizon names every writer that may have drawn a number, also when none has ended`() async throws {
        try await withDatabase(.migrated) { database in
            let observer = try await database.connect()
            var writers: [Connection] = []
            var expected: Set<String> = []
            for _ in 0..<5 {
                let writer = try await database.connect()
                try await writer.run("begin")
                expected.insert(try await writer.value("select pg_current_xact_id()") ?? "")
                writers.append(writer)
            }
            let named = Set(try await observer.column("select unnest(writers) from millrace.horizon()"))
            #expect(named.isSuperset(of: expected))
            for writer in writers { try await writer.run("rollback") }
            let left = Set(try await observer.column("select unnest(writers) from millrace.horizon()"))
            #expect(left.isDisjoint(with: expected))
            for connection in writers + [observer] { await connection.close() }
        }
    }

    @Test func `nothing can be claimed for a session that is gone`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            let error = try await failure { try await connection.claim(77) }
            #expect(error?.sqlState == "23503")
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test func `each retention class gets a lease of its own, and so does a lone suspect`() async throws {
        try await withConnection { connection in
            for queue in ["brief", "usual", "ages"] { try await connection.enqueue("'test', queue => '\(queue)'") }
            try await connection.run(
                "select millrace.retention_set('brief', 'short'), millrace.retention_set('ages', 'long')")
            let lone = try await connection.enqueue("'test'")
            try await connection.run("update millrace.ready set lane = 19, crashes = 3 where job = \(lone)")
            try await connection.openSession()
            try await connection.claim()
            #expect(
                try await connection.column("select number from millrace.lease order by 1") == ["8", "9", "10", "13"])
            #expect(try await connection.column("select crashes from millrace.lease where number = 13") == ["{3}"])
        }
    }

    @Test func `two claims at once share the jobs and double none`() async throws {
        try await withDatabase { database in
            let setup = try await database.connect()
            try await setup.run("select millrace.enqueue('test') from generate_series(1, 500)")
            var total: [Int] = []
            try await setup.openSession(1)
            try await withThrowingTaskGroup(of: [Int].self) { group in
                for caller in 0..<4 {
                    let connection = try await database.connect()
                    group.addTask {
                        var mine: [Int] = []
                        for turn in 0..<100 {
                            let got = try await connection.claim(number: (caller * 100 + turn + 1) * 8, wanted: 7)
                            if got.isEmpty { break }
                            mine += got
                        }
                        return mine
                    }
                }
                for try await mine in group { total += mine }
            }
            #expect(total.count == 500 && Set(total).count == 500)
        }
    }

    @Test func `a lease is finished in parts, and only its last part ends it`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<3 { ids.append(try await connection.enqueue("'test', unique_key => gen_random_uuid()::text")) }
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9]) == [9])
            #expect(try await connection.state(ids[0]) == "succeeded")
            #expect(try await connection.state(ids[1]) == "running")
            // Named complete too early: one job is not accounted for, and nothing happens.
            #expect(try await connection.finish([.init(id: ids[1], outcome: 1)], complete: [9: 1]).isEmpty)
            #expect(try await connection.state(ids[1]) == "running")
            let last = [Connection.End(id: ids[1], outcome: 1), .init(id: ids[2], outcome: 3, error: "no")]
            #expect(try await connection.finish(last, complete: [9: 2]) == [9])
            #expect(try await connection.state(ids[2]) == "dead")
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
        }
    }

    @Test func `a stale token changes nothing, and is reported as such`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.rescue()?.hasPrefix("(1,1,0,0") == true)
            for outcome in 1...6 {
                let end = Connection.End(id: id, outcome: outcome, error: "late", wait: 0)
                #expect(try await connection.finish([end], complete: [9: 1]).isEmpty)
                #expect(try await connection.finish([end], partial: [9]).isEmpty)
            }
            #expect(try await connection.state(id) == "ready")
            #expect(try await connection.int("select count(*) from millrace.history") == 1)
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 1)
        }
    }

    @Test func `one flush may hold every outcome, of live leases and lost ones`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<7 { ids.append(try await connection.enqueue("'test', unique_key => gen_random_uuid()::text")) }
            try await connection.openSession()
            try await connection.claim(wanted: 6)
            try await connection.claim(number: 16)
            try await connection.run("select millrace.leases_return(1, array[17::bigint, 16])")
            let ends = (1...6).map { outcome in
                Connection.End(
                    id: ids[outcome - 1], outcome: outcome, error: [3, 4].contains(outcome) ? "why" : nil,
                    wait: outcome == 5 ? 60 : 0)
            }
            let lost = Connection.End(id: ids[6], outcome: 1, number: 17)
            #expect(try await connection.finish(ends + [lost], complete: [9: 6, 17: 1]) == [9])
            let states = try await ids.asyncMap { try await connection.state($0) ?? "none" }
            #expect(states == ["succeeded", "cancelled", "dead", "scheduled", "scheduled", "ready", "ready"])
            let attempts = try await connection.column(
                "select attempt from millrace.jobs where state in ('ready', 'scheduled') order by id")
            #expect(attempts == ["1", "0", "0", "0"])
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 4)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a flush sent twice is refused, and what it recorded can be read`() async throws {
        try await withConnection { connection in
            let ids = [try await connection.enqueue(), try await connection.enqueue()]
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9])
            let error = try await failure {
                _ = try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9])
            }
            #expect(error?.sqlState == "23505")
            let recorded = try await connection.column(
                "select unnest(millrace.recorded(1, array[\(ids[0]), \(ids[1])], array[9, 9]))")
            #expect(recorded == ["\(ids[0])"])
        }
    }

    @Test func `a cancel wins over another run, but not over a success`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<4 { ids.append(try await connection.enqueue("'test', unique_key => gen_random_uuid()::text")) }
            try await connection.openSession()
            try await connection.claim()
            for id in ids { #expect(try await connection.bool("select millrace.cancel(\(id))")) }
            #expect(
                try await connection.column("select job from millrace.cancels(1) order by 1") == ids.map(String.init))
            let ends = zip(ids, [1, 4, 5, 6]).map {
                Connection.End(id: $0, outcome: $1, error: $1 == 4 ? "x" : nil, wait: 0)
            }
            #expect(try await connection.finish(ends, complete: [9: 4]) == [9])
            let states = try await ids.asyncMap { try await connection.state($0) ?? "none" }
            #expect(states == ["succeeded", "cancelled", "cancelled", "cancelled"])
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
        }
    }

    @Test func `a cancelled job does not come back with a lease that is returned or rescued`() async throws {
        try await withConnection { connection in
            let ids = [
                try await connection.enqueue("'test', unique_key => 'a'"),
                try await connection.enqueue("'test', unique_key => 'b'"),
            ]
            try await connection.openSession()
            try await connection.claim(wanted: 1)
            try await connection.claim(number: 16)
            for id in ids { #expect(try await connection.bool("select millrace.cancel(\(id))")) }
            #expect(try await connection.int("select jobs from millrace.leases_return(1, array[8, 9]::bigint[])") == 0)
            #expect(try await connection.state(ids[0]) == "cancelled")
            _ = try await connection.rescue()
            #expect(try await connection.state(ids[1]) == "cancelled")
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
        }
    }

    @Test func `a rescue needs the beat that was seen, and leaves leases that a handler holds`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let handler = try await database.connect()
            let ids = [try await connection.enqueue(), try await connection.enqueue()]
            try await connection.openSession()
            try await connection.claim(wanted: 1)
            try await connection.claim(number: 16)
            try await connection.run("select millrace.beat(1, 'working', 1, 0, 0)")
            #expect(try await connection.rescue(beat: 0) == "(0,0,0,0)")
            try await handler.run("begin; select from millrace.lease where number = 9 for key share")
            #expect(try await connection.rescue(beat: 1) == "(1,1,0,1)")
            #expect(try await connection.state(ids[0]) == "running")
            #expect(try await connection.state(ids[1]) == "ready")
            try await handler.run("rollback")
            #expect(try await connection.rescue(beat: 1) == "(1,1,0,0)")
            let rows = try await connection.records(
                "select attempt, crashes, priority, state from millrace.jobs order by id")
            #expect(rows == ["(0,1,4,ready)", "(0,1,4,ready)"])
            #expect(try await connection.bool("select not millrace.beat(1, 'working', 0, 0, 0)"))
            #expect(try await connection.value("select ending from millrace.process") == "lost")
        }
    }

    @Test func `crashes make a suspect, then a lone one, and two lone crashes quarantine`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            var lanes: [String] = []
            for turn in 1...5 {
                try await connection.openSession(turn)
                #expect(try await connection.claim(turn, number: turn * 8) == [id])
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.lease where (number & 4 <> 0) = \(turn > 3)") == 1)
                _ = try await connection.rescue(turn)
                lanes += try await connection.column("select lane & 3 from millrace.ready")
            }
            #expect(lanes == ["0", "2", "3", "3"])
            let row = try await connection.records(
                "select state, attempt, crashes, jsonb_array_length(errors) from millrace.job(\(id))")
            #expect(row == ["(dead,1,5,5)"])
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
        }
    }

    @Test func `a worker that ends leaves nothing, and says how many went back`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.int("select jobs from millrace.session_close(1)") == 1)
            #expect(try await connection.state(id) == "ready")
            #expect(try await connection.value("select ending from millrace.process") == "stopped")
        }
    }

    @Test func `a job is cancelled wherever it stands, and an ended one is not`() async throws {
        try await withConnection { connection in
            let ready = try await connection.enqueue("'test', unique_key => 'a'")
            let later = try await connection.enqueue("'test', run_at => now() + interval '1 day', unique_key => 'b'")
            for id in [ready, later] {
                #expect(try await connection.bool("select millrace.cancel(\(id))"))
                #expect(try await connection.state(id) == "cancelled")
                #expect(try await connection.bool("select not millrace.cancel(\(id))"))
            }
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
            #expect(try await connection.refusal(of: "select millrace.cancel(99)")?.sqlState == "P0002")
        }
    }

    /// 1. A claim has taken the job and not committed. 2. A cancel waits for it. 3. The claim commits: the cancel finds the lease.
    @Test func `a cancel follows a job that is being claimed`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let user = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.enqueue()
            try await worker.openSession()
            try await worker.run("begin")
            try await worker.claim()
            let process = try await user.process()
            let cancel = Task { try await user.bool("select millrace.cancel(\(id))") }
            try await waitUntilBlocked(process, seenBy: watcher)
            try await worker.run("commit")
            #expect(try await cancel.value)
            #expect(try await watcher.column("select job from millrace.cancels(1)") == ["\(id)"])
        }
    }

    /// 1. The job runs. 2. A cancel has told its worker, and not committed. 3. The worker, unknowing, asks for another run.
    /// 4. The cancel commits; it was answered with true.
    @Test func `a cancel that was promised is not undone by a retry beside it`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let user = try await database.connect()
            let id = try await worker.enqueue()
            try await worker.openSession()
            try await worker.claim()
            try await user.run("begin")
            #expect(try await user.bool("select millrace.cancel(\(id))"))
            let process = try await worker.process()
            let flush = Task {
                try await worker.finish([.init(id: id, outcome: 4, error: "x", wait: 0)], complete: [9: 1])
            }
            _ = try? await eventually("the flush waits", within: .milliseconds(500)) {
                try await user.bool("select wait_event_type = 'Lock' from pg_stat_activity where pid = \(process)")
            }
            try await user.run("commit")
            _ = try await flush.value
            // The two did not see each other; every worker looks for that once a second.
            #expect(try await worker.int("select millrace.heed_cancels()") == 1)
            #expect(try await worker.state(id) == "cancelled")
            #expect(try await worker.int("select millrace.heed_cancels()") == 0)
        }
    }

    @Test(arguments: [true, false]) func `a cancel that crosses with a rescue or a hand-back is made good`(
        _ isRescue: Bool
    )
        async throws
    {
        try await withDatabase { database in
            let worker = try await database.connect()
            let user = try await database.connect()
            let id = try await worker.enqueue()
            try await worker.openSession()
            try await worker.claim()
            try await user.run("begin")
            #expect(try await user.bool("select millrace.cancel(\(id))"))
            if isRescue {
                _ = try await worker.rescue()
            } else {
                try await worker.run("select millrace.leases_return(1, array[9])")
            }
            #expect(try await worker.state(id) == "ready")
            try await user.run("commit")
            #expect(try await worker.int("select millrace.heed_cancels()") == 1)
            #expect(try await worker.state(id) == "cancelled")
            #expect(try await worker.int("select count(*) from millrace.cancel") == 0)
        }
    }

    @Test func `a dead job is driven again from its first attempt, once`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish([.init(id: id, outcome: 3, error: "broken")], complete: [9: 1])
            let two = try await database.connect()
            async let one = connection.bool("select millrace.retry(\(id))")
            async let other = two.bool("select millrace.retry(\(id))")
            let both = try await [one, other]
            #expect(both.filter { $0 }.count == 1)
            #expect(
                try await connection.records(
                    "select state, attempt, jsonb_array_length(errors) from millrace.job(\(id))") == ["(ready,0,1)"])
            #expect(try await connection.int("select count(*) from millrace.jobs where id = \(id)") == 1)
            #expect(try await connection.enqueue("'test', unique_key => 'k'") == id)
            try await connection.run("select millrace.cancel(\(id))")
            let holder = try await connection.enqueue("'test', unique_key => 'k'")
            let error = try await connection.refusal(of: "select millrace.retry(\(id))")
            #expect(error?.sqlState == "23505" && error?.message.contains("\(holder)") == true)
            #expect(try await connection.state(id) == "cancelled")
        }
    }

    @Test func `waiting jobs move in time, others are left alone`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            #expect(try await connection.bool("select millrace.reschedule(\(id), now() + interval '1 day')"))
            #expect(try await connection.state(id) == "scheduled")
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            #expect(try await connection.state(id) == "ready")
            #expect(try await connection.bool("select millrace.reschedule(\(id), now() - interval '1 day')"))
            #expect(try await connection.state(id) == "ready")
            #expect(
                try await connection.refusal(of: "select millrace.reschedule(\(id), 'infinity')")?.sqlState == "22023")
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.bool("select not millrace.reschedule(\(id), now())"))
            #expect(try await connection.bool("select not millrace.retry(\(id))"))
            #expect(try await connection.refusal(of: "select millrace.job_delete(\(id))")?.sqlState == "55000")
            _ = try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1])
            #expect(try await connection.bool("select millrace.job_delete(\(id))"))
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.job) + (select count(*) from millrace.history)") == 0)
        }
    }

    @Test func `what comes due is moved in order of time, and the next due time is told`() async throws {
        try await withConnection(.movableClock) { connection in
            var ids: [Int] = []
            for minutes in [3, 1, 2, 60] {
                ids.append(try await connection.enqueue("'test', run_at => millrace.now() + interval '\(minutes) min'"))
            }
            #expect(try await connection.value("select moved from millrace.promote(null, 10)") == "0")
            try await connection.run("select millrace.test_clock_advance('10 min')")
            let first = try await connection.records(
                "select moved, upto = (select due from millrace.timer where job = \(ids[2])) from millrace.promote(null, 2)"
            )
            #expect(first == ["(2,t)"])
            let rest = try await connection.records("select moved, next_due > t from millrace.promote(null, 10)")
            #expect(rest == ["(1,t)"])
            #expect(
                try await connection.column("select job from millrace.ready order by seq")
                    == [ids[1], ids[2], ids[0]].map(String.init))
            #expect(
                try await connection.value("select moved from millrace.promote(millrace.now() + interval '1 day', 10)")
                    == "0")
        }
    }
}

extension Sequence where Element: Sendable {
    func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
