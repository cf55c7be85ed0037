import Listeners
import Postgres
import TestSupport
import Testing
import Threads

@testable import Gateway

/// Streams are counted and bounded from their request on, before anything is read for them.
@Suite(.timeLimit(.minutes(10))) struct StreamSeatTests {
    @Test func `a stream counts from its request on, and its seat is free when its client has gone`() async throws {
        var options = FeedHub.Options()
        options.perPerson = 4
        options.kept = 1  // so that the past comes from the database
        try await StreamKit.with(options: options) { kit in
            for ref in ["r", "s"] { try await kit.say(ref, to: "ada") }
            try await eventually("the past is not at hand") { await !kit.hub.reachesBack(to: 0) }
            // Nobody catches up while this holds all connections.
            let pool = kit.gateways[0].pool
            let gate = Gate()
            let holders = Task {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<pool.size {
                        group.addTask { try await pool.withConnection { _ in try await gate.pass() } }
                    }
                    try await group.waitForAll()
                }
            }
            try await eventually("all are held") { gate.arrivals == pool.size }
            var streams = try (0..<4).map { _ in try kit.stream("/v1/me/events?since=0") }
            try await eventually("four are counted") { kit.hub.seats.taken == 4 }
            for path in ["/v1/me/events?since=0", "/v1/me/events?since=0&wait=30", "/v1/me/events"] {
                let refused = try kit.stream(path)
                let head = try await refused.head().lowercased()
                #expect(head.hasPrefix("http/1.1 429 ") && head.contains("retry-after: "), "\(path)")
            }
            gate.open()
            try await holders.value
            for stream in streams { #expect(try await stream.events(3).map(\.name) == ["ready", "change", "change"]) }
            streams = []
            try await eventually("their seats are free") {
                // They are noticed when something is written.
                try await kit.say("r", to: "ada")
                return kit.hub.seats.taken == 0
            }
        }
    }

    @Test func `a person catches up with one stream at a time, and others do beside it`() async throws {
        var options = FeedHub.Options()
        options.kept = 1
        try await StreamKit.with(options: options) { kit in
            for person in ["ada", "bob", "cyd"] { try await kit.say("r", to: person) }
            try await eventually("the past is not at hand") { await !kit.hub.reachesBack(to: 2) }
            let holder = try await kit.database.connect("holder")
            // Readers of a person's past ask for its position first.
            try await holder.run("begin; lock table millrace.feed_mark in access exclusive mode")
            func catchingUp() async throws -> Int {
                try await kit.connection.int(
                    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%feed_position%'"
                )
            }
            let adas = try (0..<20).map { _ in try kit.stream("/v1/me/events?since=0") }
            try await eventually("one of them reads") { try await catchingUp() == 1 }
            let bobs = try kit.stream("/v1/me/events?since=0", as: #"{"sub":"bob"}"#)
            try await eventually("bob's reads beside it") { try await catchingUp() == 2 }
            #expect(kit.hub.seats.taken == 21)
            try await holder.run("commit")
            await holder.close()
            for stream in adas + [bobs] { #expect(try await stream.events(2).map(\.name) == ["ready", "change"]) }
        }
    }

    @Test func `of seats a person has a few, and all together have a bound`() async throws {
        let seats = Seats(inAll: 3, perName: 2)
        let first = try seats.streamSeat(of: "ada", "streams")
        let second = try seats.streamSeat(of: "ada", "streams")
        #expect(throws: ErrorAnswer.self) { try seats.streamSeat(of: "ada", "streams") }
        let third = try seats.streamSeat(of: "bob", "streams")
        do {
            _ = try seats.streamSeat(of: "cyd", "streams")
            Issue.record("a fourth seat was given")
        } catch {
            #expect(error.status == 503 && error.headers["Retry-After"] == "10")
        }
        withExtendedLifetime((first, second, third)) {}
    }
}
