import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A large claim takes what it finds at once and counts at the gates afterwards. The result is the same as with looking first.
@Suite struct LargeClaimTests {
    enum Limits: String, CaseIterable {
        case roomy, oneFull, rate, spentRate, withQueue, fullQueue, without

        var rules: [(scope: String, name: String, limits: String)] {
            switch self {
            case .roomy: [("key", "*", #"{"concurrency": 1000}"#)]
            case .oneFull: [("key", "*", #"{"concurrency": 1000}"#), ("key", "b", #"{"concurrency": 50}"#)]
            case .rate: [("key", "a", #"{"rate": 1000}"#), ("key", "b", #"{"concurrency": 1000}"#)]
            case .spentRate: [("key", "a", #"{"rate": 1000, "burst": 100}"#), ("key", "b", #"{"concurrency": 1000}"#)]
            case .withQueue: [("key", "*", #"{"concurrency": 1000}"#), ("queue", "default", #"{"concurrency": 5000}"#)]
            case .fullQueue: [("key", "*", #"{"concurrency": 1000}"#), ("queue", "default", #"{"concurrency": 300}"#)]
            case .without: [("key", "nobody", #"{"concurrency": 1}"#)]
            }
        }

        /// Whether all 600 jobs can be taken: a third of each key and a third without a key.
        var hasRoom: Bool {
            switch self {
            case .roomy, .rate, .withQueue, .without: true
            case .oneFull, .spentRate, .fullQueue: false
            }
        }
    }

    private struct Result: Equatable {
        var jobs: [String] = []
        var turnedAway: [String] = []
        var leases: [String] = []
        var held: [String] = []
        var places: [String] = []
        var locks = 0
    }

    /// Claims everything, returns the result, and rolls back.
    private func claim(_ connection: Connection, first: String? = nil, apart: Bool = false) async throws -> Result {
        try await connection.run("begin")
        if let first { try await connection.run(first) }
        let kinds = try await connection.column("select id from millrace.kind").compactMap { Int32($0) }
        let queues = try await connection.column("select id from millrace.queue order by id").compactMap { Int32($0) }
        let catched = try await Queue.claim(
            on: connection, session: 1, number: 8, kinds: kinds,
            from: queues.map { ClaimRange(lane: Lane(queue: $0, code: 17), floor: 0, limit: 2000) }, wanted: 2000,
            shortQueues: [], longQueues: [], limited: true, loose: apart)
        var result = Result()
        #expect(apart ? catched.jobs.isEmpty : catched.unreadLeases.isEmpty)
        let jobs =
            apart
            ? try await Queue.readLeases(on: connection, session: 1, of: catched.unreadLeases) : catched.jobs
        #expect(jobs.count == catched.count)
        result.jobs = jobs.map { job in
            "\(job.id) \(job.number) \((job.gates + [job.gate].compactMap { $0 } + catched.gates).sorted())"
        }.sorted()
        result.turnedAway = catched.turnedAway.map { "\($0.lane) \($0.seq)" }.sorted()
        result.leases = try await connection.records(
            "select session, number, n, lo, hi, (select array_agg(i order by i) from unnest(ids) i) from millrace.lease order by number"
        )
        result.held = try await connection.records("select * from millrace.slots_audit() order by gate")
        #expect(try await connection.int("select count(*) from millrace.slots_audit() where counted <> held") == 0)
        result.places = try await connection.records(
            """
            select job, kind, lane, attempt, 'ready' from millrace.ready union all
            select job, kind, lane, attempt, 'parked' from millrace.parked where gate <> 5 order by 1
            """)
        result.locks = try await connection.int(
            "select count(*) from millrace.turn where name = 'key gate' and xmax = pg_current_xact_id()::xid")
        try await connection.run(
            "select millrace.leases_return(1, array(select number from millrace.lease))")
        #expect(try await connection.int("select coalesce(sum(n), 0) from millrace.slot") == 0)
        try await connection.run("rollback")
        return result
    }

    @Test(arguments: Limits.allCases) func `it comes to the same`(limits: Limits) async throws {
        try await withConnection { connection in
            for rule in limits.rules { try await connection.limit(rule.scope, rule.name, rule.limits) }
            for key in ["'a'", "'b'", "null"] {
                try await connection.run(
                    "select count(millrace.enqueue('test', limit_key => \(key))) from generate_series(1, 200)")
            }
            try await connection.openSession()
            // A row without its gate, as retried jobs have.
            try await connection.run(
                "update millrace.ready set gate = null, attempt = 2 where job = (select max(job) from millrace.ready where gate is not null)"
            )
            let atOnce = try await claim(connection)
            // While anything is parked, it looks first.
            let parked =
                "insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes) values (5, 17, 1, 1, 1, 0, 0)"
            let looking = try await claim(connection, first: parked)
            #expect(try await claim(connection, apart: true) == atOnce)
            #expect(try await claim(connection, first: parked, apart: true) == looking)
            #expect(atOnce.jobs == looking.jobs)
            #expect(Set(atOnce.turnedAway) == Set(looking.turnedAway))
            #expect(atOnce.leases == looking.leases)
            #expect(atOnce.held == looking.held)
            #expect(atOnce.places == looking.places)
            #expect((atOnce.jobs.count == 600) == limits.hasRoom)
            #expect(looking.locks < 64 && atOnce.locks == (limits == .fullQueue ? looking.locks : 64))
        }
    }

    /// Rows of slots are gathered before they are many.
    @Test func `large claims fold what they find at a gate`() async throws {
        try await withConnection { connection in
            try await connection.limit("key", "a", #"{"concurrency": 1000000}"#)
            try await connection.enqueue("'test', limit_key => 'a'")
            try await connection.run(
                "insert into millrace.slot (gate, n) select millrace.gate_of('key', 'a'), n from generate_series(1, 50) i, (values (1), (-1)) v(n)"
            )
            try await connection.openSession()
            #expect(try await connection.int("select count(*) from millrace.slot") == 100)
            let kind = Int32(try await connection.int("select id from millrace.kind"))
            let queue = Int32(try await connection.int("select id from millrace.queue where keyed"))
            let found = try await Queue.claim(
                on: connection, session: 1, number: 8, kinds: [kind],
                from: [ClaimRange(lane: Lane(queue: queue, code: 17), floor: 0, limit: 600)], wanted: 600,
                shortQueues: [],
                longQueues: [], limited: true)
            #expect(found.jobs.count == 1)
            #expect(try await connection.int("select count(*) from millrace.slot") < 20)
            try await connection.expectExactSlots(held: 1)
        }
    }
}
