import Postgres
import TestSupport
import Testing

/// A reader that follows the feed by its numbers sees every change once, in order.
@Suite struct FeedOrderTests {
    private static func write(_ ref: String, of person: String = "ada", on writer: Connection) async throws {
        try await writer.run(
            "insert into millrace.feed (at, topic, person, ref, change, data) values (now(), 'quests', '\(person)', '\(ref)', 'said', '{}')"
        )
    }

    @Test(arguments: [1, 2, 3])
    func `readers miss nothing and see nothing twice while writers keep transactions open`(seed: Int) async throws {
        try await withDatabase { database in
            var random = SeededRandom(seed)
            var writers: [Connection] = []
            for _ in 0..<5 { writers.append(try await database.connect()) }
            let readers = (try await database.connect(), try await database.connect())
            var open = [Int: [String]]()  // what a writer's open transaction has written
            var committed: [String] = []
            var (feed, everybody) = (Connection.Feed(), [String]())
            var position = 0
            func read() async throws {
                let next = try await readers.0.feed(of: "ada", since: feed.position)
                feed.refs += next.refs
                feed.position = next.position
                for row in try await readers.1.column(
                    "select f.seq || ' ' || f.ref from millrace.feed_new(\(position), 7) f order by f.seq")
                {
                    let words = row.split(separator: " ")
                    #expect(Int(words[0]) ?? 0 > position)
                    position = Int(words[0]) ?? 0
                    everybody.append(String(words[1]))
                }
            }
            for turn in 0..<150 {
                let writer = random.below(writers.count)
                switch random.below(4) {
                case 0: try await read()
                case 1 where open[writer] != nil:
                    if random.chance(0.8) {
                        try await writers[writer].run("commit")
                        committed += open[writer] ?? []
                    } else {
                        try await writers[writer].run("rollback")
                    }
                    open[writer] = nil
                default:
                    if open[writer] == nil { try await writers[writer].run("begin") }
                    open[writer, default: []].append("\(writer).\(turn)")
                    try await Self.write("\(writer).\(turn)", on: writers[writer])
                }
            }
            for (writer, refs) in open {
                try await writers[writer].run("commit")
                committed += refs
            }
            for _ in 0...(committed.count / 7) { try await read() }
            #expect(feed.refs.sorted() == committed.sorted() && feed.refs == everybody)
            for writer in 0..<writers.count {  // what one transaction wrote stays in its order
                let own = feed.refs.filter { $0.hasPrefix("\(writer).") }
                #expect(own == own.sorted { Int($0.dropFirst(2)) ?? 0 < Int($1.dropFirst(2)) ?? 0 })
            }
        }
    }

    @Test func `writers and readers at the same time: each reader sees the same changes in the same order`()
        async throws
    {
        try await withDatabase { database in
            let lists = try await withThrowingTaskGroup(of: [String]?.self) { group in
                for writer in 0..<3 {
                    group.addTask {
                        let connection = try await database.connect()
                        for n in 0..<60 {
                            try await connection.run("begin")
                            try await Self.write("\(writer).\(n)a", on: connection)
                            try await Self.write("\(writer).\(n)b", on: connection)
                            try await connection.run(n % 9 == 4 ? "rollback" : "commit")
                        }
                        await connection.close()
                        return nil
                    }
                }
                for _ in 0..<2 {
                    group.addTask {
                        let connection = try await database.connect()
                        var feed = Connection.Feed()
                        while feed.refs.count < 3 * 2 * (60 - 7) {
                            let next = try await connection.feed(of: "ada", since: feed.position)
                            feed.refs += next.refs
                            feed.position = next.position
                        }
                        #expect(try await connection.feed(of: "ada", since: feed.position).refs.isEmpty)
                        await connection.close()
                        return feed.refs
                    }
                }
                return try await group.reduce(into: []) { lists, list in list.map { lists.append($0) } }
            }
            #expect(lists.count == 2 && lists[0] == lists[1])
            #expect(Set(lists[0]).count == lists[0].count)
        }
    }

    @Test func `an open transaction delays nobody's changes but its own`() async throws {
        try await withDatabase { database in
            let (slow, quick) = (try await database.connect(), try await database.connect())
            try await quick.run("set lock_timeout = '1s'")
            try await slow.run("begin")
            try await Self.write("slow", on: slow)
            try await Self.write("quick", on: quick)
            let first = try await quick.feed(of: "ada")
            #expect(first.refs == ["quick"])
            try await slow.run("commit")
            #expect(try await quick.feed(of: "ada", since: first.position).refs == ["slow"])

            // Nor one that deletes what nobody has read yet.
            try await Self.write("going", on: quick)
            try await slow.run("begin; delete from millrace.feed where ref = 'going'")
            try await Self.write("staying", on: quick)
            #expect(try await quick.feed(of: "ada", since: first.position).refs == ["slow", "staying"])
            try await slow.run("rollback")
            #expect(try await quick.feed(of: "ada", since: first.position).refs == ["slow", "staying", "going"])
        }
    }

