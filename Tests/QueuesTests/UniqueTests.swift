import Postgres
import TestSupport
import Testing

/// The table in README.md, "Unique keys", cell by cell.
@Suite struct UniqueTests {
    /// succeeded, cancelled, dead: free; held for a while; passed on.
    @Test(arguments: [1, 2, 3])
    func `a run that ends frees its key, holds it, or passes it on`(outcome: Int) async throws {
        try await withConnection(.movableClock) { connection in
            let free = try await connection.running("1")
            try await connection.end(free, outcome)
            #expect(try await connection.keys().isEmpty)

            let held = try await connection.running("1", "options => '{\"unique_for\": 60}'")
            try await connection.end(held, outcome)
            #expect(try await connection.keys() == ["\(held) until"])
            #expect(try await connection.put("2", conflict: "skip") == held)
            #expect(
                try await connection.refusal(
                    of: "select millrace.enqueue('test', unique_key => 'k', on_conflict => 'error')")?.sqlState
                    == "23505")
            try await connection.run("select millrace.test_clock_advance('61 s')")
            let after = try await connection.put("2", conflict: "skip")
            #expect(after != held)
            #expect(try await connection.keys() == ["\(after)"])

            try await connection.claim(number: 24)
            let next = try await connection.put("3")
            try await connection.end(after, outcome, number: 25)
            #expect(try await connection.keys() == ["\(next)"])
            #expect(try await connection.state(next) == "ready")
            #expect(try await connection.claim(number: 32) == [next])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `with a successor the key is passed on at once, however long it would have been held`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1", "options => '{\"unique_for\": 60}'")
            let next = try await connection.put("2")
            try await connection.end(id, 1)
            #expect(try await connection.keys() == ["\(next)"])
            #expect(try await connection.state(next) == "ready")
        }
    }

    /// retried, snoozed, released: the job lives, and so does its hold.
    @Test(arguments: [4, 5, 6])
    func `a run that goes on keeps the key, and a successor goes on waiting`(outcome: Int) async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            try await connection.end(id, outcome)
            #expect(try await connection.keys() == ["\(id)"])
            #expect(try await connection.put("2") == id)
            #expect(
                try await connection.records("select state, args, attempt from millrace.job(\(id))") == ["(ready,2,0)"])

            #expect(try await connection.claim(number: 16) == [id])
            let next = try await connection.put("3")
            try await connection.end(id, outcome, number: 17)
            #expect(try await connection.keys() == ["\(id) then \(next)"])
            // The successor has the latest contents.
            #expect(try await connection.put("4") == next)
            #expect(
                try await connection.column("select args from millrace.jobs where state <> 'cancelled' order by id")
                    == [
                        "2", "4",
                    ])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a rescued holder keeps the key and its successor, a quarantined one passes it on`() async throws {
        try await withConnection { connection in
            let id = try await connection.put("1")
            var next = 0
            for turn in 1...5 {
                try await connection.openSession(turn)
                #expect(try await connection.claim(turn, number: turn * 8) == [id])
                let put = try await connection.put("\(turn)")
                if turn > 1 { #expect(put == next) }
                next = put
                _ = try await connection.rescue(turn)
                #expect(try await connection.keys() == [turn < 5 ? "\(id) then \(next)" : "\(next)"])
            }
            #expect(try await connection.state(id) == "dead")
            #expect(
                try await connection.records("select state, args, crashes from millrace.job(\(next))")
                    == ["(ready,5,0)"])
        }
    }

    @Test func `what a job did to workers still counts when it is replaced`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            _ = try await connection.rescue()
            #expect(try await connection.put("2") == id)
            #expect(
                try await connection.records("select state, args, attempt, crashes from millrace.job(\(id))")
                    == ["(ready,2,0,1)"])
        }
    }

    @Test func `a holder that never came to run again passes the key on too`() async throws {
        try await withConnection { connection in
            // Cancelled while it waits for its retry; cancelled in a lost lease; in one that is returned; in its own transaction.
            var id = try await connection.running("1")
            var next = try await connection.put("2")
            try await connection.end(id, 4)
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            #expect(try await connection.keys() == ["\(next)"])

            (id, next) = (next, try await connection.follow(number: 16))
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await connection.run("select millrace.leases_return(1, array[17::bigint])")
            #expect(try await connection.keys() == ["\(next)"])

            (id, next) = (next, try await connection.follow(number: 24))
            #expect(try await connection.bool("select millrace.complete('1-25-\(id)')"))
            #expect(try await connection.keys() == ["\(next)"])

            (id, next) = (next, try await connection.follow(number: 32))
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            _ = try await connection.rescue()
            #expect(try await connection.state(id) == "cancelled")
            #expect(try await connection.keys() == ["\(next)"])
            #expect(try await connection.state(next) == "ready")
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a cancel that meant the old work does not hit the new`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            try await connection.end(id, 4)
            try await connection.run(
                "insert into millrace.cancel (seq, session, number, job, at) values (999, 1, 9, \(id), now())")
            #expect(try await connection.put("2") == id)
            #expect(try await connection.int("select millrace.heed_cancels()") == 0)
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test func `a waiting holder that is cancelled frees its key, or holds it`() async throws {
        try await withConnection { connection in
            for time in ["null", "'2100-01-01'"] {
                let free = try await connection.put("1", "run_at => \(time)")
                #expect(try await connection.bool("select millrace.cancel(\(free))"))
                #expect(try await connection.keys().isEmpty)
            }
            let held = try await connection.put("1", "options => '{\"unique_for\": 60}'")
            #expect(try await connection.bool("select millrace.cancel(\(held))"))
            #expect(try await connection.keys() == ["\(held) until"])
        }
    }

    @Test func `a successor is cancelled without its holder, and another may follow`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            let next = try await connection.put("2")
            #expect(try await connection.bool("select millrace.cancel(\(next))"))
            #expect(try await connection.bool("select not millrace.cancel(\(next))"))
            #expect(try await connection.state(next) == "cancelled")
            #expect(try await connection.keys() == ["\(id)"])
            let other = try await connection.put("3")
            #expect(other != next)
            // While others hold its key it is not driven again.
            #expect(try await connection.refusal(of: "select millrace.retry(\(next))")?.sqlState == "23505")
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await connection.end(id, 2)
            #expect(try await connection.keys() == ["\(other)"])
        }
    }

    @Test func `a job is driven again when its key is free, and not while another holds it`() async throws {
        try await withConnection(.movableClock) { connection in
            let hold = "options => '{\"unique_for\": 60}'"
            let id = try await connection.running("1", hold)
            try await connection.end(id, 3)
            // Its own hold: it takes the key back, and may be followed.
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            #expect(try await connection.keys() == ["\(id)"])
            #expect(try await connection.claim(number: 16) == [id])
            let next = try await connection.put("2", hold)
            try await connection.end(id, 3, number: 17)
            // Its successor has the key, first alive, then as a hold.
            let alive = try await connection.refusal(of: "select millrace.retry(\(id))")
            #expect(alive?.sqlState == "23505" && alive?.message.contains("\(next)") == true)
            #expect(try await connection.claim(number: 24) == [next])
            try await connection.end(next, 1, number: 25)
            #expect(try await connection.keys() == ["\(next) until"])
            #expect(try await connection.refusal(of: "select millrace.retry(\(id))")?.sqlState == "23505")
            #expect(try await connection.state(id) == "dead")
            // Expired: it is taken over.
            try await connection.run("select millrace.test_clock_advance('61 s')")
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            #expect(try await connection.keys() == ["\(id)"])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `what is deleted leaves no hold, and its successor is not lost`() async throws {
        try await withConnection { connection in
            let hold = "options => '{\"unique_for\": 60}'"
            let ended = try await connection.running("1", hold)
            try await connection.end(ended, 1)
            #expect(try await connection.bool("select millrace.job_delete(\(ended))"))
            #expect(try await connection.keys().isEmpty)

            let waiting = try await connection.put("1", hold)
            #expect(try await connection.bool("select millrace.job_delete(\(waiting))"))
            #expect(try await connection.keys().isEmpty)

            let id = try await connection.put("1")
            try await connection.claim(number: 16)
            let gone = try await connection.put("2")
            #expect(try await connection.bool("select millrace.job_delete(\(gone))"))
            #expect(try await connection.keys() == ["\(id)"])
            let next = try await connection.put("3")
            #expect(try await connection.refusal(of: "select millrace.job_delete(\(id))")?.sqlState == "55000")
            try await connection.end(id, 4, number: 17)
            #expect(try await connection.bool("select millrace.job_delete(\(id))"))
            #expect(try await connection.keys() == ["\(next)"])
            #expect(try await connection.state(next) == "ready")
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
        }
    }
}

