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

    /// Who knows of them asks for what it claimed before it starts any of it; who does not would not ask.
    @Test(arguments: [true, false])
    func `and so does one that meets limits, where its worker does not know of them`(_ knows: Bool) async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.limit_set('key', 'x', '{\"concurrency\": 5}')")
            try await connection.enqueue("'test', limit_key => 'x'")
            try await connection.openSession()
            #expect(try await waits(connection, limited: knows) == (knows ? "off" : "on"))
            #expect(try await waits(connection, loose: false, limited: knows) == "on")
        }
    }

    @Test func `whoever asks for leases hears of those that live, when they are on disk`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "x", #"{"concurrency": 5}"#)
            try await connection.enqueue("'test', limit_key => 'x'")
            try await connection.openSession()
            try await connection.openSession(2)
            let kind = Int32(try await connection.int("select id from millrace.kind"))
            let queue = Int32(try await connection.int("select id from millrace.queue where keyed"))
            let stretch = Stretch(lane: Lane(queue: queue, code: 17), floor: 0, limit: 9)
            let found = try await Queue.claim(
                on: connection, session: 1, number: 8, kinds: [kind], from: [stretch], wanted: 9, shortQueues: [],
                longQueues: [], limited: true, loose: true)
            #expect(found.jobs.map(\.number) == [9])
            let written = try await connection.value("pg_current_wal_insert_lsn()") ?? ""
            #expect(try await Queue.confirmLeases(on: connection, session: 1, numbers: [9, 17]) == [9])
            #expect(try await connection.bool("select pg_current_wal_flush_lsn() >= '\(written)'"))
            #expect(try await Queue.confirmLeases(on: connection, session: 2, numbers: [9]).isEmpty)
        }
    }
}
