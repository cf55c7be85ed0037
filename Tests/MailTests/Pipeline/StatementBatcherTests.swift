import Synchronization
import TestSupport
import Testing

@testable import Mail
@testable import Postgres

@Suite struct StatementBatcherTests {
    /// The contents of each statement; the first waits until it is released.
    private final class Statements: Sendable {
        private let made = Mutex<[[Int]]>([])
        private let isLetGo = Mutex(false)

        var groups: [[Int]] { made.withLock { $0 } }

        func note(_ items: [Int]) async {
            let isFirst = made.withLock { made in
                made.append(items)
                return made.count == 1
            }
            if isFirst { try? await eventually("the first is let go") { isLetGo.withLock { $0 } } }
        }

        func letGo() { isLetGo.withLock { $0 = true } }
    }

    private static func call(_ gathering: StatementBatcher<Int, Int>, _ items: [Int], _ statements: Statements)
        async throws
        -> [Int?]
    {
        try await withThrowingTaskGroup(of: (Int, Int?).self) { group in
            group.addTask { (items[0], try? await gathering(items[0])) }
            try await eventually("the first has begun") { !statements.groups.isEmpty }
            for item in items.dropFirst() { group.addTask { (item, try? await gathering(item)) } }
            try await eventually("all others wait") { gathering.waitingCount == items.count - 1 }
            statements.letGo()
            var answers: [Int: Int] = [:]
            for try await (item, answer) in group { answers[item] = answer }
            return items.map { answers[$0] }
        }
    }

    @Test func `those who come while a statement is on its way go together in the next`() async throws {
        let statements = Statements()
        let gathering = StatementBatcher<Int, Int>(most: 3, lanes: 1) { items in
            await statements.note(items)
            return items.map { $0 * 10 }
        }
        let answers = try await Self.call(gathering, [1, 2, 3, 4, 5], statements)
        #expect(answers == [10, 20, 30, 40, 50])
        #expect(statements.groups.map(\.count) == [1, 3, 1])
    }

    @Test func `those who clash go one after the other`() async throws {
        let statements = Statements()
        let gathering = StatementBatcher<Int, Int>(most: 9, lanes: 1, clash: { $0 % 2 == $1 % 2 }) { items in
            await statements.note(items)
            return items
        }
        _ = try await Self.call(gathering, [1, 2, 4, 6], statements)
        #expect(statements.groups.map(\.count) == [1, 1, 1, 1])
    }

    @Test func `one that the server refuses does not take the others with it`() async throws {
        let statements = Statements()
        let gathering = StatementBatcher<Int, Int>(most: 9, lanes: 1) { items in
            await statements.note(items)
            if items.contains(3) {
                throw PostgresError.server(PostgresError.ServerError(sqlState: "22023", message: "three"))
            }
            return items
        }
        #expect(try await Self.call(gathering, [1, 2, 3, 4], statements) == [1, 2, nil, 4])
    }

    @Test func `a lost connection is everybody's, and nothing is done again`() async throws {
        let statements = Statements()
        let gathering = StatementBatcher<Int, Int>(most: 9, lanes: 1) { items in
            await statements.note(items)
            if items.contains(3) { throw PostgresError.lost(reason: "cut") }
            return items
        }
        #expect(try await Self.call(gathering, [1, 2, 3, 4], statements) == [1, nil, nil, nil])
        #expect(statements.groups.count == 2)
    }

    @Test func `no statement of a request walks the messages of all`() async throws {
        try await withMail { bench in
            let connection = bench.connection
            for number in 0..<50 { _ = try await bench.send(to: "a\(number)@example.org") }
            let first = try await connection.column("select id::text from millrace.mail order by seq limit 5")
            let ids = "'{\(first.joined(separator: ","))}'"
            try await connection.execute("begin")
            try await connection.execute("set local enable_seqscan = off")
            let before = try await connection.int(Self.walks)
            let batches = try await connection.column(
                "select batch::text from millrace.mail_batch_open('smtp', \(ids), true, 7, 60, 9, 60, 9, 60)")
            #expect(Set(batches).count == 5)
            #expect(
                try await connection.value("select verdict from millrace.mail_batch_again(\(batches[0]), null, 8, 60)")
                    == "go")
            _ = try await connection.value(
                """
                select millrace.mail_batch_record('{\(batches.joined(separator: ","))}', '{2,1,1,1,1}', array_fill('settled'::text, array[5]),
                    array_fill(1, array[5]), '{1,2,3,4,5}', \(ids), array_fill('accepted'::text, array[5]), array_fill(null::text, array[5]),
                    array_fill(null::text, array[5]), array_fill(null::text, array[5]), '{a,b,c,d,e}', array_fill('accepted'::text, array[5]))::text
                """)
            #expect(try await connection.int(Self.walks) == before)
            try await connection.execute("commit")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.mail where status = 'accepted' and batch is null")
                    == 5)
            #expect(try await connection.int("select count(*) from millrace.mail_batch where state = 'open'") == 0)
        }
    }

    private static let walks = """
        select coalesce(sum(seq_scan), 0) from pg_stat_xact_user_tables where relname in ('mail', 'mail_content', 'mail_batch', 'mail_attempt')
        """
}
