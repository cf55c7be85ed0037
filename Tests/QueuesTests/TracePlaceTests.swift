import Postgres
import TestSupport
import Testing

@Suite struct TracePlaceTests {
    private static let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func carried(_ connection: Connection) async throws -> [String] {
        try await connection.column(
            "select coalesce(j.metadata ->> 'traceparent', '-') from millrace.job j order by j.id")
    }

    @Test func `what a transaction enqueues carries the place that it has named, and nothing after it does`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run("select millrace.enqueue('a.b', queue => 'q')")  // the next takes the short way
            try await connection.run(
                """
                begin;
                set local millrace.traceparent = '\(Self.given)';
                select millrace.enqueue('a.b', queue => 'q');
                select millrace.enqueue('a.b', metadata => '{"traceparent": "own"}');
                select * from millrace.enqueue_many('[{"kind": "a.b"}, {"kind": "a.b", "metadata": {"n": 1}}]');
                select * from millrace.enqueue_bulk('a.b', array['{}', '{}']);
                commit;
                select millrace.enqueue('a.b', queue => 'q');
                """)
            #expect(
                try await carried(connection) == [
                    "-", Self.given, "own", Self.given, Self.given, Self.given, Self.given, "-",
                ])
        }
    }

    @Test(arguments: [
        "", "garbage", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ])
    func `a malformed place is left out, and the job is enqueued`(said: String) async throws {
        try await withConnection { connection in
            try await connection.run(
                "begin; set local millrace.traceparent = '\(said)'; select millrace.enqueue('a.b'); commit")
            #expect(try await carried(connection) == ["-"])
        }
    }

    @Test func `what a run spawns belongs to its job's trace, or to the place that the run names`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let token = "1-9-\(id)"
            let own = Self.given.replacing("b7ad6b7169203331", with: "00f067aa0ba902b7")
            try await connection.run(
                """
                update millrace.job set metadata = '{"traceparent": "\(Self.given)"}' where id = \(id);
                select * from millrace.spawn('\(token)', 'c.d', array['{}', '{}']);
                begin;
                set local millrace.traceparent = '\(own)';
                select * from millrace.spawn('\(token)', 'c.d', array['{}', '{}']);
                commit
                """)
            #expect(try await carried(connection) == [Self.given, Self.given, Self.given, own, own])
        }
    }
}
