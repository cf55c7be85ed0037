import Fakes
import Faults
import FoundationEssentials
import Postgres
import Signatures
import Supervision
import TestSupport
import Testing
import Threads
import Transfers

@testable import Notices

@Suite struct PushTests {
    private static func apns(
        _ fake: FakeAPNs, _ bench: NoticeBench, base: String? = nil, client: HTTPClient = HTTPClient()
    ) throws -> APNsProvider {
        let pem = Array(fake.keys.pem.utf8)
        var configuration = APNsProvider.Configuration(
            key: try SigningKey(pem: pem), keyBytes: pem, keyID: fake.keyID, team: fake.team, topic: "com.example.app")
        configuration.base = base ?? fake.url
        configuration.timeout = .seconds(60)
        return try APNsProvider(configuration, client: client, pool: bench.pool)
    }

    private static func send(
        _ provider: any NoticeProvider, to device: String = "token-0001", alarm: Bool = true, platform: String = "apns",
        id: String = UUID().uuidString.lowercased(), supervisor: Supervisor = NoticeBench.supervisor()
    ) async throws -> NoticeOutcome {
        let sending = Sending(
            id: id, person: "ada", kind: "alarm.raised", data: Facts(["name": "Ben"]), channel: "push",
            address: device, isAlarm: alarm, platform: platform)
        return try await supervisor.call(provider.name) { call in
            await provider.send(sending, NoticeWords(title: "T", body: "B"), call: call)
        }
    }

