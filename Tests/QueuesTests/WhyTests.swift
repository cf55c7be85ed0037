import Postgres
import TestSupport
import Testing

/// Why a job does not run, in one line.
@Suite struct WhyTests {
    @Test func `a job without a worker says which is missing: any, one for its kind, or one for its queue`()
        async throws
    {
        try await withConnection { connection in
            let id = try await connection.enqueue("'test', queue => 'mail'")
            #expect(try await connection.why(id) == "no_worker: no worker is running")
            try await connection.run(
                "select millrace.session_open(1, 'w', 'h', 1, '0', null, '{}', 10, false)")
            #expect(try await connection.why(id) == "kind_unserved: no running worker knows the kind test")
            try await connection.run("select millrace.session_close(1)")
            try await connection.run(
                """
                select millrace.session_open(2, 'w', 'h', 1, '0', '{default}', array(select id from millrace.kind), 10, false)
                """)
            #expect(
                try await connection.why(id)
                    == "queue_unserved: no running worker that knows the kind test takes from the queue mail")
            try await connection.openSession(3)
            #expect(try await connection.why(id) == "next: it is next in line")
            try await connection.run("select millrace.beat(3, 'draining', 0, 0, 0)")
            #expect(
                try await connection.why(id)
                    == "worker_draining: the only worker that takes it, worker-3 on host, drains: it finishes what it has and takes nothing more"
            )
        }
    }

    @Test func `a job at which workers ended is named before the worker that is missing, with what to do`() async throws
    {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            try await connection.run("update millrace.ready set crashes = 1")
            #expect(
                try await connection.why(id)
                    == "ended_workers: a worker ended while it held this job; no worker is running")
            let said = "select millrace.why(\(id))"
            #expect(try await connection.value("\(said) ->> 'command'") == "millrace jobs show \(id)")
            #expect(try await connection.value("\(said) ->> 'hint'")?.hasSuffix("millrace jobs cancel \(id)") == true)
            try await connection.run(
                """
                update millrace.ready set crashes = 2;
                select millrace.session_open(1, 'w', 'h', 1, '0', null, '{}', 10, false)
                """)
            #expect(
                try await connection.why(id)
                    == "ended_workers: 2 workers ended while they held this job; no running worker knows the kind test")
            try await connection.run("select millrace.pause('default')")
            #expect(try await connection.why(id)?.hasPrefix("queue_paused: 2 workers ended while they held") == true)
            #expect(try await connection.value("\(said) ->> 'command'") == "millrace queues resume default")
        }
    }

    @Test func `where no worker is running, the last one and a command that starts it are named`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.run("select millrace.session_close(1)")
            let id = try await connection.enqueue()
            let said = "select millrace.why(\(id))"
            #expect(
                try await connection.value("\(said) ->> 'hint'")
                    == "start it again on host, or another worker elsewhere")
            #expect(try await connection.value("\(said) ->> 'command'") == "systemctl start millrace")
            #expect(
                try await connection.value("\(said) #>> '{chain,2}'")?.hasPrefix("the last was worker-1 on host")
                    == true)
        }
    }

    @Test func `a cancelled job whose handler goes on is said to hold its slot`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.claim()
            try await connection.run("select millrace.cancel(\(id)), millrace.beat(1, 'working', 1, 0, 0)")
            #expect(try await connection.why(id) == nil)
            try await connection.run("select millrace.test_clock_advance('6 s'), millrace.beat(1, 'working', 1, 0, 0)")
            #expect(
                try await connection.why(id)
                    == "cancel_ignored: it was cancelled 6 s ago, and its handler still runs and holds its slot on worker worker-1 on host"
            )
            #expect(
                try await connection.column(
                    "select trouble || ' ' || kind || ' ' || worker from millrace.run_troubles()")
                    == ["cancelled test worker-1"])
        }
    }

    @Test func `a job in a paused queue, behind others, and before full workers says so`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let first = try await connection.enqueue()
            let second = try await connection.enqueue()
            let urgent = try await connection.enqueue("'test', priority => 0")
            #expect(try await connection.why(urgent) == "next: it is next in line")
            #expect(try await connection.why(first) == "in_line: 1 job stands before it in line")
            #expect(try await connection.why(second) == "in_line: 2 jobs stand before it in line")
            try await connection.run("select millrace.beat(1, 'working', 10, 0, 0)")
            #expect(
                try await connection.why(urgent)
                    == "workers_full: the worker that takes it is full: 10 of 10 slots are taken"
            )
            #expect(
                try await connection.why(first)
                    == "workers_full: the worker that takes it is full: 10 of 10 slots are taken; 1 job stands before it in line"
            )
            try await connection.run("select millrace.pause('default')")
            #expect(
                try await connection.why(second)?
                    .hasPrefix("queue_paused: its queue default has been paused since ") == true)
            #expect(
                try await connection.value("select millrace.why(\(second)) ->> 'hint'")
                    == "millrace queues resume default")
        }
    }

    @Test(arguments: [("queue", "default", "its queue default"), ("tenant", "acme", "its tenant acme")])
    func `a limit of a queue or a tenant is named when it is 0, full, or used up`(
        scope: String, name: String, words: String
    ) async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.limit(scope, name, #"{"concurrency": 1}"#)
            let first = try await connection.enqueue("'test', tenant => 'acme'")
            let second = try await connection.enqueue("'test', tenant => 'acme'")
            #expect(try await connection.why(second) == "in_line: 1 job stands before it in line")
            #expect(try await connection.claim() == [first])
            #expect(try await connection.why(first) == nil)
            #expect(try await connection.why(second) == "\(scope)_limit: \(words) is full: 1 of 1 run")
            try await connection.limit(scope, name, #"{"concurrency": 0}"#)
            #expect(try await connection.why(second) == "\(scope)_limit: \(words) may run nothing: its limit is 0")
            try await connection.limit(scope, name, #"{"rate": 1, "per": 60}"#)
            #expect(try await connection.claim(number: 16) == [second])
            let third = try await connection.enqueue("'test', tenant => 'acme'")
            #expect(try await connection.why(third) == "\(scope)_rate: the rate of \(words) is used up for 60 s")
        }
    }

    @Test func `a job at a full key says so, in line and parked, and the list of limits counts it`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.limit("key", "user:*", #"{"concurrency": 1}"#)
            try await connection.limit("key", "user:9", #"{"concurrency": 1}"#)
            var ids: [Int] = []
            for _ in 0..<3 { ids.append(try await connection.enqueue("'test', limit_key => 'user:1'")) }
            for _ in 0..<2 { ids.append(try await connection.enqueue("'test', limit_key => 'user:9'")) }
            try await connection.claim()
            #expect(try await connection.why(ids[2]) == "key_limit: its limit key user:1 is full: 1 of 1 run")
            #expect(
                try await connection.records(
                    "select name, parked from millrace.limits where scope = 'key' order by name")
                    == ["(user:*,2)", "(user:9,1)"])
            #expect(
                try await connection.int("select sum(parked) from millrace.limits")
                    == connection.int("select millrace.parked_count()"))
        }
    }

    @Test func `a job whose time has not come says when, and whether that is another attempt`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            let later = try await connection.enqueue("'test', run_at => millrace.now() + interval '1 hour'")
            #expect(
                try await connection.why(later)?.hasPrefix("time: its time has not come: it is due in 60 min, at ")
                    == true)
            let retried = try await connection.enqueue()
            try await connection.claim()
            try await connection.finish([.init(id: retried, outcome: 4, error: "no", wait: 30)], complete: [9: 1])
            #expect(try await connection.why(retried)?.hasPrefix("retry: attempt 2 is due in 30 s, at ") == true)
            try await connection.run(
                "select millrace.test_clock_advance('1 min'), millrace.beat(1, 'working', 0, 0, 0)")
            #expect(
                try await connection.why(retried) == "due: its time has come; a worker is about to put it in line")
        }
    }

    @Test func `a job that waits for others names them, and one that waits for a key its holder`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let first = try await connection.enqueue()
            let second = try await connection.enqueue()
            let both = try await connection.int(
                """
                select millrace.enqueue('test', '{}', options => jsonb_build_object('after', jsonb_build_object('jobs', array[\(first), \(second)]::bigint[])))
                """)
            #expect(try await connection.why(both) == "waits_for: it waits for 2 jobs to end: \(first), \(second)")
            let holder = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.claim(kinds: ["test"])
            let successor = try await connection.enqueue("'test', unique_key => 'k', on_conflict => 'replace'")
            #expect(
                try await connection.why(successor) == "key_held: job \(holder) holds its unique key and has not ended")
        }
    }

    @Test func `a job that runs, that has ended, and that is not there has no reason`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.claim()
            #expect(try await connection.why(id) == nil)
            try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1])
            #expect(try await connection.why(id) == nil)
            #expect(try await connection.why(404) == nil)
        }
    }
}
