import Postgres
import TestSupport
import Testing

/// A session that has ended many leases while somebody's old snapshot keeps a row for each.
@Suite struct OldLeasesTests {
    @Test func `an end and a look read nothing of leases that the session had before`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let reader = try await database.connect()
            try await connection.run(ClaimPlanTests.probe)
            _ = try await connection.enqueue("'test'")
            _ = try await connection.enqueue("'test'")
            try await connection.openSession()
            #expect(try await connection.claim().count == 2)
            let whole = """
                select millrace.finish(1, array[0::bigint], array[N::bigint], array[1::smallint], array[1], array[1],
                    array[0::smallint], array[0::smallint], array[1], '{}', array[N::bigint], array[7])
                """
            let partial = whole.replacing("'{}', array[N::bigint], array[7]", with: "array[N::bigint], '{}', '{}'")
            let looks = [
                whole, partial, "select millrace.leases_confirm(1, array[N])",
                "select * from millrace.leases_read(1, array[N])",
            ]
            func pages(_ number: Int) async throws -> [Int] {
                var counts: [Int] = []
                for look in looks {
                    // None of these ends anything: the lease has fewer jobs than stated, or there is no such number.
                    let text = look.replacing("N", with: "\(number)")
                    counts.append(try await connection.int("select public.millrace_test_pages($probe$\(text)$probe$)"))
                }
                return counts
            }
            _ = try await pages(1)
            let before = try await pages(1)
            try await reader.run("begin isolation level repeatable read; select count(*) from millrace.job")
            try await connection.run(
                """
                do $$
                declare one millrace.lease;
                begin
                    select * into one from millrace.lease;
                    for n in 1 .. 2000 loop
                        one.number := 1000 + n * 8;
                        insert into millrace.lease values (one.*);
                        delete from millrace.lease l where l.session = one.session and l.number = one.number;
                    end loop;
                end $$
                """)
            // What the planner then takes for one page with one row.
            try await connection.run("vacuum analyze millrace.lease")
            try await connection.run("discard plans")
            _ = try await pages(1)
            let after = try await pages(1)
            for (look, (old, new)) in zip(looks, zip(before, after)) {
                #expect(new < old + 10, "\(old) pages at first, \(new) then: \(look)")
            }
            for connection in [reader, connection] { await connection.close() }
        }
    }
}
