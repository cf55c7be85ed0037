import Postgres
import TestSupport
import Testing

@Suite struct FinishTests {
    @Test func `a lease is finished in parts, and only its last part ends it`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<3 { ids.append(try await connection.enqueue("'test', unique_key => gen_random_uuid()::text")) }
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9]) == [9])
            #expect(try await connection.state(ids[0]) == "succeeded")
            #expect(try await connection.state(ids[1]) == "running")
            // Named complete too early: one job is not accounted for, and nothing happens.
            #expect(try await connection.finish([.init(id: ids[1], outcome: 1)], complete: [9: 1]).isEmpty)
            #expect(try await connection.state(ids[1]) == "running")
            let last = [Connection.End(id: ids[1], outcome: 1), .init(id: ids[2], outcome: 3, error: "no")]
            #expect(try await connection.finish(last, complete: [9: 2]) == [9])
            #expect(try await connection.state(ids[2]) == "dead")
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
        }
    }

    @Test func `a stale token changes nothing, and is reported as such`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.rescue()?.hasPrefix("(1,1,0,0") == true)
            for outcome in 1...6 {
                let end = Connection.End(id: id, outcome: outcome, error: "late", wait: 0)
                #expect(try await connection.finish([end], complete: [9: 1]).isEmpty)
                #expect(try await connection.finish([end], partial: [9]).isEmpty)
            }
            #expect(try await connection.state(id) == "ready")
            #expect(try await connection.int("select count(*) from millrace.history") == 1)
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 1)
        }
    }

    @Test func `one flush may hold every outcome, of live leases and lost ones`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<7 { ids.append(try await connection.enqueue("'test', unique_key => gen_random_uuid()::text")) }
            try await connection.openSession()
            try await connection.claim(wanted: 6)
            try await connection.claim(number: 16)
            try await connection.run("select millrace.leases_return(1, array[17::bigint, 16])")
            let ends = (1...6).map { outcome in
                Connection.End(
                    id: ids[outcome - 1], outcome: outcome, error: [3, 4].contains(outcome) ? "why" : nil,
                    wait: outcome == 5 ? 60 : 0)
            }
            let lost = Connection.End(id: ids[6], outcome: 1, number: 17)
            #expect(try await connection.finish(ends + [lost], complete: [9: 6, 17: 1]) == [9])
            let states = try await ids.asyncMap { try await connection.state($0) ?? "none" }
            #expect(states == ["succeeded", "cancelled", "dead", "scheduled", "scheduled", "ready", "ready"])
            let attempts = try await connection.column(
                "select attempt from millrace.jobs where state in ('ready', 'scheduled') order by id")
            #expect(attempts == ["1", "0", "0", "0"])
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 4)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a flush sent twice is refused, and what it recorded can be read`() async throws {
        try await withConnection { connection in
            let ids = [try await connection.enqueue(), try await connection.enqueue()]
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9])
            let error = try await failure {
                _ = try await connection.finish([.init(id: ids[0], outcome: 1)], partial: [9])
            }
            #expect(error?.sqlState == "23505")
            let recorded = try await connection.column(
                "select unnest(millrace.recorded(1, array[\(ids[0]), \(ids[1])], array[9, 9]))")
            #expect(recorded == ["\(ids[0])"])
        }
    }
}
