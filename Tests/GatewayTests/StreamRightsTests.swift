import FoundationEssentials
import JSON
import Postgres
import TestSupport
import Testing

@testable import Gateway

@Suite struct StreamRightsTests {
    @Test func `a stream brings exactly what feed_mine gives the same caller`() async throws {
        try await StreamKit.with { kit in
            let callers = [
                #"{"sub":"ada"}"#, #"{"sub":"bob","tenant":"north"}"#, #"{"sub":"ada","tenant":"north"}"#,
                #"{"sub":"cyd","tenant":"south"}"#, #"{"sub":"bob","tenant":""}"#, #"{"sub":"north"}"#,
                #"{"sub":"dan","tenant":null}"#,
            ]
            let streams = try callers.map { try kit.stream(as: $0) }
            for stream in streams { #expect(try await stream.next()?.name == "ready") }
            var random = SeededRandom(7)
            let names = ["ada", "bob", "cyd", "dan", "north", nil]
            let tenants = ["north", "south", "ada", "bob", nil]
            for number in 0..<300 {
                let (person, tenant) = (names[random.below(6)], tenants[random.below(5)])
                guard person != nil || tenant != nil else { continue }
                try await kit.say(
                    "r\(number)", to: person, tenant: tenant, topic: random.chance(0.5) ? "moods" : "documents")
            }
            for claims in callers { try await kit.say("last", to: try JSONValue.read(claims)["sub"]?.text) }
            for (claims, stream) in zip(callers, streams) {
                var got: [Int] = []
                let mine = try await Self.mine(claims, kit)
                while got.count < mine.count, let event = try await stream.next() { got.append(event.seq ?? 0) }
                #expect(got == mine, "\(claims)")
                // Late, from the last entries; and from the database.
                let again = try kit.stream("/v1/me/events?since=0", as: claims)
                #expect(try await again.events(mine.count + 1).dropFirst().compactMap(\.seq) == mine)
            }
        }
    }

    private static func mine(_ claims: String, _ kit: StreamKit) async throws -> [Int] {
        try await kit.connection.transaction { connection throws(PostgresError) in
            try await connection.run("set local role \(kit.role); set local request.jwt.claims = '\(claims)'")
            return try await connection.column("select seq from millrace.feed_mine(0, null, 500)").compactMap {
                Int($0)
            }
        }
    }

    @Test func `a lesson's stream brings its documents, and topics bring what they name`() async throws {
        var options = FeedHub.Options()
        options.kept = 1  // so that half of it comes from the database
        try await StreamKit.with(options: options) { kit in
            let claims = #"{"sub":"ada","tenant":"north"}"#
            let live = try kit.stream("/v1/lessons/algebra%201/events", as: claims)
            #expect(try await live.next()?.name == "ready")
            try await kit.say("d1", to: "ada", lesson: "algebra 1")
            try await kit.say("d2", to: "ada", lesson: "other")
            try await kit.say("d3", to: "bob", lesson: "algebra 1")
            try await kit.say("d4", tenant: "north", lesson: "algebra 1")
            try await kit.say("d5", tenant: "south", lesson: "algebra 1")
            try await kit.say("d6", to: "ada", tenant: "north", topic: "moods")
            try await kit.say("d7", to: "ada", tenant: "north", lesson: "algebra 1")
            #expect(try await live.events(3).compactMap(\.seq) == [1, 4, 7])
            let late = try kit.stream("/v1/lessons/algebra%201/events?since=0", as: claims)
            #expect(try await late.events(4).compactMap(\.seq) == [0, 1, 4, 7])
            let moods = try kit.stream("/v1/me/events?topics=moods&since=0", as: claims)
            #expect(try await moods.events(2).compactMap(\.seq) == [0, 6])
        }
    }

    @Test func `only who may see a document or a job follows it`() async throws {
        try await StreamKit.with { kit in
            let id = try await kit.connection.transaction { connection throws(PostgresError) in
                try await connection.run(
                    """
                    select millrace.grant_enqueue('\(kit.role)', 'mine'), millrace.grant_enqueue('\(kit.role)', 'document.receive');
                    set local role \(kit.role); set local request.jwt.claims = '{"sub":"ada"}'
                    """)
                return try await connection.value("millrace.document_register('https://a.example/x', actor => 'ada')")
                    ?? ""
            }
            let own = try kit.stream("/v1/documents/\(id)/events?since=0")
            #expect(try await own.events(2).map(\.name) == ["ready", "change"])
            try await kit.say(id, to: "ada")
            try await kit.say("another", to: "ada")
            try await kit.say(id, to: "ada", data: #"{"n": 2}"#)
            let changes = try await own.events(2)
            #expect(changes.allSatisfy { $0.data.contains(id) } && changes[1].data.contains(#""n": 2"#))
            for path in [
                "/v1/documents/\(id)/events", "/v1/documents/00000000-0000-4000-8000-000000000000/events",
                "/v1/documents/x/events", "/v1/jobs/1/events", "/v1/jobs/x/events",
            ] {
                let other = try kit.stream(path, as: #"{"sub":"bob"}"#)
                #expect(try await other.head().hasPrefix("HTTP/1.1 404 "), "\(path)")
            }
        }
    }

    @Test func `a job is followed to its end`() async throws {
        try await StreamKit.with { kit in
            let job = try await kit.connection.transaction { connection throws(PostgresError) in
                try await connection.run(
                    """
                    select millrace.grant_enqueue('\(kit.role)', 'mine');
                    set local role \(kit.role); set local request.jwt.claims = '{"sub":"ada"}'
                    """)
                return try await connection.value("millrace.enqueue('mine')") ?? ""
            }
            let stream = try kit.stream("/v1/jobs/\(job)/events")
            let events = try await stream.events(2)
            #expect(events.map(\.name) == ["ready", "job"] && events[1].data.contains(#""state":"ready""#))
            // It came back and has seen this; a long poll waits for the next.
            let back = try kit.stream("/v1/jobs/\(job)/events?wait=60&since=\(events[1].id)")
            try await eventually("it waits") { await kit.gateways[0].jobs.streams == 2 }
            try await kit.connection.run("select millrace.cancel(\(job))")
            let rest = try await stream.events(2)
            #expect(rest.map(\.name) == ["job", "end"] && rest[0].data.contains(#""state":"cancelled""#))
            #expect((rest[0].seq ?? 0) > (events[1].seq ?? 0))
            #expect(try await stream.next() == nil)
            let body = try JSONValue.read(try await back.body())
            #expect(body["events"]?.items?.first?["state"]?.text == "cancelled")
            let ended = try kit.stream("/v1/jobs/\(job)/events?since=\(rest[0].id)")
            #expect(try await ended.events(2).map(\.name) == ["ready", "end"])
        }
    }

    @Test func `what cannot be streamed is refused before the stream begins`() async throws {
        var options = FeedHub.Options()
        options.perPerson = 2
        try await StreamKit.with(options: options) { kit in
            for (path, status) in [
                ("/v1/me/events?topics=gossip", 400), ("/v1/me/events?topics=", 400), ("/v1/me/events?since=x", 400),
                ("/v1/me/events?since=-1", 400), ("/v1/me/events?wait=61", 400), ("/v1/me/events?wait=0", 400),
            ] {
                let stream = try kit.stream(path)
                #expect(try await stream.head().hasPrefix("HTTP/1.1 \(status) "), "\(path)")
            }
            let odd = try kit.stream(as: #"{"sub":"ada","tenant":7}"#)
            #expect(try await odd.head().hasPrefix("HTTP/1.1 403 "))
            let streams = try (0..<2).map { _ in try kit.stream() }
            for stream in streams { #expect(try await stream.next()?.name == "ready") }
            try await eventually("both have joined") { await kit.hub.streams == 2 }
            #expect(try await kit.stream().head().hasPrefix("HTTP/1.1 429 "))
            #expect(try await kit.stream(as: #"{"sub":"bob"}"#).next()?.name == "ready")
            withExtendedLifetime(streams) {}
        }
    }
}