    @Test func `a push has its names, its time and a token that Apple believes`() async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            let delivery = try await Self.send(Self.apns(fake, bench), id: "9d0f9a9e-0000-4000-8000-000000000001")
            #expect(delivery == .accepted(id: "9d0f9a9e-0000-4000-8000-000000000001"))
            let request = try #require(fake.requests.first)
            #expect(request.path == "/3/device/token-0001" && request["apns-topic"] == "com.example.app")
            #expect(request["apns-push-type"] == "alert" && request["apns-priority"] == "10")
            #expect(request["apns-collapse-id"] == "9d0f9a9e-0000-4000-8000-000000000001")
            let life = (Double(request["apns-expiration"] ?? "") ?? 0) - Date().timeIntervalSince1970
            #expect(life > 80_000 && life < 90_000)
            #expect(request.body.contains(#""interruption-level":"time-sensitive""#))
            fake.stop()
        }
    }

    @Test(arguments: [
        (410, "Unregistered", "gone"), (404, "BadPath", "gone"), (400, "BadDeviceToken", "refused"),
        (400, "BadMessageId", "refused"), (403, "InvalidProviderToken", "failed"),
        (429, "TooManyRequests", "failed"), (429, "TooManyProviderTokenUpdates", "failed"),
        (413, "PayloadTooLarge", "refused"), (500, "InternalServerError", "failed"),
        (503, "ServiceUnavailable", "failed"), (503, "Shutdown", "failed"),
    ]) func `what Apple says is understood`(_ status: Int, _ reason: String, _ outcome: String) async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            fake.change { $0.always = FakeAPNs.no(status, reason, headers: ["Retry-After": "7"]) }
            let delivery = try await Self.send(Self.apns(fake, bench))
            let sending = Sending(id: "1", person: "a", kind: "k", channel: "push", address: "x")
            let result = NoticeStore.Result(sending, provider: "apns", delivery, took: .zero)
            #expect(result.outcome == (status == 429 && reason.hasPrefix("TooManyProvider") ? "throttled" : outcome))
            #expect(result.code == "\(status) \(reason)" && result.class != nil)
            if status >= 429 { #expect(result.wait == 7) }
            fake.stop()
        }
    }

    @Test func `a device that has gone is forgotten, unless it was seen since`() async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            try await bench.addDevice("token-0001")
            try await bench.addDevice("token-0002")
            let now = try await Int64(
                bench.connection.int("select (extract(epoch from millrace.now()) * 1000)::bigint"))
            fake.change { $0.gone = ["token-0001": now + 60_000, "token-0002": now - 86_400_000] }
            let id = try await bench.send("alarm.raised", "alarm => true")
            try await bench.withService([try Self.apns(fake, bench)]) { _ in
                try await bench.settled(id, as: "failed")
            }
            #expect(try await bench.connection.column("select token from millrace.device_list()") == ["token-0002"])
            fake.stop()
        }
    }

    @Test func `a connection that breaks in flight leaves the outcome open, and the device shows one`() async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            fake.change { $0.special = [1: PushAnswer(reaction: .lose)] }
            try await bench.addDevice("token-0001")
            let id = try await bench.send("alarm.raised", "alarm => true")
            try await bench.withService([try Self.apns(fake, bench)]) { options in
                options.alarmLease = .seconds(86_400)  // it shall not run out, however often the clock is moved
            } _: { _ in
                try await eventually("it is sent again") {
                    try await bench.connection.run("select millrace.test_clock_advance('2 seconds')")
                    return try await bench.look(id) == "accepted"
                }
            }
            #expect(fake.requests.count == 2 && fake.shown.count == 1)
            #expect(try await bench.look(id, "duplicates") == "1")
            fake.stop()
        }
    }

    @Test func `many workers use one token, and make one new one when it is old`() async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            fake.change { $0.tokens = 10 }
            func wave() async throws {
                // Each a worker that has just begun.
                try await withThrowingTaskGroup(of: NoticeOutcome.self) { group in
                    for _ in 0..<8 {
                        let worker = try Self.apns(fake, bench)
                        for _ in 0..<3 { group.addTask { try await Self.send(worker) } }
                    }
                    for try await delivery in group {
                        guard case .accepted = delivery else {
                            Issue.record("\(delivery)")
                            continue
                        }
                    }
                }
            }
            try await wave()
            #expect(fake.tokens.count == 1)
            try await bench.connection.run("select millrace.test_clock_advance('44 minutes')")
            try await wave()
            #expect(fake.tokens.count == 1)
            try await bench.connection.run("select millrace.test_clock_advance('2 minutes')")
            try await wave()
            // While one makes the new one, others may still use the old one: it is good for an hour.
            #expect(fake.tokens.count == 2)
            let kept = try await bench.connection.value("select sealed from millrace.provider_token") ?? ""
            #expect(kept.contains("\"data\"") && !fake.tokens.contains { kept.contains($0.suffix(40)) })
            fake.stop()
        }
    }

    @Test func `a token that Apple calls expired is replaced, but not before it is twenty minutes old`() async throws {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            let worker = try Self.apns(fake, bench)
            _ = try await Self.send(worker)
            let first = try #require(fake.tokens.first)
            fake.change { $0.expired = [first] }
            let refused = try await Self.send(worker)
            #expect(refused.fault?.code == "403 ExpiredProviderToken")
            _ = try await Self.send(worker)
            #expect(fake.tokens == [first])
            try await bench.connection.run("select millrace.test_clock_advance('21 minutes')")
            _ = try await Self.send(worker)
            let last = try await Self.send(worker)
            guard case .accepted = last else {
                Issue.record("\(last)")
                return
            }
            #expect(fake.tokens.count == 2)
            fake.stop()
        }
    }

    @Test func `it goes over HTTP 2 and TLS by one connection`() async throws {
        guard let nghttpx = Programs.nghttpx else { throw Missing(program: "nghttpx") }
        try await withNotices { bench in
            let fake = try FakeAPNs()
            try await bench.addDevice("token-0001")
            try await withFront(nghttpx, before: fake.port) { url, authority in
                var configuration = HTTPClient.Configuration()
                configuration.loop.trust = Trust(certificates: authority)
                let client = HTTPClient(configuration)
                let worker = try Self.apns(fake, bench, base: url, client: client)
                let version = try await client.send(
                    worker.request(
                        for: Sending(id: "1", person: "a", kind: "k", channel: "push", address: "token-0001"),
                        NoticeWords(title: "T", body: "B"), token: "x")
                ).head.version
                #expect(version == "2")
                try await withThrowingTaskGroup(of: NoticeOutcome.self) { group in
                    for _ in 0..<50 { group.addTask { try await Self.send(worker) } }
                    for try await delivery in group {
                        guard case .accepted = delivery else {
                            Issue.record("\(delivery)")
                            continue
                        }
                    }
                }
                #expect(fake.tokens.count == 1 && fake.requests.allSatisfy { $0["via"]?.hasPrefix("2") == true })
                fake.change { $0.gone = ["token-0001": Int64(Date().timeIntervalSince1970 * 1000) + 1000] }
                let gone = try await Self.send(worker)
                guard case .gone = gone else {
                    Issue.record("\(gone)")
                    return
                }
                fake.change { rules in
                    rules.gone = [:]
                    rules.always = PushAnswer(reaction: .lose)
                }
                // nghttpx answers 502 for a back end that breaks off; Apple would answer with a 5xx, too.
                let broken = try await Self.send(worker)
                #expect(broken.fault != nil)
            }
            fake.stop()
        }
    }

    @Test func `Google's token is asked for once by all who want one, and again when it is not taken`() async throws {
        try await withNotices { bench in
            let fake = try FakeFCM()
            let credentials = try GoogleCredentials(json: Array(fake.credentials.utf8))
            var configuration = FCMProvider.Configuration(credentials: credentials)
            configuration.base = fake.url
            let fcm = FCMProvider(configuration, client: HTTPClient())
            let supervisor = NoticeBench.supervisor()
            try await withThrowingTaskGroup(of: NoticeOutcome.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await Self.send(fcm, platform: "fcm", supervisor: supervisor) }
                }
                for try await delivery in group {
                    #expect(delivery == .accepted(id: "projects/an-app/messages/1"))
                }
            }
            #expect(fake.given == 1 && fake.messages.count == 20)
            #expect(fake.messages[0].body.contains(#""priority":"HIGH""#))
            fake.forgetTokens()
            let refused = try await Self.send(fcm, platform: "fcm")
            #expect(refused.fault?.kind == .authentication)
            #expect(try await Self.send(fcm, platform: "fcm") == .accepted(id: "projects/an-app/messages/1"))
            #expect(fake.given == 2)
            fake.lose("token-0002")
            guard case .gone = try await Self.send(fcm, to: "token-0002", platform: "fcm") else {
                Issue.record("it is not gone")
                return
            }
            fake.always(
                PushAnswer(
                    429,
                    #"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"errorCode":"QUOTA_EXCEEDED"}]}}"#,
                    headers: ["Retry-After": "9"]))
            let slow = try await Self.send(fcm, platform: "fcm")
            #expect(slow.fault?.kind == .throttled && slow.fault?.wait == .seconds(9))
            fake.always(PushAnswer(503, #"{"error":{"code":503,"status":"UNAVAILABLE"}}"#))
            let away = try await Self.send(fcm, platform: "fcm")
            #expect(away.fault?.kind == .unavailable)
            for bad in ["{}", #"{"project_id": "a/b", "client_email": "x", "private_key": "y"}"#] {
                #expect(throws: SigningKey.Unusable.self) { try GoogleCredentials(json: Array(bad.utf8)) }
            }
            fake.stop()
        }
    }

    /// 1. A token is being read. 2. A push needs it, and a second is called off while it waits. 3. The token is there.
    @Test func `pushes wait for the token that their supervisor is reading, and one that is called off harms no other`()
        async throws
    {
        try await withNotices { bench in
            let fake = try FakeAPNs()
            let google = try FakeFCM()
            var configuration = FCMProvider.Configuration(
                credentials: try GoogleCredentials(json: Array(google.credentials.utf8)))
            configuration.base = google.url
            let fcm = FCMProvider(configuration, client: HTTPClient())
            for (provider, key) in [
                (try Self.apns(fake, bench) as any NoticeProvider, "token:apns:\(fake.team):\(fake.keyID)"),
                (
                    fcm,
                    "token:google:push@an-app.iam.example:k1:https://www.googleapis.com/auth/firebase.messaging"
                ),
            ] {
                let supervisor = NoticeBench.supervisor()
                let gate = Wakeup()
                let reading = Task {
                    try await supervisor.read(key) {
                        await gate.wait()
                        return "read-once"
                    }
                }
                try await eventually("it is being read") { supervisor.waitingForReads == 1 }
                let sending = Task { try await Self.send(provider, supervisor: supervisor) }
                let calledOff = Task { try await Self.send(provider, supervisor: supervisor) }
                try await eventually("both wait for it") { supervisor.waitingForReads == 3 }
                calledOff.cancel()
                try await eventually("one has left") { supervisor.waitingForReads == 2 }
                gate.fire()
                #expect(try await reading.value == "read-once")
                _ = try await sending.value  // nobody believes in this token
                _ = try? await calledOff.value
                let requests = provider.name == "apns" ? fake.requests : google.messages
                #expect(requests.map { $0["authorization"]?.lowercased() } == ["bearer read-once"])
            }
            #expect(google.given == 0)
            #expect(try await bench.connection.int("select count(*) from millrace.provider_token") == 0)
            fake.stop()
            google.stop()
        }
    }

    @Test func `texts and calls go to any service, in the shape it wants`() async throws {
        let fake = try FakePush { _, number in
            switch number {
            case 3: PushAnswer(500, "")
            case 4: PushAnswer(429, "", headers: ["Retry-After": "5"])
            case 5: PushAnswer(400, "")
            case 6: PushAnswer(reaction: .lose)
            case 7: PushAnswer(401, "")
            default: PushAnswer(201, #"{"sid": "SM\#(number)"}"#)
            }
        }
        var configuration = TextProvider.Configuration(url: "\(fake.url)/{{channel}}")
        configuration.headers = [("Authorization", "Basic abc")]
        let plain = TextProvider(.sms, configuration, client: HTTPClient())
        configuration.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        configuration.body = "To={{to}}&Body={{text}}&x={{y}}"
        let form = TextProvider(.voice, configuration, client: HTTPClient())
        func send(_ gateway: TextProvider) async throws -> NoticeOutcome {
            let sending = Sending(id: "n1", person: "a", kind: "k", channel: "sms", address: "+4930123456")
            return try await NoticeBench.supervisor().call(gateway.name) { call in
                await gateway.send(sending, NoticeWords(title: "Say \"hi\"", body: "ü & more"), call: call)
            }
        }
        #expect(try await send(plain) == .accepted(id: "SM1"))
        #expect(try await send(form) == .accepted(id: "SM2"))
        let requests = fake.requests
        #expect(requests[0].path == "/sms" && requests[0]["authorization"] == "Basic abc")
        #expect(requests[0]["idempotency-key"] == "n1" && requests[0]["content-type"] == "application/json")
        #expect(
            requests[0].body
                == #"{"to":"+4930123456","text":"Say \"hi\"\nü & more","id":"n1","channel":"sms"}"#)
        #expect(requests[1].path == "/voice")
        #expect(requests[1].body == "To=%2B4930123456&Body=Say%20%22hi%22%0A%C3%BC%20%26%20more&x={{y}}")
        guard case .unknown = try await send(plain), case .failed(let slow) = try await send(plain),
            case .refused = try await send(plain), case .unknown = try await send(plain),
            case .failed(let key) = try await send(plain)
        else {
            Issue.record("an answer was misunderstood")
            return
        }
        #expect(slow.kind == .throttled && slow.wait == .seconds(5) && key.kind == .authentication)
        fake.stop()
    }
}
