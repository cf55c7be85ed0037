import Postgres
import TestSupport
import Testing

/// What moves a job from one place to another besides its runs: cancels, redrives, deletions.
@Suite struct PlacesTests {
    /// 1. A holds a key and runs. 2. S is its successor; C and D wait for S. 3. S is cancelled.
    @Test func `those that wait for a key's successor learn that it was cancelled`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let holder = try await connection.enqueue("'test', unique_key => 'k'")
            #expect(try await connection.claim() == [holder])
            let successor = try await connection.enqueue("'test', unique_key => 'k', on_conflict => 'replace'")
            let ended = try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(successor)], \"when\": \"ended\"}}'")
            let succeeded = try await connection.enqueue("'test', options => '{\"after\": [\(successor)]}'")
            #expect(try await connection.bool("select millrace.cancel(\(successor))"))
            try await connection.settleFlows()
            #expect(try await connection.state(successor) == "cancelled")
            #expect(try await connection.state(ended) == "ready")
            #expect(try await connection.state(succeeded) == "cancelled")
        }
    }

    /// 1. X has a key and waits for A. 2. A is cancelled, and X with it. 3. C takes the key. 4. A and X are to run again.
    @Test func `a flow that is retried takes its keys again, or is refused`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let keyed = try await connection.enqueue("'test', unique_key => 'k', options => '{\"after\": [\(first)]}'")
            try await connection.run("select millrace.cancel(\(first))")
            try await connection.settleFlows()
            #expect(try await connection.state(keyed) == "cancelled")
            let other = try await connection.enqueue("'test', unique_key => 'k'")
            #expect(other != keyed)
            let refusal = try await connection.refusal(of: "select millrace.flow_retry(\(first))")
            #expect(refusal?.sqlState == "23505")
            #expect(refusal?.message.contains("job \(other) holds the unique key") == true)
            #expect(try await connection.state(first) == "cancelled")
            try await connection.run("select millrace.cancel(\(other))")
            #expect(try await connection.int("select millrace.flow_retry(\(first))") == 2)
            #expect(try await connection.state(keyed) == "blocked")
            #expect(try await connection.int("select millrace.enqueue('test', unique_key => 'k')") == keyed)
        }
    }

    /// 1. A run makes B. 2. B is cancelled and retried. 3. The run crashes.
    @Test func `a redriven job that a run has made waits for that run`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.limit("queue", "default", #"{"concurrency": 5}"#)
            let maker = try await connection.enqueue()
            try await connection.claim()
            let made = try await connection.int("select first from millrace.spawn('1-9-\(maker)', 'test', array['{}'])")
            try await connection.run("select millrace.cancel(\(made))")
            #expect(try await connection.bool("select millrace.retry(\(made))"))
            #expect(try await connection.state(made) == "blocked")
            #expect(try await connection.claim(number: 16) == [])
            _ = try await connection.rescue()
            try await connection.settleFlows()
            #expect(try await connection.int("select count(*) from millrace.job where id = \(made)") == 0)
            #expect(try await connection.int("select count(*) from millrace.blocked") == 0)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a redriven job that a run has made starts when that run has succeeded`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let maker = try await connection.enqueue()
            try await connection.claim()
            let made = try await connection.int("select first from millrace.spawn('1-9-\(maker)', 'test', array['{}'])")
            try await connection.run("select millrace.cancel(\(made)); select millrace.retry(\(made))")
            try await connection.finish([.init(id: maker, outcome: 1)], complete: [9: 1])
            try await connection.settleFlows()
            #expect(try await connection.state(made) == "ready")
        }
    }

    /// From an earlier version: such a job may run while its maker's run is forgotten.
    @Test func `a running job is not forgotten with the run that made it, but cancelled`() async throws {
        try await withConnection { connection in
            try await connection.openSession(1)
            try await connection.openSession(2)
            let maker = try await connection.enqueue()
            try await connection.claim()
            let made = try await connection.int("select first from millrace.spawn('1-9-\(maker)', 'test', array['{}'])")
            try await connection.run(
                """
                delete from millrace.blocked where job = \(made);
                insert into millrace.ready (seq, job, queue, kind, lane) select nextval('millrace.seq'), id, queue, kind, lane from millrace.job where id = \(made)
                """)
            #expect(try await connection.claim(2, number: 16) == [made])
            _ = try await connection.rescue(1)
            try await connection.settleFlows()
            #expect(try await connection.state(made) == "running")
            #expect(try await connection.column("select job from millrace.cancels(2)") == ["\(made)"])
        }
    }

    /// The lease decides what is held, even if its jobs are gone.
    @Test(arguments: ["rescue(1, 0)", "leases_return(1, array[9::bigint])"])
    func `slots of a job that is gone are given back with its lease`(call: String) async throws {
        try await withConnection { connection in
            try await connection.limit("queue", "default", #"{"concurrency": 5}"#)
            try await connection.openSession()
            let job = try await connection.enqueue()
            try await connection.claimLimited()
            try await connection.expectExactSlots(held: 1)
            try await connection.run("delete from millrace.job where id = \(job)")
            try await connection.run("select millrace.\(call)")
            try await connection.expectExactSlots(held: 0)
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
        }
    }

    @Test func `slots that no lease holds are found and given back`() async throws {
        try await withConnection { connection in
            try await connection.limit("queue", "default", #"{"concurrency": 2}"#)
            try await connection.openSession()
            for _ in 0..<3 { try await connection.enqueue() }
            try await connection.claimLimited(wanted: 1)
            try await connection.run(
                "insert into millrace.slot (gate, n) values (millrace.gate_of('queue', 'default'), 1)")
            #expect(try await connection.claimLimited(number: 16).isEmpty)
            #expect(try await connection.records("select counted, held from millrace.slots_mend()") == ["(2,1)"])
            try await connection.expectExactSlots(held: 1)
            #expect(try await connection.records("select * from millrace.slots_mend()").isEmpty)
            #expect(try await connection.claimLimited(number: 24).count == 1)
        }
    }

    /// 1. A claim has taken the job and not committed. 2. A deletion waits for it. 3. The claim commits.
    @Test func `a deletion that waited for a claim finds the job running`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let admin = try await database.connect()
            let observer = try await database.connect()
            let job = try await worker.enqueue()
            try await worker.openSession()
            try await worker.run("begin")
            #expect(try await worker.claim() == [job])
            let process = try await admin.process()
            async let refusal = admin.refusal(of: "select millrace.job_delete(\(job))")
            try await waitUntilBlocked(process, seenBy: observer)
            try await worker.run("commit")
            #expect(try await refusal?.sqlState == "55000")
            #expect(try await worker.state(job) == "running")
            #expect(try await worker.finish([.init(id: job, outcome: 1)], complete: [9: 1]) == [9])
        }
    }

    /// 1. A redrive has not committed. 2. A deletion waits for it. 3. The redrive commits.
    @Test func `a deletion beside a redrive leaves nothing in line`() async throws {
        try await withDatabase { database in
            let one = try await database.connect()
            let other = try await database.connect()
            let observer = try await database.connect()
            let job = try await one.enqueue()
            try await one.run("select millrace.cancel(\(job)); begin; select millrace.retry(\(job))")
            let process = try await other.process()
            async let deleted = other.bool("select millrace.job_delete(\(job))")
            try await waitUntilBlocked(process, seenBy: observer)
            try await one.run("commit")
            #expect(try await deleted)
            #expect(try await one.int("select count(*) from millrace.ready") == 0)
            #expect(try await one.int("select count(*) from millrace.job") == 0)
        }
    }

    @Test func `an end of a job that is gone is that of a lost lease`() async throws {
        try await withConnection { connection in
            let job = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            try await connection.run("delete from millrace.job where id = \(job)")
            #expect(try await !connection.bool("select millrace.complete('1-9-\(job)')"))
        }
    }

    @Test(arguments: ["waiting", "following"])
    func `a job that is replaced for another tenant is that tenant's`(state: String) async throws {
        try await withConnection { connection in
            try await connection.openSession()
            var job = try await connection.enqueue("'test', unique_key => 'k', tenant => 'a'")
            if state == "following" {
                try await connection.claim()
                job = try await connection.enqueue(
                    "'test', unique_key => 'k', tenant => 'a', on_conflict => 'replace'")
            }
            #expect(
                try await connection.enqueue("'test', unique_key => 'k', tenant => 'b', on_conflict => 'replace'")
                    == job)
            #expect(
                try await connection.records(
                    "select j.tenant, q.tenant from millrace.job j join millrace.queue q on q.id = j.queue where j.id = \(job)"
                ) == ["(b,b)"])
        }
    }
}

extension Connection {
    /// What a worker does after an end, and once a second.
    func settleFlows() async throws {
        try await run("select millrace.flows_check()")
        while try await bool("select more from millrace.flows_advance()") {}
    }

    @discardableResult
    fileprivate func claimLimited(number: Int = 8, wanted: Int = 10) async throws -> [String] {
        try await column(
            """
            select c.id from millrace.claim_limited(1, \(number), array(select id from millrace.kind), array(select id from millrace.queue),
                array(select 17 from millrace.queue), array(select 0::bigint from millrace.queue),
                array(select 9223372036854775807 from millrace.queue), array(select \(wanted) from millrace.queue), \(wanted), '{}', '{}') c
             where c.number is not null
            """)
    }
}
