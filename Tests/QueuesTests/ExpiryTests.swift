import Postgres
import TestSupport
import Testing

/// `options.expires_at`: a job that has not begun by then is cancelled, and one that has begun goes on.
@Suite struct ExpiryTests {
    enum Begun: String, CaseIterable {
        case no, waited, withStep, failed, snoozed
    }

    /// Each way in which a worker reads jobs.
    enum Way: String, CaseIterable {
        case claim, many, one, limited, leases, contents
    }

    private static func job(_ begun: Begun, _ connection: Connection) async throws -> Int {
        let id = try await connection.claimedJob(
            "'test', options => jsonb_build_object('expires_at', millrace.now() + interval '2 s')")
        switch begun {
        case .no: try await connection.run("select millrace.leases_return(1, array[9])")
        case .waited:
            #expect(try await connection.value("millrace.wait('1-9-\(id)', 'w', 'time', '{\"seconds\": 4}')") == nil)
        case .withStep:
            try await connection.run("select millrace.step('1-9-\(id)', 's')")
            try await connection.finish([.init(id: id, outcome: 6, wait: 0)], complete: [9: 1])
        case .failed:
            try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 4)], complete: [9: 1])
        case .snoozed: try await connection.finish([.init(id: id, outcome: 5, wait: 4)], complete: [9: 1])
        }
        try await connection.run("select millrace.test_clock_advance('5 s'); select millrace.promote(null, 10)")
        return id
    }

    private static func call(_ function: String, wanted: Int) -> String {
        """
        select coalesce(c.expired, false) from millrace.\(function)(1, 48, array(select id from millrace.kind),
            (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
            (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
            (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
            (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
            (select array_agg(\(wanted)) from millrace.queue q, generate_series(0, 39) l), \(wanted), '{}', '{}') c where c.id is not null
        """
    }

    @Test(arguments: Begun.allCases, Way.allCases)
    func `a job that has begun does not expire`(begun: Begun, way: Way) async throws {
        try await withConnection(.movableClock) { connection in
            let id = try await Self.job(begun, connection)
            let expired: Bool
            switch way {
            case .claim: expired = try await connection.bool(Self.call("claim", wanted: 10))
            case .many: expired = try await connection.bool(Self.call("claim", wanted: 1000))
            case .limited: expired = try await connection.bool(Self.call("claim_limited", wanted: 10))
            case .one:
                expired = try await connection.bool(
                    """
                    select c.expired from (select r.* from millrace.ready r) r cross join lateral
                        millrace.claim_one(1, 49, array(select id from millrace.kind), r.queue, r.lane, 0, false) c
                    """)
            case .leases:
                #expect(try await connection.claim(number: 48) == [id])
                expired = try await connection.bool(
                    "select coalesce(expired, false) from millrace.leases_read(1, array[49]) where id is not null")
            case .contents:
                #expect(try await connection.claim(number: 48) == [id])
                expired = try await connection.bool(
                    "select expired from millrace.jobs_read(1, array[49], array[\(id)], 1000000, 1000000)")
            }
            #expect(expired == (begun == .no))
        }
    }
}
