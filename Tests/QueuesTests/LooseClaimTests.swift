import Postgres
import Queues
import TestSupport
import Testing

/// Which claims reach the disk before they are answered.
@Suite struct LooseClaimTests {
    private func waits(_ connection: Connection, loose: Bool = true, limited: Bool = false) async throws -> String? {
        let queues = try await connection.column("select id from millrace.queue").compactMap { Int32($0) }
        let kinds = try await connection.column("select id from millrace.kind").compactMap { Int32($0) }
        try await connection.run("begin")
        let found = try await Queue.claim(
            on: connection, session: 1, number: 8, kinds: kinds,
            from: queues.flatMap { queue in
                (0..<40).map { Stretch(lane: Lane(queue: queue, code: $0), floor: 0, limit: 9) }
            },
            wanted: 9, shortQueues: [], longQueues: [], limited: limited, loose: loose)
        #expect(!found.jobs.isEmpty)
        let waits = try await connection.value("current_setting('synchronous_commit')")
        try await connection.run("rollback")
        return waits
    }

    @Test func `a plain claim waits for the disk only where it is asked to`() async throws {
        try await withConnection { connection in
            try await connection.enqueue()
            try await connection.openSession()
            #expect(try await waits(connection) == "off")
            #expect(try await waits(connection, loose: false) == "on")
            #expect(try await connection.value("current_setting('synchronous_commit')") == "on")
        }
    }

    @Test func `one of jobs that crashed their workers always does`() async throws {
        try await withConnection { connection in
            for _ in 0..<3 { try await connection.enqueue() }
            try await connection.openSession()
            try await connection.run(
                "update millrace.ready set crashes = 1 where job = (select max(job) from millrace.ready)")
            #expect(try await waits(connection) == "on")
        }
    }

    @Test(arguments: [true, false])
    func `and so does one that meets limits`(_ knows: Bool) async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.limit_set('key', 'x', '{\"concurrency\": 5}')")
            try await connection.enqueue("'test', limit_key => 'x'")
            try await connection.openSession()
            #expect(try await waits(connection, limited: knows) == "on")
        }
    }
}
