import Postgres
import TestSupport
import Testing

/// Keys that are held for a while after the end, and features that use them.
@Suite struct UniqueForTests {
    @Test func `a replacement during a hold is kept, and waits for the hold to end`() async throws {
        try await withConnection(.movableClock) { connection in
            let id = try await connection.running("1", "options => '{\"unique_for\": 60}'")
            try await connection.end(id, 1)
            let next = try await connection.put("2")
            #expect(next != id)
            #expect(try await connection.state(next) == "scheduled")
            #expect(try await connection.keys() == ["\(next)"])
            // However often it is replaced, not before.
            #expect(try await connection.put("3") == next)
            #expect(
                try await connection.bool(
                    "select state = 'scheduled' and run_at > millrace.now() + interval '50 s' from millrace.job(\(next))"
                )
            )
            try await connection.run("select millrace.test_clock_advance('61 s')")
            #expect(try await connection.put("4") == next)
            #expect(try await connection.state(next) == "ready")
        }
    }

    @Test func `keys are let go of a minute after their time, and only those`() async throws {
        try await withConnection(.movableClock) { connection in
            for (key, seconds) in [("a", 10), ("b", 1000)] {
                let id = try await connection.enqueue(
                    "'test', unique_key => '\(key)', options => '{\"unique_for\": \(seconds)}'")
                try await connection.run("select millrace.cancel(\(id))")
            }
            try await connection.enqueue("'test', unique_key => 'c'")
            let known = "select count(*) from millrace.unique_lock u join millrace.unique_key k on k.hash = u.hash"
            try await connection.run("select millrace.test_clock_advance('20 s')")
            #expect(try await connection.int("select expired from millrace.unique_expire()") == 0)
            #expect(try await connection.int(known) == 3)  // a minute longer, for the next holder
            try await connection.run("select millrace.test_clock_advance('60 s')")
            #expect(try await connection.int("select expired from millrace.unique_expire(most => 0)") == 0)
            let upTo = try await connection.value("select upto from millrace.unique_expire()")
            #expect(try await connection.int(known) == 2)
            try await connection.run("select millrace.test_clock_advance('1 hour')")
            let above = "select expired from millrace.unique_expire(millrace.now() + interval '1 day')"
            #expect(try await connection.int(above) == 0)
            #expect(try await connection.int("select expired from millrace.unique_expire('\(upTo ?? "")', 0)") == 0)
            #expect(try await connection.bool("select ran from millrace.maintain()"))
            #expect(try await connection.int(known) == 1)
            #expect(try await connection.int("select count(*) from millrace.unique_key") == 1)
        }
    }

    @Test func `a successor outlives its range of ids`() async throws {
        try await withConnection(.movableClock) { connection in
            let id = try await connection.running("1")
            let next = try await connection.put("2")
            try await connection.run("select setval('millrace.seq', 20000000); select millrace.job_ahead()")
            for _ in 0..<40 {
                try await connection.run("select millrace.test_clock_advance('1 day'); select millrace.maintain()")
            }
            #expect(try await connection.value("select to_regclass('millrace.job_0')") == nil)
            #expect(try await connection.state(next) == "blocked")
            try await connection.end(id, 1)
            #expect(try await connection.state(next) == "ready")
        }
    }

    @Test func `debounce: each call moves the job, and the last one wins`() async throws {
        try await withConnection(.movableClock) { connection in
            var ids: Set<Int> = []
            for turn in 1...4 {
                ids.insert(try await connection.put("\(turn)", "run_at => millrace.now() + interval '5 s'"))
                try await connection.run("select millrace.test_clock_advance('3 s')")
                #expect(try await connection.value("select moved from millrace.promote(null, 10)") == "0")
            }
            try await connection.run("select millrace.test_clock_advance('3 s')")
            #expect(try await connection.value("select moved from millrace.promote(null, 10)") == "1")
            #expect(ids.count == 1)
            #expect(try await connection.records("select state, args from millrace.jobs") == ["(ready,4)"])
        }
    }

    @Test func `throttle: the first of a period runs, the others are dropped`() async throws {
        try await withConnection(.movableClock) { connection in
            var ids: [Int] = []
            try await connection.openSession()
            for turn in 1...6 {
                let id = try await connection.put("\(turn)", "options => '{\"unique_for\": 25}'", conflict: "skip")
                if ids.last != id { ids.append(id) }
                if try await connection.claim(number: turn * 8).isEmpty == false {
                    try await connection.end(id, 1, number: turn * 8 + 1)
                }
                try await connection.run("select millrace.test_clock_advance('10 s')")
            }
            #expect(try await connection.column("select args from millrace.jobs order by id") == ["1", "4"])
            #expect(ids.count == 2)
        }
    }
}
