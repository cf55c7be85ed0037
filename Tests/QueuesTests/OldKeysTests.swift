import Postgres
import TestSupport
import Testing

/// A key that is used again and again while somebody's old snapshot keeps a row for each of its holders.
@Suite struct OldKeysTests {
    @Test func `taking, replacing and ending read nothing of those who held the key before`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let reader = try await database.connect()
            try await connection.run(ClaimPlanTests.probe)
            try await reader.run("begin isolation level repeatable read; select count(*) from millrace.job")
            for _ in 0..<3 { _ = try await Self.round(connection) }
            let before = try await Self.least(connection)
            for _ in 0..<300 {
                try await connection.run("select millrace.cancel(millrace.enqueue(\(Self.often)))")
            }
            let after = try await Self.least(connection)
            for (what, first, then) in zip(["take", "replace", "end"], zip(before, after)).map({ ($0, $1.0, $1.1) }) {
                #expect(then < first + 30, "to \(what): \(first) pages at first, \(then) then")
            }
            #expect(try await connection.int("select count(*) from millrace.unique_lock") == 1)
            for connection in [reader, connection] { await connection.close() }
        }
    }

    private static let often = "'test', unique_key => 'often', run_at => now() + interval '1 hour'"

    /// The least of three measurements: a session that plans again, for instance after an analyze, also reads the catalog.
    private static func least(_ connection: Connection) async throws -> [Int] {
        var least = try await round(connection)
        for _ in 0..<2 { least = zip(least, try await round(connection)).map { min($0, $1) } }
        return least
    }

    /// How many pages it reads to take the key, to replace its holder, and to end that.
    private static func round(_ connection: Connection) async throws -> [Int] {
        var pages: [Int] = []
        for call in ["millrace.enqueue(\(often))", "millrace.enqueue(\(often), on_conflict => 'replace')"] {
            pages.append(try await connection.int("select public.millrace_test_pages($$select \(call)$$)"))
        }
        let holder = try await connection.int("select max(id) from millrace.job")
        pages.append(
            try await connection.int("select public.millrace_test_pages($$select millrace.cancel(\(holder))$$)"))
        return pages
    }
}
