import FoundationEssentials
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What the database does not send twice to a worker, and what a worker does not send twice to the database.
@Suite struct BriefTests {
    private struct Ask {
        var kinds: [Int32]
        var ranges: [ClaimRange]
        var short: [Int32]
        var long: [Int32]
    }

    /// Every lane of every queue, from the lowest place.
    private func ask(_ connection: Connection) async throws -> Ask {
        func ids(_ sql: SQL) async throws -> [Int32] {
            try await connection.query(sql) { row throws(PostgresError) in Int32(try row.int(0)) }
        }
        let queues = try await ids("select id from millrace.queue order by id")
        return Ask(
            kinds: try await ids("select id from millrace.kind order by id"),
            ranges: (0..<40).flatMap { code in
                queues.map { ClaimRange(lane: Lane(queue: $0, code: Int32(code)), floor: 0, limit: 100) }
            },
            short: try await ids("select id from millrace.queue where retention = 0"),
            long: try await ids("select id from millrace.queue where retention = 2"))
    }

    private func claim(
        _ ask: Ask, limited: Bool, wanted: Int = 100, _ connection: Connection
    ) async throws -> ClaimResult {
        try await Queue.claim(
            on: connection, session: 1, number: 8, kinds: ask.kinds, from: ask.ranges, wanted: wanted,
            shortQueues: ask.short, longQueues: ask.long, limited: limited)
    }

    /// The same claim, told in full, and not made.
    private func inFull(wanted: Int = 100, _ connection: Connection) async throws -> [String] {
        try await connection.run("begin")
        let rows = try await connection.column(
            """
            select concat_ws('|', c.seq, c.id, c.number, c.kind, c.queue, c.lane, c.attempt, c.crashes, c.enqueued_at, c.args,
                    coalesce(c.max_attempts::text, '-'), c.keyed, c.expired, coalesce(c.options::text, '-'), coalesce(c.metadata::text, '-'),
                    coalesce(array_to_string(c.tags, ','), ''), coalesce(c.tenant, '-'))
              from millrace.claim(1, 8, array(select id from millrace.kind),
                (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(100) from millrace.queue q, generate_series(0, 39) l), \(wanted),
                array(select id from millrace.queue where retention = 0), array(select id from millrace.queue where retention = 2)) c
             where c.args is not null order by c.id
            """)
        try await connection.run("rollback")
        return rows
    }

