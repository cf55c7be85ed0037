import MillraceQueues
import Postgres
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
                (0..<40).map { ClaimRange(lane: Lane(queue: queue, code: $0), floor: 0, limit: 9) }
            },
            wanted: 9, shortQueues: [], longQueues: [], limited: limited, loose: loose)
        #expect(found.count > 0)
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

    /// A worker that knows about limits checks what it claimed before it starts any of it; an older one would not.
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

    @Test func `reading leases returns the jobs of living leases, once they are on disk`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "x", #"{"concurrency": 5}"#)
            try await connection.enqueue("'test', limit_key => 'x'")
            try await connection.openSession()
            try await connection.openSession(2)
            let kind = Int32(try await connection.int("select id from millrace.kind"))
            let queue = Int32(try await connection.int("select id from millrace.queue where keyed"))
            let range = ClaimRange(lane: Lane(queue: queue, code: 17), floor: 0, limit: 9)
            let found = try await Queue.claim(
                on: connection, session: 1, number: 8, kinds: [kind], from: [range], wanted: 9, shortQueues: [],
                longQueues: [], limited: true, loose: true)
            let lane = Lane(queue: queue, code: 17)
            let id = Int64(try await connection.int("select id from millrace.job"))
            #expect(
                found.unreadLeases == [UnreadLease(number: 9, lane: lane, ids: [id], seqs: [id])] && found.jobs.isEmpty)
            let forgotten = UnreadLease(number: 17, lane: lane, ids: [id + 1], seqs: [id + 1])
            let written = try await connection.value("pg_current_wal_insert_lsn()") ?? ""
            let jobs = try await Queue.readLeases(on: connection, session: 1, of: found.unreadLeases + [forgotten])
            #expect(jobs.map(\.id) == [id] && jobs.map(\.number) == [9])
            #expect(try await connection.bool("select pg_current_wal_flush_lsn() >= '\(written)'"))
            #expect(try await Queue.readLeases(on: connection, session: 2, of: found.unreadLeases).isEmpty)
            // And again, because an answer may be lost.
            #expect(try await Queue.readLeases(on: connection, session: 1, of: found.unreadLeases).map(\.id) == [id])
        }
    }

    /// A claimer gets everything about a job, in one answer or in two.
    @Test(arguments: [1, 40]) func `jobs that are read are those that a claim brings`(_ spread: Int) async throws {
        try await withConnection { connection in
            try await connection.limit("key", "*", #"{"concurrency": 1000}"#)
            try await connection.limit("queue", "default", #"{"concurrency": 1000}"#)
            for round in 0..<3 {
                let key = round == 2 ? "null" : "'k\(round)'"
                try await connection.run(
                    """
                    select millrace.enqueue('test', '{"n": \(round)}', limit_key => \(key), priority => \(3 + round));
                    select millrace.enqueue('other', '{"n": [1, 2]}', limit_key => \(key), tags => '{a,b}', metadata => '{"m": 1}',
                        unique_key => 'u\(round)', max_attempts => 7);
                    select millrace.enqueue('test', limit_key => \(key), options => '{"expires_at": "2020-01-01T00:00:00Z"}');
                    select nextval('millrace.seq') from generate_series(1, \(spread))
                    """)
            }
            try await connection.openSession()
            try await connection.run(
                """
                update millrace.ready set lane = lane & ~3, attempt = 3, seq = seq + 1000 where job = (select min(job) from millrace.ready);
                update millrace.ready set crashes = 1 where job = (select max(job) from millrace.ready)
                """)
            let kinds = try await connection.column("select id from millrace.kind").compactMap { Int32($0) }
            let queues = try await connection.column("select id from millrace.queue").compactMap { Int32($0) }
            let ranges = queues.flatMap { queue in
                (0..<40).map { ClaimRange(lane: Lane(queue: queue, code: $0), floor: 0, limit: 20) }
            }
            var answers: [[[String]]] = []
            for isApart in [false, true] {
                try await connection.run("begin")
                let found = try await Queue.claim(
                    on: connection, session: 1, number: 8, kinds: kinds, from: ranges, wanted: 20, shortQueues: [],
                    longQueues: [queues[0]], limited: true, loose: isApart)
                let jobs =
                    isApart
                    ? try await Queue.readLeases(on: connection, session: 1, of: found.unreadLeases) : found.jobs
                #expect(jobs.count == 9 && found.unreadLeases.isEmpty == !isApart)
                answers.append(
                    jobs.sorted { $0.id < $1.id }.map { job in
                        Mirror(reflecting: job).children.filter {
                            !["claimedAt", "receivedAt", "gates", "gate"].contains($0.label)
                        }
                        .map { "\($0.label ?? ""): \($0.value)" }
                            + ["\((job.gates + [job.gate].compactMap { $0 }).sorted())"]
                    })
                #expect(Set(jobs.map(\.claimedAt)).count == 1)
                if isApart {
                    #expect(jobs.map(\.lane.priority) == jobs.map(\.lane.priority).sorted())
                }
                try await connection.run("rollback")
            }
            #expect(answers[0] == answers[1])
        }
    }
}
