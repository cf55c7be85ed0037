import Postgres
import TestSupport
import Testing

@Suite struct CancelTests {
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
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
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
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
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
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
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
}
