import Postgres
import Synchronization
import TestSupport
import Testing

/// Keys under several connections at once.
@Suite struct UniqueRaceTests {
    /// 1. A caller has queued a successor and not committed. 2. The holder ends: the flush does not wait. 3. The caller commits.
    @Test func `a caller's open transaction stalls no end, and its successor is not lost`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.running("1")
            try await caller.run("begin")
            let next = try await caller.put("2")
            try await worker.end(id, 1)
            #expect(try await worker.state(id) == "succeeded")
            #expect(try await worker.int("select millrace.unique_sweep()") == 0)
            try await caller.run("commit")
            #expect(try await worker.state(next) == "blocked")
            try await worker.run("select millrace.heed_cancels()")
            #expect(try await worker.state(next) == "ready")
            #expect(try await worker.keys() == ["\(next)"])
            #expect(try await worker.int("select count(*) from millrace.unique_ended") == 0)
            try await worker.expectOnePlaceEach()
        }
    }

    /// As above, but a caller wants the key before any worker has looked.
    @Test(arguments: ["skip", "replace", "error"])
    func `a caller that wants a key first settles its holder's noted end`(conflict: String) async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.running("1")
            try await caller.run("begin; select from millrace.unique_lock for update")
            try await worker.end(id, 1)
            try await caller.run("commit")
            #expect(try await worker.keys() == ["\(id)"])
            let other = try await worker.put("2", conflict: conflict)
            #expect(other != id)
            #expect(try await worker.state(other) == "ready")
            #expect(try await worker.keys() == ["\(other)"])
        }
    }

    /// Its snapshot shows nothing of the key, and the key has gone through other hands since.
    @Test(arguments: [0, 1, 5])
    func `a snapshot from before a key was known does not let it be taken twice`(rounds: Int) async throws {
        try await withDatabase { database in
            let other = try await database.connect()
            let caller = try await database.connect()
            try await caller.run("begin isolation level repeatable read; select count(*) from millrace.job")
            for _ in 0..<rounds {
                try await other.run("select millrace.cancel(\(try await other.put("1")))")
            }
            let holder = try await other.put("2")
            let refusal = try await caller.refusal(of: "select millrace.enqueue('test', unique_key => 'k')")
            #expect(refusal?.sqlState == "40001")
            try await caller.run("rollback")
            #expect(try await other.keys() == ["\(holder)"])
            #expect(try await caller.put("3", conflict: "skip") == holder)
        }
    }

    @Test func `a redrive of a holder whose end was noted is one life, not two`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.running("1")
            try await caller.run("begin; select from millrace.unique_lock for update")
            try await worker.end(id, 3)
            try await caller.run("commit")
            #expect(try await worker.bool("select millrace.retry(\(id))"))
            try await worker.run("select millrace.heed_cancels()")
            #expect(try await worker.keys() == ["\(id)"])
            #expect(try await worker.state(id) == "ready")
        }
    }

    @Test func `a caller that rolls back leaves the holder and no successor`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.running("1")
            try await caller.run("begin")
            let next = try await caller.put("2")
            try await worker.end(id, 1)
            try await caller.run("rollback")
            try await worker.run("select millrace.heed_cancels()")
            #expect(try await worker.keys().isEmpty)
            #expect(try await worker.state(next) == nil)
        }
    }

    /// 1. A claim has taken the holder and not committed. 2. A replacement waits for it. 3. The claim commits: it is followed.
    @Test func `a replacement that meets a claim follows it`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.put("1")
            try await worker.openSession()
            try await worker.run("begin")
            #expect(try await worker.claim() == [id])
            let process = try await caller.process()
            let put = Task { try await caller.put("2") }
            try await waitUntilBlocked(process, seenBy: watcher)
            try await worker.run("commit")
            let next = try await put.value
            #expect(try await watcher.keys() == ["\(id) then \(next)"])
        }
    }

    /// 1. A replacement has taken the holder out of its place and not committed. 2. A claim passes by. 3. It commits.
    @Test func `a claim that meets a replacement passes by, and finds the new work later`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.put("1")
            try await worker.openSession()
            try await caller.run("begin")
            #expect(try await caller.put("2") == id)
            #expect(try await worker.claim().isEmpty)
            try await caller.run("commit")
            #expect(try await worker.claim(number: 16) == [id])
            #expect(try await worker.records("select state, args from millrace.job(\(id))") == ["(running,2)"])
        }
    }

    @Test(arguments: ["repeatable read", "serializable"])
    func `at higher levels a race is a serialization failure, never a lost job`(level: String) async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let caller = try await database.connect()
            let id = try await worker.running("1")
            try await caller.run("begin isolation level \(level); select count(*) from millrace.job")
            try await worker.end(id, 1)
            let error = try await failure { _ = try await caller.put("2") }
            if let error {
                #expect(error.sqlState == "40001")
                try await caller.run("rollback")
            } else {
                try await caller.run("commit")
            }
            try await worker.run("select millrace.heed_cancels()")
            let living = try await worker.column("select state from millrace.jobs where state not in ('succeeded')")
            #expect(living == (error == nil ? ["ready"] : []))
        }
    }

    /// Callers replace, each its own counter; a worker claims and ends all the while. No deadlock, never two living holders, and of
    /// every caller's values the last one that ran is the newest.
    @Test func `eight callers replace while a worker runs: the last value wins and nothing is lost`() async throws {
        try await withDatabase { database in
            let watcher = try await database.connect()
            try await watcher.run("create table public.put (seq bigserial, value int)")
            try await watcher.openSession()
            let worker = try await database.connect()
            let isOver = Mutex(false)
            let working = Task {
                var turn = 1
                var ran: [String] = []
                while !isOver.withLock({ $0 }) {
                    let ids = try await worker.claim(number: turn * 8)
                    #expect(ids.count <= 1, "two holders at once: \(ids)")
                    if let id = ids.first {
                        ran.append(try await worker.value("select args from millrace.job where id = \(id)") ?? "")
                        let outcome = [1, 4, 1, 2, 6, 3, 5][turn % 7]
                        let alive = try await worker.finish(
                            [
                                .init(
                                    id: id, outcome: outcome, number: turn * 8 + 1,
                                    error: [3, 4].contains(outcome) ? "x" : nil,
                                    wait: 0)
                            ], complete: [turn * 8 + 1: 1])
                        #expect(alive == [turn * 8 + 1])
                        try await worker.run("select millrace.promote(null, 10)")
                    }
                    if turn % 10 == 0 { try await worker.run("select millrace.heed_cancels()") }
                    turn += 1
                }
                return ran
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<8 {
                    let connection = try await database.connect()
                    group.addTask {
                        for round in 0..<50 {
                            // The order of the values is the order in which the key was had.
                            try await connection.run(
                                """
                                begin;
                                select millrace.enqueue('test', '\(caller * 1000 + round)', unique_key => 'k', on_conflict => 'replace');
                                insert into public.put (value) values (\(caller * 1000 + round));
                                commit
                                """)
                        }
                        await connection.close()
                    }
                }
                try await group.waitForAll()
            }
            // Everything is enqueued: the worker continues until no job lives.
            try await eventually("everything has ended") {
                try await watcher.int(
                    """
                    select (select count(*) from millrace.ready) + (select count(*) from millrace.timer) + (select count(*) from millrace.lease)
                        + (select count(*) from millrace.unique_lock where not ended)
                    """) == 0
            }
            isOver.withLock { $0 = true }
            let ran = try await working.value
            let last = try await watcher.value("select value from public.put order by seq desc limit 1")
            #expect(ran.last == last, "ran \(ran.suffix(5)), put \(last ?? "")")
            #expect(try await watcher.int("select count(*) from public.put") == 400)
            let jobs = try await watcher.int("select count(*) from millrace.job")
            #expect(try await watcher.int("select count(*) from millrace.jobs") == jobs)
            #expect(
                try await watcher.int(
                    "select count(*) from millrace.jobs where state not in ('succeeded', 'cancelled', 'dead')") == 0)
        }
    }

    @Test func `batches that replace each other's keys in any order do not deadlock`() async throws {
        try await withDatabase { database in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<8 {
                    let connection = try await database.connect()
                    group.addTask {
                        for _ in 0..<10 {
                            try await connection.run(
                                """
                                select millrace.enqueue_many((select jsonb_agg(jsonb_build_object('kind', 'test', 'args', \(caller),
                                    'unique_key', n::text, 'on_conflict', 'replace') order by random()) from generate_series(1, 20) n))
                                """)
                        }
                        await connection.close()
                    }
                }
                try await group.waitForAll()
            }
            let watcher = try await database.connect()
            #expect(try await watcher.int("select count(*) from millrace.ready") == 20)
            #expect(try await watcher.int("select count(*) from millrace.job") == 20)
            try await watcher.expectOnePlaceEach()
        }
    }
}