    @Test func `what a reader's own transaction writes after numbering is numbered later`() async throws {
        try await withDatabase { database in
            let (own, other) = (try await database.connect(), try await database.connect())
            try await own.run("begin")
            try await Self.write("before", on: own)
            try await Self.write("other", on: other)  // a later transaction, which has ended
            #expect(try await own.feed(of: "ada").refs == ["before", "other"])
            try await Self.write("after", on: own)
            try await own.run("commit")
            #expect(try await other.feed(of: "ada").refs == ["before", "other", "after"])
        }
    }

    @Test func `a copy of a database whose server has counted further numbers what is new`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await Self.write("one", on: connection)
            let position = try await connection.feed(of: "ada").position
            try await connection.run("update millrace.feed set counted_to = '9000000000000', counted_open = '{}'")
            try await Self.write("two", on: connection)
            #expect(try await connection.feed(of: "ada", since: position).refs == ["two"])
        }
    }

    @Test func `numbering costs what is new, however much was numbered while an old snapshot was held`() async throws {
        try await withDatabase { database in
            let (connection, old) = (try await database.connect(), try await database.connect())
            try await old.run("begin isolation level repeatable read; select count(*) from millrace.feed")
            var reads = [0]  // of all numberings so far
            for _ in 0..<12 {
                try await connection.run(
                    """
                    insert into millrace.feed (at, topic, person, ref, change, data, due_at)
                    select now(), 'moods', 'ada', n, 'said', '{}', case when n % 10 = 0 then now() - interval '1 second' end from generate_series(1, 500) n
                    """)
                try await connection.run("begin")
                #expect(try await connection.int("select millrace.feed_number()") == 500)
                reads.append(
                    try await connection.int(
                        "select sum(pg_stat_get_xact_tuples_returned(x.indexrelid)) from pg_index x where x.indrelid = 'millrace.feed'::regclass"
                    ))
                try await connection.run("commit")
            }
            let each = zip(reads.dropFirst(), reads).map { $0 - $1 }
            #expect(each.last ?? .max < 2 * (each.first ?? 0), "entries of indexes read by each numbering: \(each)")
            try await old.run("commit")
        }
    }

    @Test func `a new reader that loads its state after asking for the position misses nothing`() async throws {
        try await withDatabase { database in
            let (other, reader) = (try await database.connect(), try await database.connect())
            #expect(try await reader.column("select f from millrace.feed_position('ada') f") == ["(0,0)"])
            try await Self.write("old", on: reader)
            try await other.run("begin; select millrace.feed_number()")  // numbered, and nobody sees it yet
            let position = try await reader.feedEnd()
            try await other.run("commit")
            try await Self.write("new", on: reader)
            #expect(try await reader.feed(of: "ada", since: position).refs == ["new"])
        }
    }

    @Test func `writers notify while a reader sleeps, and only then`() async throws {
        try await withDatabase { database in
            let (writer, sleeper) = (try await database.connect(), try await database.connect())
            try await writer.befriend("ada", "bob")
            try await writer.run("select millrace.check_in_arm('ada', actor => 'ada')")
            // What has notified cannot be prepared: so it is seen without waiting for the notification.
            let transaction = TestCluster.name("transaction")
            func notifies(_ call: String) async throws -> Bool {
                try await writer.run("begin; \(call)")
                let refusal = try await writer.refusal(of: "prepare transaction '\(transaction)'")
                try await writer.run(refusal == nil ? "rollback prepared '\(transaction)'" : "rollback")
                return refusal?.message.contains("NOTIFY") == true
            }
            let calls = [
                "select millrace.check_in('ada', actor => 'ada')",
                "select millrace.check_in_pause('ada', now() + interval '1 hour', 'ada')",
                "select millrace.own_notice_schedule('ada', 'water', 'k', now() + interval '1 hour', actor => 'ada')",
                "select millrace.mood_log('ada', 'calm', actor => 'ada')",
                "select millrace.document_register('https://a.example/1', 'one', actor => 'ada')",
            ]
            try #require(try await notifies("notify anything"))
            for call in calls { #expect(try await !notifies(call), "\(call)") }
            try await sleeper.run("select pg_advisory_lock(1297239642, 0)")
            for call in calls { #expect(try await notifies(call), "\(call)") }
        }
    }
}