    private func told(_ job: Claimed, _ connection: Connection) async throws -> String {
        func text(_ bytes: [UInt8]?) -> String { bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-" }
        let enqueued = try await connection.query("select $1::timestamptz::text", [.timestamp(job.enqueuedAt)]) {
            row throws(PostgresError) in try row.string(0)
        }
        let parts: [String] = [
            "\(job.seq)", "\(job.id)", "\(job.number)", "\(job.kind)", "\(job.lane.queue)", "\(job.lane.code)",
            "\(job.attempt)", "\(job.crashes)", enqueued[0], text(job.args), job.maxAttempts.map { "\($0)" } ?? "-",
            job.keyed ? "t" : "f", job.expired ? "t" : "f", text(job.options), text(job.metadata),
            job.tags.joined(separator: ","), job.tenant ?? "-",
        ]
        return parts.joined(separator: "|")
    }

    private func enqueueAllSorts(_ connection: Connection) async throws {
        for arguments in [
            "'test'", #"'test', '{"n": 1}', queue => 'other', priority => 2"#, "'more', max_attempts => 3",
            "'test', unique_key => 'once'", "'test', options => '{\"timeout\": 3}'",
            "'test', options => '{\"expires_at\": \"2001-01-01T00:00:00Z\"}'",
            "'test', options => '{\"expires_at\": \"2999-01-01T00:00:00Z\"}'",
            "'test', tags => array['a', 'b'], metadata => '{\"by\": \"me\"}'", "'test', queue => 'kept'",
        ] { try await connection.enqueue(arguments) }
        let (crashed, moved) = (try await connection.enqueue(), try await connection.enqueue())
        try await connection.run(
            """
            update millrace.queue set retention = 2 where name = 'kept';
            update millrace.ready set lane = 19, crashes = 3, attempt = 2 where job = \(crashed);
            update millrace.ready set lane = 16, seq = nextval('millrace.seq') where job = \(moved)
            """)
    }

    /// From a thousand on another statement makes the claim.
    @Test(arguments: [100, 1000]) func `a brief claim says what a long one does`(wanted: Int) async throws {
        try await withConnection { connection in
            try await enqueueAllSorts(connection)
            try await connection.openSession()
            let full = try await inFull(connection)
            #expect(full.count == 11)
            #expect(try await inFull(wanted: wanted, connection) == full)
            let found = try await claim(try await ask(connection), limited: false, wanted: wanted, connection)
            var brief: [String] = []
            for job in found.jobs.sorted(by: { $0.id < $1.id }) { brief.append(try await told(job, connection)) }
            #expect(brief == full)
            let isSame = try await connection.query(
                "select bool_and(at = $1) from millrace.lease", [.timestamp(found.jobs[0].claimedAt)]
            ) { row throws(PostgresError) in try row.bool(0) }
            #expect(isSame == [true])
            #expect(Set(found.jobs.map(\.claimedAt)).count == 1)
        }
    }

    /// Neighbours, every second, or every fifth of the ids; with something to say of their places, and without.
    @Test(arguments: [1, 2, 5], [true, false])
    func `a claim of many reads the jobs that one of few does`(step: Int, crashed: Bool) async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.enqueue('test', jsonb_build_object('n', n), queue => case when n % \(step) = 0 then 'own' else 'other' end,
                                        unique_key => case when n = 20 then 'once' end, tags => case when n = 30 then array['a'] end,
                                        options => case when n = 40 then '{"expires_at": "2001-01-01T00:00:00Z"}'::jsonb end)
                  from generate_series(1, 60) n
                """)
            if crashed { try await connection.run("update millrace.ready set crashes = 1 where job % 7 = 0") }
            try await connection.openSession()
            var ask = try await ask(connection)
            let own = Int32(try await connection.int("select id from millrace.queue where name = 'own'"))
            ask.ranges.removeAll { $0.lane.queue != own }
            var told: [[String]] = []
            for wanted in [100, 1000] {
                try await connection.run("begin")
                let found = try await claim(ask, limited: false, wanted: wanted, connection)
                #expect(found.count == 60 / step)
                var jobs: [String] = []
                for job in found.jobs.sorted(by: { $0.id < $1.id }) {
                    jobs.append(try await self.told(job, connection))
                }
                told.append(jobs)
                #expect(
                    try await connection.column("select unnest(ids) from millrace.lease order by 1").map { Int64($0) }
                        == found.jobs.map(\.id).sorted())
                try await connection.run("rollback")
            }
            #expect(told[0] == told[1])
        }
    }

    /// A worker that has not heard of the limits yet asks as if there were none.
    @Test(arguments: [1, 100], [true, false])
    func `and so does one that meets limits`(_ most: Int, knows: Bool) async throws {
        try await withConnection { connection in
            try await enqueueAllSorts(connection)
            for name in ["x", "y"] {
                try await connection.run("select millrace.limit_set('key', '\(name)', '{\"concurrency\": \(most)}')")
                for tenant in ["a", "b"] {
                    try await connection.enqueue("'test', limit_key => '\(name)', tenant => '\(tenant)'")
                }
            }
            try await connection.openSession()
            let full = try await inFull(connection)
            #expect(full.count == (most == 1 ? 13 : 15))
            let found = try await claim(try await ask(connection), limited: knows, connection)
            let held = found.jobs.flatMap { $0.gates + ($0.gate.map { [$0] } ?? []) }
            #expect(held.count == (most == 1 ? 2 : 4) && Set(held).count == 2)
            #expect(found.turnedAway.count == (most == 1 ? 2 : 0))
            var brief: [String] = []
            for job in found.jobs.sorted(by: { $0.id < $1.id }) { brief.append(try await told(job, connection)) }
            #expect(brief == full)
        }
    }

    @Test func `a claim that waits its turn does not wait for ever`() async throws {
        try await withDatabase { database in
            let (first, second) = (try await database.connect(), try await database.connect())
            for _ in 0..<6 { try await first.enqueue() }
            try await first.openSession()
            let ask = try await ask(first)
            func claim(_ connection: Connection, number: Int64, wanted: Int) async throws -> [Int64] {
                try await Queue.claim(
                    on: connection, session: 1, number: number, kinds: ask.kinds, from: ask.ranges, wanted: wanted,
                    shortQueues: [], longQueues: [], patience: .milliseconds(15), turn: 21
                ).jobs.map(\.id)
            }
            try await first.run("begin")
            let taken = try await claim(first, number: 8, wanted: 2)
            #expect(taken.count == 2)
            let place = ask.ranges[21].lane
            #expect(
                try await first.int(
                    """
                    select count(*) from pg_locks
                     where locktype = 'advisory' and objsubid = 1 and database = (select oid from pg_database where datname = current_database())
                       and (classid::bigint << 32 | objid::bigint)
                           = hashtextextended('claim \(place.queue << 6 | place.code)', (select value::bigint from millrace.setting where name = 'lock_secret'))
                    """) == 1)
            let others = try await claim(second, number: 16, wanted: 2)
            #expect(others.count == 2 && Set(others).isDisjoint(with: taken))
            try await first.run("commit")
            #expect(try await claim(second, number: 24, wanted: 9).count == 2)
            await first.close()
            await second.close()
        }
    }

    @Test func `ends that are alike are recorded as those that are not`() async throws {
        try await withConnection { connection in
            for _ in 0..<4 { try await connection.enqueue() }
            for _ in 0..<2 { try await connection.enqueue("'more', queue => 'other'") }
            try await connection.openSession()
            let jobs = try await claim(try await ask(connection), limited: false, connection).jobs
                .sorted { $0.id < $1.id }
            #expect(jobs.count == 6)
            func finish(_ ended: [Ended], last: Bool) async throws {
                let flush = Flush(
                    ended: ended, partial: last ? [] : [9],
                    complete: last ? [(number: Int64(9), count: Int32(ended.count))] : [])
                let live = try await Queue.finish(on: connection, session: 1, flush)
                #expect(live.contains(9))
            }
            try await finish(
                jobs[..<2].map { Ended(job: $0, outcome: .retried, milliseconds: 1, error: "no", wait: .seconds(60)) },
                last: false)
            try await finish([Ended(job: jobs[2], outcome: .released, wait: .zero)], last: false)
            try await finish(
                [
                    Ended(job: jobs[3], outcome: .succeeded), Ended(job: jobs[4], outcome: .dead, error: "never"),
                    Ended(job: jobs[5], outcome: .retried, error: "later", wait: .seconds(60)),
                ], last: true)
            #expect(
                try await connection.records(
                    """
                    select h.id - \(jobs[0].id), k.name, q.name, h.outcome, h.attempt, h.crashes, h.error from millrace.history h
                      join millrace.kind k on k.id = h.kind join millrace.queue q on q.id = h.queue order by h.id
                    """) == [
                        "(0,test,default,4,1,0,no)", "(1,test,default,4,1,0,no)", "(2,test,default,6,1,0,)",
                        "(3,test,default,1,1,0,)", "(4,more,other,3,1,0,never)", "(5,more,other,4,1,0,later)",
                    ])
            #expect(
                try await connection.records(
                    "select job - \(jobs[0].id), attempt, crashes, lane from millrace.timer order by job") == [
                        "(0,1,0,17)", "(1,1,0,17)", "(5,1,0,17)",
                    ])
            #expect(try await connection.column("select job from millrace.ready") == ["\(jobs[2].id)"])
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
        }
    }
}
