import Postgres
import TestSupport
import Testing

/// Back ends that listen are told of the ends of jobs that ask for it.
@Suite struct ToldEndTests {
    @Test func `each way in which a job ends is told after its commit, and nothing else is`() async throws {
        try await withConnection { connection in
            let tells = "options => '{\"tell_end\": true}'"
            let flushed = try await connection.enqueue("'test', \(tells)")
            let died = try await connection.enqueue("'test', \(tells), unique_key => 'k'")
            let retried = try await connection.enqueue("'test', \(tells)")
            let silent = try await connection.enqueue("'test', unique_key => 'silent'")
            let unwanted = try await connection.enqueue("'test', options => '{\"tell_end\": false}'")
            let inHandler = try await connection.enqueue("'test', \(tells)")
            try await connection.openSession()
            try await connection.claim()
            try await connection.run("listen millrace_ends")
            try await connection.run("begin")
            try await connection.finish(
                [
                    .init(id: flushed, outcome: 1), .init(id: died, outcome: 3, error: "no"),
                    .init(id: retried, outcome: 4, error: "again", wait: 60), .init(id: silent, outcome: 1),
                    .init(id: unwanted, outcome: 1),
                ], partial: [9])
            #expect(try await told(connection).isEmpty)
            try await connection.run("commit")
            #expect(try await told(connection) == [flushed, died])
            #expect(try await connection.int("select millrace.complete('1-9-\(inHandler)')::int") == 1)
            #expect(try await told(connection) == [inHandler])
            // It waits for its second attempt, and ends without one.
            try await connection.run("select millrace.cancel(\(retried))")
            #expect(try await told(connection) == [retried])
            let refused = try await failure {
                _ = try await connection.enqueue("'test', options => '{\"tell_end\": 1}'")
            }
            #expect("\(String(describing: refused))".contains("options.tell_end is not a boolean"))
        }
    }

    @Test func `the ends of a dead worker's cancelled jobs are told, and those that run again are not`() async throws {
        try await withConnection { connection in
            let tells = "options => '{\"tell_end\": true}'"
            let cancelled = try await connection.enqueue("'test', \(tells)")
            let rescued = try await connection.enqueue("'test', \(tells)")
            try await connection.openSession()
            try await connection.claim()
            try await connection.run("select millrace.cancel(\(cancelled))")
            try await connection.run("listen millrace_ends")
            _ = try await connection.rescue()
            #expect(try await told(connection) == [cancelled])
            #expect(try await connection.state(rescued) == "ready")
            try await connection.openSession(2)
            try await connection.claim(2, number: 16)
            try await connection.run(
                "select millrace.cancel(\(rescued)); select millrace.leases_return(2, array[17::bigint])")
            #expect(try await told(connection) == [rescued])
        }
    }

    /// A worker knows by the claim that somebody is to be told.
    @Test(arguments: [
        "", ", limit_key => 'k'", ", unique_key => 'u'", ", args => jsonb_build_object('text', repeat('x', 300000))",
    ])
    func `a claim says that an end is told`(with more: String) async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.limit_set('key', 'k', '{\"concurrency\": 5}')")
            let id = try await connection.enqueue("'test', options => '{\"tell_end\": true}'\(more)")
            try await connection.openSession()
            let keyed = try await connection.column(
                """
                select c.keyed from millrace.claim(1, 8, array(select id from millrace.kind),
                    (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(9) from millrace.queue q, generate_series(0, 39) l), 9,
                    array(select id from millrace.queue where retention = 0),
                    array(select id from millrace.queue where retention = 2)) c where c.id = \(id)
                """)
            #expect(keyed == ["true"])
        }
    }

    /// What this connection has been told so far, in its order.
    private func told(_ connection: Connection) async throws -> [Int] {
        _ = try await connection.int("select 1")
        return try await connection.notifications(until: .now).filter { $0.channel == "millrace_ends" }
            .compactMap { Int($0.payload) }
    }
}
