import CloudEvents
import Encryption
import Fakes
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing
import Transfers
import Webhooks

@Suite struct DeliveryTests {
    @Test func `a target is asked for its consent, and then told of each event once, signed`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            try await bench.publish()  // before anybody wanted it
            let target = try await bench.add(receiver.url)
            let id = try await bench.publish(data: #"{"order": 7, "sum": 12345678901234567890.10}"#, tenant: "Größe 1")
            let dispatch = try bench.dispatch([receiver])
            try await dispatch.runOnce()
            #expect(receiver.requests.map(\.method) == ["OPTIONS"])
            #expect(receiver.requests[0]["webhook-request-origin"] == "events.example")
            #expect(try await bench.state(target.id) == "active")
            for _ in 0..<3 { try await dispatch.runOnce() }
            let post = try #require(receiver.posts.first)
            #expect(receiver.posts.count == 1)
            #expect(post["webhook-id"] == id && post["webhook-request-origin"] == "events.example")
            #expect(try post.signers(among: [target.secret]) == [target.secret])
            #expect(post["ce-tenant"] == "Gr%C3%B6%C3%9Fe%201")
            let received = try ReceivedEvents(post.message)
            let event = try #require(received.events.first)
            #expect(received.mode == .binary && event.id == id && event.type == "com.example.paid")
            #expect(event.source == "/shop" && event.subject == "order/7" && event.time != nil)
            #expect(event.data == .json(Array(#"{"sum": 12345678901234567890.10, "order": 7}"#.utf8)))
            #expect(try await bench.deliveries("state || ' ' || attempts || ' ' || code") == ["delivered 1 204"])
            #expect(await dispatch.tally.delivered == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a lone event arrives within seconds of its next try after an outage, and that uses up no try`(
        handshake: Bool
    ) async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, handshake: handshake)
            try await bench.publish()
            let outage = try await ProviderOutage(
                of: "webhook:\(target.id)", in: bench.database, on: bench.connection)
            let dispatch = try bench.dispatch([receiver], supervisor: outage.supervisor)
            let waits = try await outage.tries {
                try await dispatch.runOnce()
                if try await bench.deliveries() == ["delivered"] { return nil }
                let wait = try await bench.connection.value("select seconds from millrace.webhook_wait()")
                return .seconds(max(0.001, wait.flatMap { Double($0) } ?? 1))
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
            #expect(try await bench.deliveries("attempts") == ["1"])
            #expect(try await bench.connection.column("select tries::text from millrace.webhook") == ["0"])
            #expect(receiver.requests.count == (handshake ? 2 : 1))
        }
    }

    @Test func `types and tenants decide who is told`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            try await bench.add(receiver.url + "/exact", types: "{com.example.paid,com.other}", handshake: false)
            try await bench.add(receiver.url + "/prefix", types: "{com.example.*}", handshake: false)
            try await bench.add(receiver.url + "/tenant", tenant: "t1", handshake: false)
            for (type, tenant) in [
                ("com.example.paid", nil), ("com.example.paid.twice", "t1"), ("com.other", "t2"), ("com.exampler", nil),
            ] as [(String, String?)] {
                try await bench.publish(type, tenant: tenant)
            }
            try await bench.dispatch([receiver]).runOnce()
            let told = receiver.posts.map { "\($0.path) \($0["ce-type"] ?? "")" }.sorted()
            #expect(
                told == [
                    "/hook/exact com.example.paid", "/hook/exact com.other", "/hook/prefix com.example.paid",
                    "/hook/prefix com.example.paid.twice", "/hook/tenant com.example.paid.twice",
                ])
            // Nor can an operator's hand send a tenant what is another's.
            let other = try await bench.publish("com.other", tenant: "t2")
            let id = try await bench.connection.value("select id from millrace.webhooks where tenant = 't1'") ?? ""
            #expect(try await bench.connection.int("select millrace.webhook_redeliver('\(other)', '\(id)')") == 0)
        }
    }

    @Test func `lists go only to targets that want them, and an event that spoils its list goes alone`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver { request, _ in
                if String(decoding: request.body, as: UTF8.self).contains("poison") { return .init(400) }
                return .init(200)
            }
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, mode: "batch", handshake: false)
            try await bench.add(receiver.url + "/one", mode: "structured", handshake: false)
            for number in 0..<3 { try await bench.publish(data: #"{"n": \#(number)}"#) }
            let dispatch = try bench.dispatch([receiver])
            try await dispatch.runOnce()
            let lists = receiver.posts.filter { $0.path == "/hook" }
            #expect(lists.count == 1 && lists[0]["content-type"] == "application/cloudevents-batch+json")
            #expect(try ReceivedEvents(lists[0].message).events.count == 3)
            #expect(lists[0]["webhook-id"]?.hasPrefix("batch_") == true)
            #expect(try lists[0].signers(among: [target.secret]).count == 1)
            let single = receiver.posts.filter { $0.path == "/hook/one" }
            #expect(try single.map { try ReceivedEvents($0.message).mode } == Array(repeating: .structured, count: 3))

            try await bench.connection.run(
                "select millrace.webhook_remove(id) from millrace.webhooks where mode = 'structured'")
            for data in [#"{"n": 1}"#, #"{"poison": 1}"#, #"{"n": 2}"#] { try await bench.publish(data: data) }
            for _ in 0..<5 { try await dispatch.runOnce() }
            #expect(
                try await bench.deliveries().sorted() == Array(repeating: "delivered", count: 5) + ["pending"])
            try await bench.connection.run("select millrace.webhook_remove('\(target.id)')")
            #expect(try await bench.deliveries().isEmpty)
        }
    }

    @Test func `a failure is tried again for days, then the target is off, and goes on where it was`() async throws {
        try await withBench { bench in
            let isWell = Mutex(false)
            let receiver = try FakeReceiver { _, _ in
                isWell.withLock { $0 } ? .init(200) : .init(302, [("Location", "/x")])
            }
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, handshake: false)
            let first = try await bench.publish()
            let dispatch = try bench.dispatch([receiver])
            for attempt in 1...10 {
                #expect(try await bench.state(target.id) == "active")
                try await dispatch.runOnce()
                #expect(receiver.posts.count == attempt)
                try await bench.advance("27 hours")
            }
            #expect(Set(receiver.posts.map { $0["webhook-id"] }) == [first])
            #expect(
                try await bench.deliveries("state || attempts || ' ' || error") == [
                    "failed10 it answered 302: a redirect is not followed"
                ])
            #expect(try await bench.state(target.id) == "disabled")
            #expect(try await bench.reason(target.id).hasPrefix("nothing has arrived there since"))
            let missed = try await bench.publish()
            try await dispatch.runOnce()
            #expect(receiver.posts.count == 10)
            isWell.withLock { $0 = true }
            #expect(try await bench.connection.bool("select millrace.webhook_enable('\(target.id)')"))
            #expect(try await bench.connection.bool("select millrace.webhook_enable('\(target.id)')") == false)
            let later = try await bench.publish()
            try await dispatch.runOnce()
            #expect(Set(receiver.posts.dropFirst(10).map { $0["webhook-id"] }) == [missed, later])
            #expect(try await bench.connection.int("select millrace.webhook_redeliver('\(first)')") == 1)
            try await dispatch.runOnce()
            #expect(receiver.posts.last?["webhook-id"] == first)
            #expect(try await bench.deliveries() == ["delivered", "delivered", "delivered"])
        }
    }

    @Test func `one event that nobody can take does not switch a target off`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver { request, _ in
                .init(String(decoding: request.body, as: UTF8.self).contains("poison") ? 500 : 200)
            }
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, handshake: false)
            try await bench.publish(data: #"{"poison": 1}"#)
            let dispatch = try bench.dispatch([receiver])
            for _ in 1...10 {
                try await dispatch.runOnce()
                try await bench.publish()
                try await dispatch.runOnce()
                try await bench.advance("27 hours")
            }
            #expect(try await bench.state(target.id) == "active")
            #expect(try await bench.deliveries().filter { $0 == "failed" }.count == 1)
        }
    }

    @Test func `410 stops a target, 415 an event, and 429 makes all wait as long as it says`() async throws {
        try await withBench { bench in
            let answer = Mutex(FakeReceiver.Answer(429, [("Retry-After", "1800")]))
            let receiver = try FakeReceiver { _, _ in answer.withLock { $0 } }
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, handshake: false)
            try await bench.publish()
            // Each time another worker's: within one it is the supervisor that waits, by a clock that nobody moves.
            func runOnce() async throws { try await bench.dispatch([receiver]).runOnce() }
            try await runOnce()
            try await bench.publish()
            try await bench.advance("29 minutes")
            try await runOnce()
            #expect(receiver.posts.count == 1)
            #expect(try await bench.deliveries("attempts") == ["0", "0"])
            answer.withLock { $0 = .init(415) }
            try await bench.advance("2 minutes")
            try await runOnce()
            #expect(receiver.posts.count == 3)
            #expect(try await bench.deliveries("state || code") == ["failed415", "failed415"])
            #expect(try await bench.state(target.id) == "active")
            answer.withLock { $0 = .init(410) }
            for _ in 0..<2 { try await bench.publish() }
            try await runOnce()
            #expect(try await bench.state(target.id) == "disabled")
            #expect(try await bench.reason(target.id) == "it answered 410: it wants no more events")
            let count = receiver.posts.count
            try await bench.publish()
            try await bench.advance("3 days")
            try await runOnce()
            #expect(receiver.posts.count == count)
        }
    }

    @Test func `without consent nothing is sent`() async throws {
        try await withBench { bench in
            let answer = Mutex(FakeReceiver.Answer(200))
            let receiver = try FakeReceiver { request, _ in
                request.method == "OPTIONS" ? answer.withLock { $0 } : .init(200)
            }
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url)
            let id = try await bench.publish()
            let dispatch = try bench.dispatch([receiver])
            for _ in 0..<2 { try await dispatch.runOnce() }
            #expect(receiver.requests.map(\.method) == ["OPTIONS"])
            #expect(try await bench.state(target.id) == "disabled")
            #expect(try await bench.reason(target.id).contains("does not consent"))
            // One that is busy is asked again.
            answer.withLock { $0 = .init(503) }
            try await bench.connection.run("select millrace.webhook_enable('\(target.id)')")
            try await dispatch.runOnce()
            #expect(try await bench.state(target.id) == "pending" && receiver.requests.count == 2)
            answer.withLock { $0 = FakeReceiver.consent("60") }
            try await bench.advance("10 seconds")
            for _ in 0..<2 { try await dispatch.runOnce() }
            #expect(receiver.posts.map { $0["webhook-id"] } == [id])
            #expect(try await bench.connection.int("select rate from millrace.webhooks") == 60)
        }
    }

    @Test func `in no minute more requests than the target allows, of all workers together`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver { request, _ in
                request.method == "OPTIONS" ? FakeReceiver.consent("3") : .init(200)
            }
            defer { receiver.stop() }
            try await bench.add(receiver.url)
            for _ in 0..<7 { try await bench.publish() }
            let crew = try (0..<2).map { _ in try bench.dispatch([receiver]) }
            var counts: [Int] = []
            for _ in 0..<4 {
                let before = receiver.posts.count
                for _ in 0..<3 {
                    for dispatch in crew { try await dispatch.runOnce() }
                    try await bench.advance("20 seconds")
                }
                counts.append(receiver.posts.count - before)
            }
            #expect(counts.allSatisfy { $0 <= 3 } && counts.reduce(0, +) == 7, "\(counts)")
        }
    }

    @Test func `while secrets overlap both sign, and afterwards the new one alone`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url, handshake: false)
            let dispatch = try bench.dispatch([receiver])
            let next =
                try await bench.connection.value("select millrace.webhook_rotate('\(target.id)', '1 hour')") ?? ""
            #expect(next != target.secret && next.hasPrefix("whsec_"))
            try await bench.publish()
            try await dispatch.runOnce()
            #expect(try receiver.posts[0].signers(among: [target.secret, next]) == [target.secret, next])
            try await bench.advance("61 minutes")
            try await bench.publish()
            try await dispatch.runOnce()
            #expect(try receiver.posts[1].signers(among: [target.secret, next]) == [next])
        }
    }

    @Test func `with keys no secret stands in the database, and who lacks the key sends nothing`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let keys = try Keyring([.random(id: "k1")])
            let plain = try await bench.add(receiver.url, handshake: false)
            let added = try await WebhookAdmin.add(
                receiver.url + "/b", types: ["*"], mode: "binary", tenant: nil, handshake: false, keys: keys,
                on: bench.connection)
            let dispatch = try bench.dispatch([receiver], keys: keys)
            try await bench.publish()
            try await dispatch.runOnce()
            for (secret, path) in [(plain.secret, "/hook"), (added.secret, "/hook/b")] {
                let post = try #require(receiver.posts.first { $0.path == path })
                #expect(try post.signers(among: [secret]).count == 1)
            }
            #expect(
                try await bench.connection.column("select distinct secret ->> 'key' from millrace.webhook_secret")
                    == ["k1"])
            try await bench.publish()
            try await bench.dispatch([receiver]).runOnce()
            #expect(receiver.posts.count == 2)
            try await bench.advance("2 minutes")
            let newer = try Keyring([.random(id: "k2")] + keys.keys)
            try await bench.dispatch([receiver], keys: newer).runOnce()
            #expect(receiver.posts.count == 4)
            #expect(
                try await bench.connection.column("select distinct secret ->> 'key' from millrace.webhook_secret")
                    == ["k2"])
            let state = try await WebhookAdmin.state(on: bench.connection, deadline: .seconds(60))
            #expect(state.unsealed == 0 && state.keys == ["k2"] && state.targets == 2)
        }
    }

    @Test func `an address where no worker may go is off after an hour, and nobody has asked it`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let plain = try await bench.add(receiver.url)
            let numbered = try await bench.add("https://169.254.169.254/latest", handshake: false)
            let named = try await bench.add("https://localhost:8443/x")
            try await bench.publish()
            for _ in 0..<2 { try await bench.dispatch([]).runOnce() }
            for target in [plain, named] {
                #expect(try await bench.state(target.id) == "pending")
                let reason = try await bench.reason(target.id)
                #expect(reason.contains("refused") && reason.contains("MILLRACE_WEBHOOK_ALLOW"), "\(reason)")
            }
            let error = try await bench.connection.value(
                "select error from millrace.webhook_deliveries where webhook = '\(numbered.id)'")
            #expect(error?.contains("not public (linkLocal)") == true)
            let tried = "select state || attempts from millrace.webhook_deliveries where webhook = '\(numbered.id)'"
            #expect(try await bench.connection.column(tried) == ["pending0"])
            try await bench.advance("61 minutes")
            try await bench.dispatch([]).runOnce()
            for target in [plain, named] { #expect(try await bench.state(target.id) == "disabled") }
            #expect(try await bench.connection.column(tried) == ["pending1"])
            #expect(receiver.requests.isEmpty)
        }
    }

    @Test func `a worker that may not go to a target leaves it to one that may`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let asked = try await bench.add(receiver.url)
            let trusted = try await bench.add(receiver.url, handshake: false)
            try await bench.publish()
            let (barred, free) = (try bench.dispatch([]), try bench.dispatch([receiver]))
            try await barred.runOnce()
            #expect(receiver.requests.isEmpty)
            #expect(try await bench.state(asked.id) == "pending")
            try await free.runOnce()
            #expect(try await bench.state(asked.id) == "active")
            #expect(try await bench.reason(asked.id).isEmpty)
            try await free.runOnce()
            #expect(try await bench.deliveries("state || attempts") == ["delivered1", "delivered1"])
            // And however long that goes on: it is never the barred one that judges.
            for _ in 0..<3 {
                try await bench.advance("59 minutes")
                try await bench.publish()
                try await bench.dispatch([]).runOnce()
                try await free.runOnce()
            }
            #expect(try await bench.state(asked.id) == "active")
            #expect(try await bench.state(trusted.id) == "active")
            #expect(Set(try await bench.deliveries("state || attempts")) == ["delivered1"])
        }
    }

    @Test func `a worker that nobody has told whom events come from neither asks again nor judges`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            let target = try await bench.add(receiver.url)
            let known = try bench.dispatch([receiver])
            try await known.runOnce()
            #expect(try await bench.state(target.id) == "active")
            let handshakes = receiver.requests.count
            try await bench.publish()
            try await bench.dispatch([receiver], knowsOrigin: false).runOnce()
            #expect(try await bench.deliveries() == ["delivered"])
            #expect(receiver.requests.count == handshakes + 1, "an event, and no question")
        }
        let strange = TargetConsent(
            status: 200, allowedOrigins: ["events.example"], allowedRate: nil, retryAfter: nil, origin: "box",
            knowsOrigin: false)
        guard case .passed = strange else { Issue.record("\(strange)"); return }
    }
}
