import Postgres
import TestSupport
import Testing

@Suite struct FlowTests {
    @Test func `a job waits until all it comes after have succeeded, and starts once`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let second = try await connection.enqueue()
            let last = try await connection.enqueue(after: [first, second])
            #expect(
                try await connection.records("select state, waits_for from millrace.job(\(last))") == [
                    "(blocked,\"{\(first),\(second)}\")"
                ])
            #expect(try await connection.int("select millrace.blocked_count()") == 1)
            try await connection.openSession()
            #expect(try await connection.claim() == [first, second])
            try await connection.finish([.init(id: first, outcome: 1)], partial: [9])
            try await connection.advance()
            #expect(try await connection.state(last) == "blocked")
            #expect(try await connection.finish([.init(id: second, outcome: 1)], complete: [9: 1]).sorted() == [0, 9])
            try await connection.advance()
            #expect(try await connection.state(last) == "ready")
            try await connection.advance()
            #expect(try await connection.claim(number: 16) == [last])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test(arguments: [
        // when, any_dead, how the first ends, and what becomes of the one that waits
        ("succeeded", "cancel", 3, "cancelled"), ("succeeded", "cancel", 2, "cancelled"),
        ("succeeded", "wait", 3, "blocked"),
        ("ended", "cancel", 3, "ready"), ("ended", "cancel", 1, "ready"), ("dead", "cancel", 3, "ready"),
        ("dead", "cancel", 1, "cancelled"),
    ])
    func `what becomes of a job when one it waits for ends`(when: String, anyDead: String, outcome: Int, state: String)
        async throws
    {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let waiting = try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(first)], \"when\": \"\(when)\", \"any_dead\": \"\(anyDead)\"}}'"
            )
            let next = try await connection.enqueue(after: [waiting])
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish(
                [.init(id: first, outcome: outcome, error: outcome == 3 ? "because" : nil)], complete: [9: 1])
            try await connection.advance()
            #expect(try await connection.state(waiting) == state)
            // A cancelled job cancels the jobs that wait for it.
            #expect(try await connection.state(next) == (state == "cancelled" ? "cancelled" : "blocked"))
            if state == "cancelled", outcome == 3 {
                #expect(
                    try await connection.value("select errors -> 0 ->> 'error' from millrace.job(\(waiting))")?
                        .contains("job \(first), which it waits for, is dead") == true)
            }
        }
    }

    @Test func `a redrive of the dead lets those that waited for it go on`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let waiting = try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(first)], \"any_dead\": \"wait\"}}'")
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish([.init(id: first, outcome: 3, error: "because")], complete: [9: 1])
            try await connection.advance()
            #expect(try await connection.bool("select millrace.retry(\(first))"))
            #expect(try await connection.claim(number: 16) == [first])
            try await connection.finish([.init(id: first, outcome: 1, number: 17)], complete: [17: 1])
            try await connection.advance()
            #expect(try await connection.state(waiting) == "ready")
        }
    }

    @Test func `a job that comes after what has ended already starts at once`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish([.init(id: first, outcome: 1)], complete: [9: 1])
            let late = try await connection.enqueue(after: [first])
            try await connection.advance()
            #expect(try await connection.state(late) == "ready")
        }
    }

    /// The end looks for followers before the follower's commit; the follower looked for the end before that one's.
    @Test func `an end and an enqueue that cross leave nobody behind`() async throws {
        try await withDatabase { database in
            let caller = try await database.connect()
            let worker = try await database.connect()
            let first = try await worker.enqueue()
            try await worker.openSession()
            try await worker.claim()
            try await caller.run("begin")
            let late = try await caller.enqueue(after: [first])
            try await worker.run("begin; select millrace.complete('1-9-\(first)')")
            try await caller.run("commit")
            try await caller.advance()
            #expect(try await caller.state(late) == "blocked")
            #expect(try await caller.int("select count(*) from millrace.blocked where fresh") == 1)
            try await worker.run("commit")
            try await caller.advance()
            #expect(try await caller.state(late) == "ready")
            for one in [caller, worker] { await one.close() }
        }
    }

    @Test func `two who end the last two jobs at once start the follower once`() async throws {
        try await withDatabase { database in
            let one = try await database.connect()
            let other = try await database.connect()
            let ids = [try await one.enqueue(), try await one.enqueue()]
            let last = try await one.enqueue(after: ids)
            try await one.openSession()
            #expect(try await one.claim(number: 8, wanted: 1) == [ids[0]])
            #expect(try await one.claim(number: 16, wanted: 1) == [ids[1]])
            try await one.finish([.init(id: ids[0], outcome: 1, number: 9)], complete: [9: 1])
            try await one.run("begin; select millrace.flows_advance()")
            try await other.finish([.init(id: ids[1], outcome: 1, number: 17)], complete: [17: 1])
            async let second: Void = other.run("select millrace.flows_advance()")
            try await one.run("commit")
            try await second
            try await one.advance()
            #expect(try await one.state(last) == "ready")
            #expect(try await one.int("select count(*) from millrace.ready") == 1)
            for connection in [one, other] { await connection.close() }
        }
    }

    @Test func `what a run makes begins after it has succeeded, and what waits for all of that last`() async throws {
        try await withConnection { connection in
            let parent = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            let token = "1-9-\(parent)"
            let join = try await connection.enqueue("'join', options => '{\"fence\": \"\(token)\"}'")
            try await connection.run(
                "select millrace.spawn('\(token)', 'child', array(select '{\"n\": ' || i || '}' from generate_series(1, 50) i), before => \(join))"
            )
            try await connection.advance()
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
            #expect(try await connection.int("select millrace.blocked_count()") == 51)
            try await connection.finish([.init(id: parent, outcome: 1)], complete: [9: 1])
            try await connection.run("select millrace.flows_advance(7)")  // a step at a time
            try await connection.advance()
            #expect(try await connection.int("select count(*) from millrace.ready") == 50)
            #expect(try await connection.state(join) == "blocked")
            let children = try await connection.claim(number: 16)
            #expect(children.count == 50 && !children.contains(join))
            try await connection.finish(
                children.map { .init(id: $0, outcome: 1, number: 17) }, complete: [17: 50])
            try await connection.advance()
            #expect(try await connection.state(join) == "ready")
            #expect(try await connection.int("select count(*) from millrace.results_before(\(join))") == 51)
            #expect(try await connection.int("select count(*) from millrace.flow_ids(\(children[3]))") == 52)
            #expect(
                try await connection.records(
                    "select depth, kind, state, below, hidden from millrace.flow_tree(\(join), 3)") == [
                        "(0,test,succeeded,51,47)", "(1,child,succeeded,1,0)", "(1,child,succeeded,1,0)",
                        "(1,child,succeeded,1,0)",
                    ])
        }
    }

    @Test func `the tree of a hundred jobs says their states without a whole look at each`() async throws {
        try await withConnection { connection in
            let root = try await connection.enqueue()
            for _ in 1...96 { _ = try await connection.enqueue(after: [root]) }
            let done = try await connection.enqueue()
            let later = try await connection.enqueue("'test', run_at => now() + interval '1 hour'")
            try await connection.run("select millrace.cancel(\(done))")
            let all = "array(select id from millrace.job)"
            let jobs = try await connection.int("select count(*) from millrace.job")
            let same = try await connection.int(
                "select count(*) from millrace.job_states(\(all)) s, lateral millrace.job(s.job) j where j.kind = s.kind and j.state = s.state"
            )
            #expect(same == jobs)
            for (job, state) in [(root, "ready"), (done, "cancelled"), (later, "scheduled")] {
                #expect(
                    try await connection.value("select state from millrace.job_states(array[\(job)])") == state)
            }
            let tree = "select * from millrace.flow_tree(\(root), 1000)"
            #expect(try await connection.int("select count(*) from (\(tree)) t where t.state is not null") == 97)
            _ = try await connection.pages(tree)
            // 40 a job; 200 when each was looked up by itself.
            let pages = try await connection.pages(tree)
            #expect(pages < 8_000, "\(pages)")
        }
    }

    enum Failing: String, CaseIterable { case retried, released, rescued, dead, cancelled }

    @Test(arguments: Failing.allCases)
    func `what a run made that did not succeed never was`(failing: Failing) async throws {
        try await withConnection { connection in
            let parent = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            let join = try await connection.enqueue("'join', options => '{\"fence\": \"1-9-\(parent)\"}'")
            try await connection.run(
                "select millrace.spawn('1-9-\(parent)', 'child', array['{}', '{}', '{}'], before => \(join))")
            let outcome = ["retried": 4, "released": 6, "dead": 3, "cancelled": 2][failing.rawValue]
            if let outcome {
                try await connection.finish(
                    [.init(id: parent, outcome: outcome, error: [3, 4].contains(outcome) ? "because" : nil, wait: 0)],
                    complete: [9: 1])
            } else {
                _ = try await connection.rescue()
            }
            try await connection.advance()
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            #expect(try await connection.int("select count(*) from millrace.edge") == 0)
            #expect(try await connection.int("select count(*) from millrace.blocked") == 0)
            #expect(try await connection.int("select count(*) from millrace.ending") == 0)
        }
    }

    @Test func `a run whose lease is lost makes nothing`() async throws {
        try await withConnection { connection in
            let parent = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.rescue()
            let refusal = try await connection.refusal(
                of: "select millrace.spawn('1-9-\(parent)', 'child', array['{}'])")
            #expect(refusal?.sqlState == "55000")
            #expect(refusal?.detail?.contains("lease_lost") == true)
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
        }
    }

    @Test func `a flow is cancelled as a whole, and run again as a whole`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let middle = [try await connection.enqueue(after: [first]), try await connection.enqueue(after: [first])]
            let last = try await connection.enqueue(after: middle)
            let stranger = try await connection.enqueue()
            #expect(try await connection.int("select millrace.flow_cancel(\(middle[0]))") == 4)
            try await connection.advance()
            for id in [first, last] + middle { #expect(try await connection.state(id) == "cancelled") }
            #expect(try await connection.state(stranger) == "ready")
            #expect(try await connection.int("select millrace.flow_retry(\(last))") == 4)
            try await connection.advance()
            #expect(try await connection.state(first) == "ready")
            for id in middle + [last] { #expect(try await connection.state(id) == "blocked") }
            try await connection.openSession()
            try await connection.claim(kinds: ["test"])
            try await connection.finish([.init(id: first, outcome: 1)], partial: [9])
            try await connection.advance()
            for id in middle { #expect(try await connection.state(id) == "ready") }
            #expect(try await connection.state(last) == "blocked")
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a blocked job is cancelled, moved and deleted like any that waits`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let ids = [
                try await connection.enqueue(after: [first]), try await connection.enqueue(after: [first]),
                try await connection.enqueue(after: [first]),
            ]
            #expect(try await connection.bool("select millrace.cancel(\(ids[0]))"))
            #expect(try await connection.state(ids[0]) == "cancelled")
            #expect(try await connection.bool("select millrace.reschedule(\(ids[1]), now() + interval '1 hour')"))
            #expect(try await connection.state(ids[1]) == "blocked")
            #expect(try await connection.bool("select millrace.job_delete(\(ids[2]))"))
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish([.init(id: first, outcome: 1)], complete: [9: 1])
            try await connection.advance()
            #expect(try await connection.state(ids[1]) == "scheduled")
            #expect(try await connection.int("select count(*) from millrace.edge") == 2)
        }
    }

    @Test func `edges go when their jobs are gone, and stay while they say something`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let second = try await connection.enqueue(after: [first])
            let third = try await connection.enqueue(after: [second])
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish([.init(id: first, outcome: 1)], complete: [9: 1])
            try await connection.advance()
            #expect(try await connection.int("select millrace.flows_expire()") == 0)
            try await connection.run("delete from millrace.job where id = \(first)")
            #expect(try await connection.int("select millrace.flows_expire(1)") == 1)
            #expect(try await connection.int("select millrace.flows_expire(1)") == 0)
            #expect(try await connection.column("select succ from millrace.edge") == ["\(third)"])
        }
    }

    @Test(arguments: [
        (#"{"after": []}"#, "options.after"), (#"{"after": "x"}"#, "options.after"),
        (#"{"after": [0]}"#, "options.after"),
        (#"{"after": {"jobs": [1], "if": 1}}"#, "options.after"),
        (#"{"after": {"jobs": [1], "when": "never"}}"#, "options.after"),
        (#"{"after": {"jobs": [1], "any_dead": "x"}}"#, "options.after"), (#"{"fence": 1}"#, "options.fence"),
        (#"{"fence": "x"}"#, "token"), (#"{"before": 7}"#, "options.before"),
    ])
    func `what makes no sense is refused with its field`(options: String, field: String) async throws {
        try await withConnection { connection in
            let refusal = try await connection.refusal(of: "select millrace.enqueue('test', options => '\(options)')")
            #expect(refusal?.sqlState == "22023")
            #expect(refusal?.detail?.contains("\"\(field)\"") == true)
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
        }
    }

    @Test func `a job that is not there, or waits for nobody, cannot be waited for`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            #expect(
                try await connection.refusal(of: "select millrace.enqueue('test', options => '{\"after\": [77777]}')")?
                    .sqlState == "P0002")
            #expect(
                try await connection.refusal(of: "select millrace.enqueue('test', options => '{\"before\": [\(id)]}')")?
                    .sqlState == "55000")
        }
    }
}

extension Connection {
    fileprivate func enqueue(after preds: [Int]) async throws -> Int {
        try await enqueue("'test', options => '{\"after\": [\(preds.map(String.init).joined(separator: ","))]}'")
    }

    /// What a worker does after an end, and once a second.
    fileprivate func advance() async throws {
        try await run("select millrace.flows_check()")
        while try await bool("select more from millrace.flows_advance()") {}
    }
}
