import Postgres
import TestSupport
import Testing

/// A key that comes round again and again while somebody's old snapshot keeps a row for each of its holders.
@Suite struct OldKeysTests {
    @Test func `the end of a holder reads nothing of those who held its key before`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let reader = try await database.connect()
            try await connection.run(ClaimPlanTests.probe)
            try await reader.run("begin isolation level repeatable read; select count(*) from millrace.job")
            let first = try await connection.enqueue("'test', unique_key => 'often'")
            try await connection.openSession()
            #expect(try await connection.claim() == [first])
            let before = try await connection.int(
                "select millrace_test_pages('select millrace.unique_end(array[\(first)])')")
            try await connection.run(
                """
                do $$
                declare the_hash bytea := (select j.unique_hash from millrace.job j);
                begin
                    for n in 1 .. 1000 loop
                        insert into millrace.unique_lock (hash, job) values (the_hash, -n);
                        delete from millrace.unique_lock u where u.job = -n;
                    end loop;
                end $$
                """)
            let last = try await connection.enqueue("'test', unique_key => 'often'")
            #expect(last != first)
            let after = try await connection.int(
                "select millrace_test_pages('select millrace.unique_end(array[\(last)])')")
            #expect(after < before + 20, "\(before) pages at first, \(after) then")
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 0)
            for connection in [reader, connection] { await connection.close() }
        }
    }
}
