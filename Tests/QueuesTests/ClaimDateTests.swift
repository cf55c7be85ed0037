import Postgres
import TestSupport
import Testing

@Suite struct ClaimDateTests {
    /// A job that came back while a claim waited for the table has a lease that begins after it came back.
    @Test(arguments: ["", #"select millrace.limit_set('queue', 'default', '{"concurrency": 5}')"#])
    func `no lease begins before its job was there`(rule: String) async throws {
        try await withDatabase { database in
            let holder = try await database.connect()
            let worker = try await database.connect()
            let watcher = try await database.connect()
            try await holder.enqueue()
            try await worker.openSession()
            if !rule.isEmpty { try await holder.run(rule) }
            try await worker.claim(number: 8)
            try await holder.run("begin; lock table millrace.ready in exclusive mode")
            async let taken = worker.claim(number: 16)
            try await eventually("the claim waits for the table") {
                try await watcher.int(
                    """
                    select count(*) from pg_locks where not granted and relation = 'millrace.ready'::regclass
                       and database = (select oid from pg_database where datname = current_database())
                    """) == 1
            }
            let back = try await holder.enqueue()
            let there = try #require(try await holder.value("select clock_timestamp()"))
            try await holder.run("commit")
            #expect(try await taken == [back])
            #expect(
                try await watcher.value(
                    "select bool_and(l.at > '\(there)') from millrace.lease l where \(back) = any (l.ids)") == "true")
            for connection in [holder, worker, watcher] { await connection.close() }
        }
    }
}
