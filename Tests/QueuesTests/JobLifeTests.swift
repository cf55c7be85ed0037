import Postgres
import TestSupport
import Testing

/// What happens to jobs whose worker is gone, and to those that wait or are dead.
@Suite struct JobLifeTests {
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
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
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