extension Connection {
    /// Enqueues with the key `k`; tests find the job by `args`.
    func put(_ args: String, _ more: String? = nil, conflict: String = "replace") async throws -> Int {
        try await enqueue(
            "'test', '\(args)', unique_key => 'k', on_conflict => '\(conflict)'\(more.map { ", \($0)" } ?? "")")
    }

    /// A holder of `k` that runs in session 1, as the only job of lease 9.
    func running(_ args: String, _ more: String? = nil) async throws -> Int {
        let id = try await put(args, more)
        if try await int("select count(*) from millrace.session") == 0 { try await openSession() }
        #expect(try await claim(number: 8) == [id])
        return id
    }

    /// Claims the holder, and follows it.
    func follow(number: Int) async throws -> Int {
        #expect(try await claim(number: number).count == 1)
        return try await put("\(number)")
    }

    func end(_ id: Int, _ outcome: Int, number: Int = 9) async throws {
        let alive = try await finish(
            [.init(id: id, outcome: outcome, number: number, error: [3, 4].contains(outcome) ? "why" : nil, wait: 60)],
            complete: [number: 1])
        #expect(alive == [number])
    }

    /// `7`, `7 then 8`, `7 until`.
    func keys() async throws -> [String] {
        try await column(
            "select job || coalesce(' then ' || next, '') || case when ended then ' until' else '' end from millrace.unique_lock where not ended or until > millrace.now() order by job"
        )
    }
}
