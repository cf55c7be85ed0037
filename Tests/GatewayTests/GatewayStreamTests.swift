import Clusters
import Fakes
import FoundationEssentials
import JSON
import Listeners
import Postgres
import TestSupport
import Testing
import Threads

@testable import Gateway

@Suite struct GatewayStreamTests {
    @Test func `a stream begins with its position, and brings what is committed from then on`() async throws {
        try await StreamKit.with { kit in
            try await kit.say("before", to: "ada")
            let stream = try kit.stream()
            let ready = try #require(try await stream.next())
            #expect(ready.name == "ready" && ready.data == "{\"position\":\(ready.id)}" && ready.seq == 1)
            try await kit.say("d1", to: "ada", data: #"{"a": "line\nbreak"}"#)
            try await kit.say("d2", to: "bob")
            try await kit.say("d3", to: "ada", topic: "moods")
            let events = try await stream.events(2)
            #expect(events.map(\.name) == ["change", "change"] && events.map(\.seq) == [2, 4])
            let data = try JSONValue.read(events[0].data)
            #expect(data["seq"]?.integer == 2 && data["topic"]?.text == "documents" && data["ref"]?.text == "d1")
            #expect(data["change"]?.text == "changed" && data["data"]?["a"]?.text == "line\nbreak")
            #expect(try await stream.head().contains("text/event-stream"))
        }
    }

    @Test func `a reader that joins beside writers gets each change once and in order`() async throws {
        var options = FeedHub.Options()
        options.perPerson = 10_000  // a client that has gone counts until that is noticed
        try await StreamKit.with(options: options) { kit in
            let (writers, each, readers) = (3, 60, 6)
            let seen = Locked<[[Int]]>(Array(repeating: [], count: readers))
            try await withThrowingTaskGroup { group in
                for writer in 0..<writers {
                    group.addTask {
                        var random = SeededRandom(writer)
                        let own = try await kit.database.connect()
                        for number in 0..<each {
                            let stays = random.chance(0.2)
                            if stays { try await own.run("begin") }
                            try await kit.say("\(writer)-\(number)", to: "ada", on: own)
                            if stays {
                                try await kit.say("\(writer)-\(number)-b", to: "bob", on: own)
                                try await own.run("commit")
                            }
                        }
                        await own.close()
                    }
                }
                for reader in 0..<readers {
                    group.addTask {
                        var random = SeededRandom(100 + reader)
                        var position: Int64 = 0
                        // It leaves again and again, and comes back from where it was.
                        while seen.value[reader].count < writers * each {
                            let stream = try kit.stream(after: position)
                            for _ in 0...random.below(40) where seen.value[reader].count < writers * each {
                                guard let event = try await stream.next() else { break }
                                if event.name == "change", let seq = event.seq {
                                    seen.withLock { $0[reader].append(seq) }
                                }
                                position = Int64(event.id) ?? position
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let all = try await kit.seqs(of: "ada")
            #expect(all.count == writers * each)
            for reader in seen.value { #expect(reader == all) }
        }
    }

    @Test func `a client that was away for long gets from the database what it has missed`() async throws {
        var options = FeedHub.Options()
        options.kept = 3
        try await StreamKit.with(options: options) { kit in
            let first = try kit.stream()
            let ready = try #require(try await first.next())
            for number in 1...450 { try await kit.say("d\(number)", to: "ada") }
            _ = try await first.events(450)
            let back = try kit.stream(after: ready.seq.map { Int64($0) })
            let events = try await back.events(451)
            #expect(events[0].name == "ready" && events[0].seq == ready.seq)
            let all = try await kit.seqs(of: "ada")
            #expect(events.dropFirst().compactMap(\.seq) == all)
        }
    }

    @Test func `a position that is not kept any more, or never was, is reset`() async throws {
        var options = FeedHub.Options()
        options.kept = 0  // so that the database is asked
        try await StreamKit.with(options: options) { kit in
            for number in 1...10 { try await kit.say("d\(number)", to: "ada") }
            _ = try await kit.seqs(of: "ada")
            try await kit.connection.run(
                "delete from millrace.feed where seq <= 6; update millrace.feed_mark set gone = 6")
            let late = try kit.stream(after: 3)
            let events = try await late.events(6)
            #expect(events.map(\.name) == ["ready", "reset", "change", "change", "change", "change"])
            #expect(events.map(\.seq) == [6, 6, 7, 8, 9, 10] && events[1].data == #"{"position":6}"#)
            let begin = try kit.stream("/v1/me/events?since=0")
            #expect(try await begin.events(5).map(\.name) == ["ready", "change", "change", "change", "change"])
            let future = try kit.stream(after: 4000)
            #expect(try await future.events(2).map(\.name) == ["ready", "reset"])
            try await kit.say("more", to: "ada")
            #expect(try await future.next()?.seq == 11)
        }
    }

    @Test func `what the database has taken back, as when a person is erased, no client gets that comes back`()
        async throws
    {
        var options = FeedHub.Options()
        options.tick = .seconds(86_400)  // so that no clock drops what is held
        try await StreamKit.with(options: options) { kit in
            try await kit.connection.run(
                """
                select millrace.family_create('f', 'UTC'); select millrace.family_join('f', 'ada', 'parent');
                select millrace.family_join('f', 'bob', 'parent')
                """)
            let open = try kit.stream(as: #"{"sub":"bob"}"#)
            let ready = try #require(try await open.next()?.seq)
            try await kit.connection.run("select millrace.mood_log('ada', 'calm', buffer => '0', actor => 'ada')")
            var heard: [String] = []
            while heard.last?.contains(#""change":"logged""#) != true {
                heard.append(try #require(try await open.next()).data)
            }
            #expect(heard.last?.contains("ada") == true)
            // From what the gateway holds.
            func again() async throws -> String {
                try await kit.stream(
                    "/v1/me/events?since=\(ready)&wait=60&topics=moods", as: #"{"sub":"bob"}"#
                ).body()
            }
            #expect(try await again().contains("ada"))
            try await kit.connection.run("select millrace.person_erase('ada', actor => 'ada')")
            try await eventually("it is gone from what the gateway holds") { try await !again().contains("ada") }
            #expect(try await again().contains(#""change":"deleted""#))
        }
    }

    @Test func `HEAD of a stream and of a long poll is answered at once, and has no body`() async throws {
        try await StreamKit.with { kit in
            func answer(_ path: String) async throws -> String {
                let asked =
                    "HEAD \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {\"sub\":\"ada\"}\r\n\r\n"
                let port = Int(kit.port)
                return try await Thread.run(name: "raw-request") {
                    Result {
                        let connection = try RawConnection(to: port)
                        connection.write(asked)
                        var all: [UInt8] = []
                        while let more = connection.read() { all += more }
                        return String(decoding: all, as: UTF8.self)
                    }
                }.get()
            }
            for (path, type) in [
                ("/v1/me/events", "text/event-stream"), ("/v1/me/events?since=0", "text/event-stream"),
                ("/v1/me/events?wait=60", "application/json"), ("/v1/me/events?since=0&wait=60", "application/json"),
            ] {
                let head = try await answer(path)
                #expect(head.hasPrefix("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"), "\(path): \(head)")
                #expect(head.contains("Content-Type: \(type)\r\n"), "\(path): \(head)")
                #expect(!head.contains("Content-Length") && !head.contains("chunked"), "\(path): \(head)")
            }
            #expect(try await answer("/v1/me/events?topics=gossip").hasPrefix("HTTP/1.1 400 "))
            #expect(await kit.hub.streams == 0)
        }
    }

    @Test func `a slow reader is cut, harms no other, and goes on where it was`() async throws {
        try await StreamKit.with(limits: EventStream.Limits(pieces: 20, bytes: 200_000)) { kit in
            let slow = try StreamClient(
                to: kit.port, "/v1/me/events?since=0", claims: #"{"sub":"ada"}"#, room: 4096)
            let quick = try kit.stream()
            #expect(try await quick.next()?.name == "ready")
            let ready = try await slow.next()
            #expect(ready?.name == "ready")
            try await eventually("both have joined") { await kit.hub.streams == 2 }
            let large = "{\"text\": \"\(String(repeating: "x", count: 50_000))\"}"
            var sent = 0
            while await kit.hub.cut == 0 {
                try await kit.say("d", to: "ada", data: large)
                sent += 1
                #expect(try await quick.next()?.name == "change")
            }
            var seen: [Int] = []
            while let event = try await slow.next() { seen.append(event.seq ?? 0) }
            #expect(seen.count < sent)
            let back = try kit.stream(after: Int64(seen.last ?? 0))
            #expect(try await back.next()?.name == "ready")
            for event in try await back.events(sent - seen.count) { seen.append(event.seq ?? 0) }
            #expect(try await kit.seqs(of: "ada") == seen)
            #expect(await kit.hub.streams == 2)
        }
    }

    @Test func `a stream ends with its token, and heart-beats come until then`() async throws {
        var options = FeedHub.Options()
        options.tick = .milliseconds(2)
        try await StreamKit.with(options: options) { kit in
            let stream = try kit.stream()
            #expect(try await stream.next()?.name == "ready")
            let short = try kit.stream(as: #"{"sub":"ada","exp":1000}"#)
            let events = try await short.events(2)
            #expect(events.map(\.name) == ["ready", "end"] && events.last?.data == #"{"reason":"expired"}"#)
            #expect(try await short.next() == nil)
            try await eventually("a heart-beat comes") {
                try await kit.say("d", to: "ada")
                _ = try await stream.next()
                return stream.comments > 0
            }
            await kit.hub.tick(.distantFuture, at: .now)
            while let event = try await stream.next(), event.name != "end" {}
            #expect(await kit.hub.streams == 0)
        }
    }

    @Test func `a long poll is answered at the first change, or when its time is over`() async throws {
        var options = FeedHub.Options()
        options.tick = .milliseconds(2)
        try await StreamKit.with(options: options) { kit in
            let empty = try kit.stream("/v1/me/events?since=0&wait=1")
            #expect(try await empty.body() == "{\"events\":[],\"position\":0,\"reset\":false}\n")
            let waiting = try kit.stream("/v1/me/events?since=0&wait=60&topics=moods,documents")
            try await eventually("it waits") { await kit.hub.streams == 1 }
            try await kit.say("other", to: "ada", topic: "quests")
            try await kit.say("d1", to: "ada")
            let body = try JSONValue.read(try await waiting.body())
            #expect(body["events"]?.items?.compactMap { $0["ref"]?.text } == ["d1"])
            #expect(body["position"]?.integer == 2 && body["reset"] == false)
            let all = try JSONValue.read(try await kit.stream("/v1/me/events?since=0&wait=60").body())
            #expect(all["events"]?.items?.compactMap { $0["ref"]?.text } == ["other", "d1"])
            #expect(all["position"]?.integer == 2)
        }
    }

    @Test func `two gateways bring the same to their clients, and one takes over from the other`() async throws {
        try await StreamKit.with(gateways: 2) { kit in
            let streams = try (0..<2).map { try kit.stream(on: $0) }
            for stream in streams { #expect(try await stream.next()?.name == "ready") }
            for number in 1...30 {
                try await kit.say("d\(number)", to: "ada")
                for stream in streams { #expect(try await stream.next()?.seq == number) }
            }
            let moved = try kit.stream(after: 20, on: 1)
            #expect(try await moved.events(11).dropFirst().compactMap(\.seq) == Array(21...30))
        }
    }

    @Test func `streams go on after a restart of Postgres`() async throws {
        try await withCluster { cluster in
            let office = try await Connection.open(ConnectionOptions(location: cluster.url()))
            try await office.run("create database streams")
            await office.close()
            let database = TestDatabase(name: "streams", url: cluster.url(database: "streams"))
            try await StreamKit.with(database) { kit in
                let stream = try kit.stream()
                #expect(try await stream.next()?.name == "ready")
                try await kit.say("d1", to: "ada")
                #expect(try await stream.next()?.seq == 1)
                try await cluster.stop(.immediate, deadline: .ample)
                _ = try await cluster.start(deadline: .ample)
                let again = try await database.connect()
                try await kit.say("d2", to: "ada", on: again)
                let next = try #require(try await stream.next())
                #expect(next.name == "change" && next.data.contains("d2"))
                await again.close()
            }
        }
    }

    @Test func `a listener that stops ends its streams at once`() async throws {
        try await StreamKit.with { kit in
            let stream = try kit.stream()
            #expect(try await stream.next()?.name == "ready")
            try await eventually("it has joined") { await kit.hub.streams == 1 }
            kit.gateways[0].listener.stop()
            #expect(try await stream.next() == nil)
        }
    }

    @Test func `a listener that stops answers its long polls at once`() async throws {
        var options = FeedHub.Options()
        options.tick = .seconds(86_400)  // so that no clock ends them
        try await StreamKit.with(options: options) { kit in
            let poll = try kit.stream("/v1/me/events?wait=30")
            try await eventually("it has joined") { await kit.hub.streams == 1 }
            kit.gateways[0].listener.stop()
            #expect(try await poll.body().contains(#""events":[]"#))
        }
    }

    @Test func `writers are asked to tell only while somebody reads`() async throws {
        try await StreamKit.with { kit in
            let held =
                "select count(*) from pg_locks where locktype = 'advisory' and classid = 1297239642 and objid = 0 and database = (select oid from pg_database where datname = current_database())"
            var stream: StreamClient? = try kit.stream()
            #expect(try await stream?.next()?.name == "ready")
            try await eventually("the cursor sleeps behind its lock") { try await kit.connection.int(held) == 1 }
            stream = nil
            try await eventually("nobody reads") { await kit.hub.streams == 0 }
            try await eventually("the lock is free") { try await kit.connection.int(held) == 0 }
        }
    }
}
