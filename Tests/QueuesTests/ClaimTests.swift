import Postgres
import TestSupport
import Testing

@Suite struct ClaimTests {
    @Test func `a claim takes the first in line, of known kinds, in queues that are not paused`() async throws {
        try await withConnection { connection in
            let late = try await connection.enqueue("'test', priority => 9")
            let first = try await connection.enqueue("'test', priority => 0")
            let second = try await connection.enqueue("'test', priority => 0")
            let other = try await connection.enqueue("'other', priority => 0")
            let paused = try await connection.enqueue("'test', queue => 'still'")
            try await connection.run("select millrace.pause('still')")
            try await connection.openSession()
            #expect(try await connection.claim(wanted: 2, kinds: ["test"]) == [first, second])
            #expect(try await connection.claim(number: 16, kinds: ["test"]) == [late])
            #expect(try await connection.state(other) == "ready")
            #expect(try await connection.state(paused) == "ready")
            try await connection.run("select millrace.resume('still')")
            #expect(Set(try await connection.claim(number: 24)) == [other, paused])
            #expect(try await connection.claim(number: 32).isEmpty)
            #expect(try await connection.int("select count(*) from millrace.lease") == 3)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a claim stays above the floor, below the ceiling, and within the limit of a lane`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<6 { ids.append(try await connection.enqueue()) }
            try await connection.openSession()
            let taken = try await connection.column(
                """
                select id from millrace.claim(1, 8, array[1], array[1], array[17], array[\(ids[1])]::bigint[], array[\(ids[4])]::bigint[],
                    array[2], 100, '{}', '{}') order by seq
                """)
            #expect(taken == [ids[2], ids[3]].map(String.init))
        }
    }

    /// A snapshot alone lists no writer that is younger than the youngest that has ended.
    @Test func `the horizon names every writer that may have drawn a number, also when none has ended`() async throws {
        try await withDatabase(.migrated) { database in
            let observer = try await database.connect()
            var writers: [Connection] = []
            var expected: Set<String> = []
            for _ in 0..<5 {
                let writer = try await database.connect()
                try await writer.run("begin")
                expected.insert(try await writer.value("select pg_current_xact_id()") ?? "")
                writers.append(writer)
            }
            let named = Set(try await observer.column("select unnest(writers) from millrace.horizon()"))
            #expect(named.isSuperset(of: expected))
            for writer in writers { try await writer.run("rollback") }
            let left = Set(try await observer.column("select unnest(writers) from millrace.horizon()"))
            #expect(left.isDisjoint(with: expected))
            for connection in writers + [observer] { await connection.close() }
        }
    }

    @Test func `nothing can be claimed for a session that is gone`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            let error = try await failure { try await connection.claim(77) }
            #expect(error?.sqlState == "23503")
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test func `each retention class gets a lease of its own, and so does a lone suspect`() async throws {
        try await withConnection { connection in
            for queue in ["brief", "usual", "ages"] { try await connection.enqueue("'test', queue => '\(queue)'") }
            try await connection.run(
                "select millrace.retention_set('brief', 'short'), millrace.retention_set('ages', 'long')")
            let lone = try await connection.enqueue("'test'")
            try await connection.run("update millrace.ready set lane = 19, crashes = 3 where job = \(lone)")
            try await connection.openSession()
            try await connection.claim()
            #expect(
                try await connection.column("select number from millrace.lease order by 1") == ["8", "9", "10", "13"])
            #expect(try await connection.column("select crashes from millrace.lease where number = 13") == ["{3}"])
        }
    }

    @Test func `two claims at once share the jobs and double none`() async throws {
        try await withDatabase { database in
            let setup = try await database.connect()
            try await setup.run("select millrace.enqueue('test') from generate_series(1, 500)")
            var total: [Int] = []
            try await setup.openSession(1)
            try await withThrowingTaskGroup(of: [Int].self) { group in
                for caller in 0..<4 {
                    let connection = try await database.connect()
                    group.addTask {
                        var mine: [Int] = []
                        for turn in 0..<100 {
                            let got = try await connection.claim(number: (caller * 100 + turn + 1) * 8, wanted: 7)
                            if got.isEmpty { break }
                            mine += got
                        }
                        return mine
                    }
                }
                for try await mine in group { total += mine }
            }
            #expect(total.count == 500 && Set(total).count == 500)
        }
    }
}
