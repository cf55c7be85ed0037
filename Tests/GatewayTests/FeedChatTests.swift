import Postgres
import TestSupport
import Testing

/// What the members of a thread hear of it. A change of a thread is one row for all of them.
@Suite struct FeedChatTests {
    private static func send(_ text: String, _ person: String, _ thread: String, on connection: Connection) async throws
        -> String
    {
        try await connection.value("millrace.chat_send('\(thread)', '\(text)', actor => '\(person)')") ?? ""
    }

    private static func begin(on connection: Connection) async throws -> String {
        try await connection.makeFamily("f", [("mum", "parent"), ("kid", "teen"), ("sis", "teen")])
        return try await connection.value("millrace.chat_thread_create(actor => 'mum')") ?? ""
    }

    @Test func `a message is one row of the feed, for members who see it`() async throws {
        try await withConnection { connection in
            let thread = try await Self.begin(on: connection)
            let since = try await connection.feedEnd()
            let first = try await Self.send("one", "kid", thread, on: connection)
            #expect(try await connection.int("select count(*) from millrace.feed where ref = '\(first)'") == 1)
            for person in ["mum", "kid", "sis"] {
                let feed = try await connection.feed(of: person, since: since, topics: "'{chat}'")
                #expect(feed.changes == ["chat message"] && feed.refs == [first], "\(person)")
            }
            #expect(try await connection.feed(of: "eve", since: since).changes == [])
            // Who comes later sees what is written from then on.
            try await connection.run("select millrace.family_join('f', 'dad', 'parent')")
            let second = try await Self.send("two", "mum", thread, on: connection)
            #expect(try await connection.feed(of: "dad", topics: "'{chat}'").refs == [thread, second])
            try await connection.run("select millrace.chat_delete('\(first)', 'kid')")
            #expect(try await connection.feed(of: "dad", topics: "'{chat}'").refs == [thread, second])
            #expect(try await connection.feed(of: "sis", topics: "'{chat}'").refs.suffix(2) == [second, first])
            // Who leaves keeps nothing of it.
            try await connection.run("select millrace.chat_leave('\(thread)', 'sis')")
            #expect(try await connection.feed(of: "sis", topics: "'{chat}'").changes == ["chat left"])
            #expect(try await connection.feed(of: "kid", topics: "'{quests}'").changes.contains("quests joined"))
            #expect(!(try await connection.feed(of: "kid", topics: "'{quests}'").refs.contains(first)))
        }
    }

    @Test func `a mark is told to all, and what is unread to its own person alone`() async throws {
        try await withConnection { connection in
            let thread = try await Self.begin(on: connection)
            let message = try await Self.send("one", "kid", thread, on: connection)
            _ = try await Self.send("two", "kid", thread, on: connection)
            let since = try await connection.feedEnd()
            try await connection.run("select millrace.chat_read('\(thread)', '\(message)', 'mum')")
            for person in ["mum", "kid", "sis"] {
                let feed = try await connection.feed(of: person, since: since)
                #expect(feed.changes == ["chat read"] && feed.refs == [thread], "\(person)")
                #expect(feed.data.allSatisfy { $0.contains("unread") == (person == "mum") }, "\(person): \(feed.data)")
            }
            #expect(try await connection.feed(of: "mum", since: since).data.first?.contains("\"unread\": 1") == true)
        }
    }

    @Test func `a gateway reads a change once with all whom it is for, and an earlier one once for each`() async throws
    {
        try await withConnection { connection in
            let thread = try await Self.begin(on: connection)
            // On some days the family's quest is to write, and the first message does it.
            _ = try await Self.send("zero", "kid", thread, on: connection)
            let since = try await connection.feedEnd()
            for text in ["one", "two", "three"] { _ = try await Self.send(text, "kid", thread, on: connection) }
            let persons = "array(select p from unnest(f.persons) p order by p)"
            #expect(
                try await connection.column("select \(persons)::text from millrace.feed_next(\(since), 2) f")
                    == ["{kid,mum,sis}", "{kid,mum,sis}"])
            let pairs = try await connection.column(
                "select f.seq - \(since) || f.person from millrace.feed_new(\(since), 2, true) f")
            #expect(pairs == ["1kid", "1mum", "1sis", "2kid", "2mum", "2sis"])
            #expect(
                try await connection.int(
                    "select count(distinct f.seq) from millrace.feed_new((select max(seq) from millrace.feed_new(\(since), 2, true)), 2, true) f"
                ) == 1)
        }
    }

    @Test func `nothing stays of a thread when its last member has gone, nor of a person who is erased`() async throws {
        try await withConnection { connection in
            let thread = try await Self.begin(on: connection)
            _ = try await Self.send("one", "kid", thread, on: connection)
            _ = try await Self.send("two", "mum", thread, on: connection)
            _ = try await connection.feed(of: "mum")
            try await connection.run("select millrace.person_erase('kid')")
            #expect(try await connection.int("select count(*) from millrace.feed f where f::text ~ 'kid'") == 0)
            for person in ["mum", "sis"] {
                try await connection.run("select millrace.chat_leave('\(thread)', '\(person)')")
            }
            #expect(try await connection.int("select count(*) from millrace.feed where thread is not null") == 0)
        }
    }

    @Test func `two contacts keep nothing of a thread that was closed, and hear of it when it is opened again`()
        async throws
    {
        try await withConnection { connection in
            try await connection.befriend("ada", "bob")
            let thread =
                try await connection.value("millrace.chat_thread_create(array['bob'], actor => 'ada')") ?? ""
            let message = try await Self.send("one", "bob", thread, on: connection)
            #expect(try await connection.feed(of: "ada", topics: "'{chat}'").refs.contains(message))
            try await connection.run("select millrace.check_in_contact_remove('ada', 'bob', actor => 'ada')")
            #expect(try await connection.feed(of: "ada", topics: "'{chat}'").changes == ["chat closed"])
            try await connection.befriend("ada", "bob")
            #expect(try await connection.feed(of: "bob", topics: "'{chat}'").changes == ["chat closed", "chat opened"])
        }
    }
}
