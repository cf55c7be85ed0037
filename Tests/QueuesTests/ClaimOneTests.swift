import MillraceQueues
import Postgres
import TestSupport
import Testing

/// The claim of a worker that was woken for one job.
@Suite struct ClaimOneTests {
    private func claimOne(
        _ connection: Connection, number: Int64 = 9, queue: Int32? = nil, code: Int32 = 17, floor: Int64 = 0,
        kinds: [Int32]? = nil, loose: Bool = false
    ) async throws -> Claimed? {
        var known = kinds ?? []
        if kinds == nil {
            known = try await connection.column("select id from millrace.kind").compactMap { Int32($0) }
        }
        let line = try await connection.int("select min(id) from millrace.queue")
        return try await Queue.claimOne(
            on: connection, session: 1, number: number, kinds: known,
            from: ClaimRange(lane: Lane(queue: queue ?? Int32(line), code: code), floor: floor, limit: 1), loose: loose)
    }

    @Test func `one job is claimed with all that a claim of many says of it`() async throws {
        try await withConnection { connection in
            let more = """
                'test', '{"n": 7}', unique_key => 'u', max_attempts => 3, tags => '{a,b}', metadata => '{"m": 1}',
                options => '{"timeout": 5, "expires_at": "2001-01-01T00:00:00Z", "unique_for": 9}'
                """
            try await connection.openSession()
            for _ in 0..<2 {
                try await connection.run(
                    "select millrace.enqueue(\(more.replacing("'u'", with: "gen_random_uuid()::text")))")
            }
            let kind = Int32(try await connection.int("select id from millrace.kind"))
            let many = try await Queue.claim(
                on: connection, session: 1, number: 16, kinds: [kind],
                from: [ClaimRange(lane: Lane(queue: 1, code: 17), floor: 0, limit: 1)], wanted: 1, shortQueues: [],
                longQueues: [])
            let one = try #require(try await claimOne(connection))
            let other = try #require(many.jobs.first)
            #expect(one.number == 9 && other.number == 17 && one.seq == one.id && one.id > other.id)
            #expect(one.kind == other.kind && one.lane == other.lane)
            #expect(one.attempt == other.attempt && one.crashes == other.crashes)
            #expect(one.args == other.args && one.maxAttempts == other.maxAttempts && one.maxAttempts == 3)
            #expect(one.keyed && other.keyed && one.expired && other.expired)
            #expect(one.options == other.options && one.metadata == other.metadata && one.tags == other.tags)
            #expect(one.enqueuedAt > other.enqueuedAt && one.claimedAt >= one.enqueuedAt)
            #expect(try await connection.state(Int(one.id)) == "running")
            try await connection.end([Int(one.id)])
            #expect(try await connection.int("select count(*) from millrace.lease") == 1)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `it is the first above the floor, of a kind that is known`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let other = try await connection.enqueue("'other'")
            let first = try await connection.enqueue()
            let second = try await connection.enqueue()
            let kind = Int32(try await connection.int("select id from millrace.kind where name = 'test'"))
            #expect(try await claimOne(connection, floor: Int64(first), kinds: [kind])?.id == Int64(second))
            #expect(try await claimOne(connection, number: 17, kinds: [kind])?.id == Int64(first))
            #expect(try await claimOne(connection, number: 25, kinds: [kind]) == nil)
            #expect(try await claimOne(connection, number: 33)?.id == Int64(other))
        }
    }

    @Test func `what it has been through is told, and a rescue keeps it`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.run("update millrace.ready set attempt = 2, crashes = 1")
            let job = try #require(try await claimOne(connection))
            #expect(job.attempt == 2 && job.crashes == 1 && !job.keyed && !job.expired && job.tags.isEmpty)
            _ = try await connection.rescue()
            #expect(
                try await connection.value("select attempt || ' ' || crashes from millrace.ready where job = \(id)")
                    == "2 2")
        }
    }

    @Test(arguments: [
        "select millrace.pause('default')", "select millrace.limit_set('queue', 'default', '{\"concurrency\": 5}')",
    ])
    func `nothing is taken from where a pause or a limit has a say`(rule: String) async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.run(rule)
            #expect(try await claimOne(connection) == nil)
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test(arguments: ["limit_key => 'x'", "tenant => 'x'"])
    func `nor from lines of keys and tenants`(more: String) async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue("'test', \(more)")
            let line = Int32(try await connection.int("select queue from millrace.ready where job = \(id)"))
            #expect(try await claimOne(connection, queue: line) == nil)
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test func `it waits for the disk where it is asked to, and where the job has crashed a worker`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            func setting(loose: Bool) async throws -> String? {
                try await connection.run("begin")
                #expect(try await claimOne(connection, loose: loose) != nil)
                let setting = try await connection.value("current_setting('synchronous_commit')")
                try await connection.run("rollback")
                return setting
            }
            try await connection.enqueue()
            #expect(try await setting(loose: true) == "off")
            #expect(try await setting(loose: false) == "on")
            try await connection.run("update millrace.ready set crashes = 1")
            #expect(try await setting(loose: true) == "on")
        }
    }

    @Test func `nothing is taken for a session that is gone`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            let error = try await failure { _ = try await claimOne(connection) }
            #expect(error?.sqlState == "23503")
            #expect(try await connection.state(id) == "ready")
        }
    }
}
