import Postgres
import TestSupport
import Testing

extension Connection {
    /// One job of a queue, claimed and ended: succeeded, cancelled, dead or retried.
    fileprivate func end(
        queue: String, as outcome: Int, error: String? = nil, args: String = "{}", number: Int
    ) async throws -> Int {
        let id = try await enqueue("'test', '\(args)', queue => '\(queue)'")
        try await runAndEnd(id, as: outcome, error: error, number: number)
        return id
    }

    fileprivate func runAndEnd(_ id: Int, as outcome: Int, error: String? = nil, number: Int) async throws {
        try await runAndEnd([id], as: outcome, error: error, number: number)
    }

    fileprivate func runAndEnd(_ ids: [Int], as outcome: Int, error: String? = nil, number: Int) async throws {
        #expect(try await claim(number: number * 8).sorted() == ids)
        let lease = try await int("select number from millrace.lease")
        let ends = ids.map { End(id: $0, outcome: outcome, number: lease, error: error, wait: 0) }
        #expect(try await finish(ends, complete: [lease: ids.count]) == [lease])
    }

    fileprivate func pass(_ span: String) async throws {
        try await run("select millrace.test_clock_advance('\(span)'); select millrace.maintain()")
    }
}

/// How long ended jobs stay, by queue and by how they ended.
@Suite struct RetentionTests {
    @Test func `the classes of the states are set apart and together`() async throws {
        try await withConnection { connection in
            func set(_ arguments: String) async throws -> Bool {
                try await connection.bool("select millrace.retention_set('q', \(arguments))")
            }
            func kept() async throws -> String {
                try await connection.records("select succeeded, cancelled, dead from millrace.retentions()")[0]
            }
            #expect(try await set("'long', 'dead'"))
            #expect(try await kept() == "(standard,standard,long)")
            #expect(try await !set("'long', 'dead'"), "it was so")
            #expect(try await set("'short', 'succeeded'"))
            #expect(try await kept() == "(short,standard,long)", "the others stay as they were")
            #expect(try await set("'long', 'succeeded'"))
            #expect(try await kept() == "(long,standard,long)")
            #expect(try await set("'short'"))
            #expect(try await kept() == "(short,short,short)", "without a state it is all of them")
            #expect(
                try await connection.column(
                    "select retention_dead is null and retention_cancelled is null from millrace.queue") == ["true"])
            #expect(try await connection.value("select retention from millrace.queues") == "short")
            for bad in ["'ever'", "'ever', 'dead'", "'short', 'ready'", "null"] {
                let error = try await connection.refusal(of: "select millrace.retention_set('q', \(bad))")
                #expect(error?.sqlState == "22023" && error?.hint?.isEmpty == false, "\(bad)")
            }
        }
    }

    @Test func `dead jobs can stay longer than succeeded ones, with their arguments and errors`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.run(
                "select millrace.retention_set('q', 'short'), millrace.retention_set('q', 'long', 'dead'), millrace.retention_set('q', 'standard', 'cancelled')"
            )
            let done = try await connection.end(queue: "q", as: 1, number: 1)
            let dead = try await connection.enqueue("'test', '{\"keep\": 1}', queue => 'q'")
            try await connection.runAndEnd(dead, as: 4, error: "first", number: 2)
            try await connection.run("select millrace.promote(null, 10)")
            try await connection.runAndEnd(dead, as: 3, error: "second", number: 3)
            let cancelled = try await connection.end(queue: "q", as: 2, number: 4)
            let other = try await connection.end(queue: "brief", as: 3, error: "no", number: 5)
            try await connection.run("select millrace.retention_set('brief', 'short')")
            try await connection.pass("3 days")
            #expect(try await connection.int("select count(*) from millrace.history where class = 0") == 0)
            #expect(try await connection.state(done) == nil)
            #expect(try await connection.int("select count(*) from millrace.job where id = \(done)") == 0)
            #expect(try await connection.state(cancelled) == "cancelled")
            #expect(try await connection.state(other) == "dead", "it ended under standard")
            #expect(
                try await connection.records(
                    "select state, args, jsonb_array_length(errors) from millrace.job(\(dead))")
                    == ["(dead,\"{\"\"keep\"\": 1}\",2)"])
            #expect(try await connection.column("select * from millrace.job_ids('dead', 'q')") == ["\(dead)"])
            #expect(try await connection.int("select count(*) from millrace.history_long_default") == 0)
            try await connection.pass("14 days")
            #expect(try await connection.state(cancelled) == nil)
            #expect(try await connection.bool("select millrace.retry(\(dead))"))
            try await connection.runAndEnd(dead, as: 3, error: "third", number: 6)
            try await connection.pass("3 days")
            #expect(try await connection.value("select jsonb_array_length(errors) from millrace.job(\(dead))") == "3")
            for _ in 0..<5 { try await connection.pass("90 days") }
            #expect(try await connection.state(dead) == nil)
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
            #expect(try await connection.int("select count(*) from millrace.history") == 0)
        }
    }

    @Test func `a tenant's jobs and those with a limit key stay as their queue says`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            let before = try await connection.enqueue("'test', queue => 'q', tenant => 'acme'")
            try await connection.run(
                "select millrace.retention_set('q', 'short'), millrace.retention_set('q', 'long', 'dead')")
            let after = try await connection.enqueue("'test', queue => 'q', limit_key => 'k'")
            try await connection.runAndEnd([before, after], as: 3, error: "no", number: 1)
            let done = try await connection.enqueue("'test', queue => 'q', tenant => 'acme'")
            try await connection.runAndEnd([done], as: 1, number: 2)
            #expect(
                try await connection.records("select * from millrace.retentions() r where r.queue = 'q'") == [
                    "(q,short,short,long)"
                ])
            try await connection.pass("3 days")
            #expect(try await connection.state(done) == nil)
            for id in [before, after] { #expect(try await connection.state(id) == "dead") }
            #expect(
                try await connection.column("select * from millrace.dead_ids('q')") == ["\(after)", "\(before)"])
        }
    }

    @Test func `dead and cancelled jobs can go sooner than succeeded ones, and nothing of them stays`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.run("select millrace.retention_set('q', 'short', 'dead')")
            let done = try await connection.end(queue: "q", as: 1, number: 1)
            let dead = try await connection.enqueue("'test', queue => 'q'")
            try await connection.runAndEnd(dead, as: 4, error: "first", number: 2)
            try await connection.run("select millrace.promote(null, 10)")
            try await connection.runAndEnd(dead, as: 3, error: "second", number: 3)
            let cancelled = try await connection.end(queue: "q", as: 2, number: 4)
            let other = try await connection.end(queue: "other", as: 3, error: "no", number: 5)
            try await connection.pass("23 hours")
            #expect(try await connection.state(dead) == "dead")
            try await connection.pass("2 hours")
            #expect(try await connection.state(dead) == nil)
            for table in ["history", "job"] {
                #expect(try await connection.int("select count(*) from millrace.\(table) where id = \(dead)") == 0)
            }
            #expect(try await connection.state(done) == "succeeded")
            #expect(try await connection.state(cancelled) == "cancelled")
            #expect(try await connection.state(other) == "dead")
        }
    }

    /// 1. Two jobs are claimed in one batch, one dies. 2. Retention has it moved, or deleted. 3. The other ends: its lease counts both.
    @Test(arguments: [("short", "long"), ("standard", "short")])
    func `the end of a job that took days is recorded, whatever became of its lease's other jobs`(
        class own: String, dead: String
    ) async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.run(
                "select millrace.retention_set('q', '\(own)'), millrace.retention_set('q', '\(dead)', 'dead')")
            let died = try await connection.enqueue("'test', queue => 'q'")
            let slow = try await connection.enqueue("'test', queue => 'q'")
            #expect(try await connection.claim() == [died, slow])
            let lease = try await connection.int("select number from millrace.lease")
            #expect(
                try await connection.finish(
                    [.init(id: died, outcome: 3, number: lease, error: "no")], partial: [lease]) == [lease])
            try await connection.pass("3 days")
            #expect(
                try await connection.finish([.init(id: slow, outcome: 1, number: lease)], complete: [lease: 1])
                    == [lease])
            try await connection.pass("2 hours")
            #expect(try await connection.state(died) == (dead == "long" ? "dead" : nil))
        }
    }

    @Test func `a deleted job takes nothing from the jobs it was claimed with`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let died = try await connection.enqueue()
            let slow = try await connection.enqueue()
            #expect(try await connection.claim() == [died, slow])
            #expect(
                try await connection.finish([.init(id: died, outcome: 3, error: "a secret")], partial: [9]) == [9])
            #expect(try await connection.bool("select millrace.job_delete(\(died))"))
            #expect(try await connection.state(died) == nil)
            #expect(try await connection.int("select count(*) from millrace.history where error is not null") == 0)
            #expect(try await connection.column("select * from millrace.job_ids('running')") == ["\(slow)"])
            #expect(try await connection.finish([.init(id: slow, outcome: 1)], complete: [9: 1]) == [9])
            #expect(try await connection.state(slow) == "succeeded")
        }
    }

    @Test func `a leaf goes only when all that stays longer has been moved, however many rounds that takes`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            try await connection.openSession()
            try await connection.run(
                "select millrace.retention_set('q', 'short'), millrace.retention_set('q', 'long', 'dead')")
            var ids: [Int] = []
            for number in 1...3 {
                ids.append(try await connection.end(queue: "q", as: 3, error: "no", number: number))
            }
            let leaf = try await connection.value("select tableoid::regclass from millrace.history limit 1") ?? ""
            let name = leaf.replacing("millrace.", with: "")
            #expect(try await connection.int("select millrace.history_keep('\(name)', 0, 1)") == 1)
            #expect(try await connection.bool("select millrace.history_is_needed('\(name)', 0)"))
            // An open transaction has one of them: it is skipped, and nobody waits.
            try await other.run("begin; select from \(leaf) where id = \(ids[2]) for update")
            try await connection.pass("3 days")
            #expect(try await connection.value("select to_regclass('\(leaf)')") != nil)
            #expect(try await connection.int("select count(*) from millrace.history where class = 2") == 2)
            try await other.run("commit")
            try await connection.pass("2 hours")
            #expect(try await connection.value("select to_regclass('\(leaf)')") == nil)
            for id in ids { #expect(try await connection.state(id) == "dead") }
            await connection.close()
            await other.close()
        }
    }

    /// 1. Maintenance moves a dead job's record. 2. Somebody redrives it, and waits for that. 3. Maintenance commits.
    @Test func `a redrive that meets the move finds the job all the same`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            try await connection.openSession()
            try await connection.run(
                "select millrace.retention_set('q', 'short'), millrace.retention_set('q', 'long', 'dead')")
            let dead = try await connection.end(queue: "q", as: 3, error: "no", number: 1)
            let leaf = try await connection.value("select tableoid::regclass from millrace.history limit 1") ?? ""
            try await connection.run("begin")
            #expect(
                try await connection.int(
                    "select millrace.history_keep('\(leaf.replacing("millrace.", with: ""))', 0, 10)") == 1)
            let process = try await other.process()
            let watcher = try await database.connect()
            async let redriven = other.bool("select millrace.retry(\(dead))")
            try await waitUntilBlocked(process, seenBy: watcher)
            try await connection.run("commit")
            #expect(try await redriven)
            #expect(try await watcher.state(dead) == "ready")
            for each in [connection, other, watcher] { await each.close() }
        }
    }

    @Test func `a job whose arguments are gone cannot be redriven, and the refusal says why`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let dead = try await connection.end(queue: "q", as: 3, error: "no", number: 1)
            try await connection.run("delete from millrace.job where id = \(dead)")
            let error = try await connection.refusal(of: "select millrace.retry(\(dead))")
            #expect(error?.sqlState == "55000")
            #expect(error?.message == "the arguments of job \(dead) are no longer kept: it cannot run again")
            #expect(
                try await connection.records("select outcome from millrace.jobs_do('retry', array[\(dead), 4711])")
                    == ["(55000)", "(P0002)"])
            #expect(try await connection.int("select dropped from millrace.dead_summary()") == 1)
        }
    }
}
