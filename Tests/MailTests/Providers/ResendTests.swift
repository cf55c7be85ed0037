import Fakes
import Faults
import Foundation
import TestSupport
import Testing
import Transfers

@testable import Mail

@Suite struct ResendTests {
    private static func number(_ number: Int) -> UUID {
        UUID(uuidString: "00000000-0000-4000-8000-\(String(format: "%012d", number))") ?? UUID()
    }

    private static func letters(_ count: Int) -> [Letter] {
        (0..<count).map { index in
            .sample { letter in
                letter.id = number(index)
                letter.to = [Mailbox(address: "reader\(index)@reader.example")]
            }
        }
    }

    private func with<Value>(
        _ script: ResendScript = ResendScript(), key: String = "re_test", timeout: Duration = .seconds(120),
        blobs: SampleBlobs = SampleBlobs(), _ body: (FakeResend, ResendProvider) async throws -> Value
    ) async throws -> Value {
        let fake = try FakeResend(script)
        defer { fake.stop() }
        let client = HTTPClient()
        defer { client.close() }
        var configuration = ResendProvider.Configuration(key: key)
        configuration.base = fake.url
        configuration.timeout = timeout
        return try await body(fake, ResendProvider(configuration, client: client, blobs: blobs.source))
    }

    @Test func `a request is these bytes`() async throws {
        let letter = Letter.sample {
            $0.to = [Mailbox(name: "Lovelace, Ada", address: "ada@reader.example")]
            $0.cc = [Mailbox(name: "Zoë", address: "z@reader.example")]
            $0.replyTo = Mailbox(address: "reply@sender.example")
            $0.html = "<p>\"é\u{1}\n</p>"
            $0.headers = [.init("X-B", "2"), .init("X-A", "1")]
            $0.tags = [.init("kind", "mail-send")]
            $0.attachments = [
                .init(filename: "a.txt", contentType: "text/plain", contentID: "a", blob: SampleBlobs.id(1), size: 2)
            ]
        }
        let text = #"""
            {"from":"Mill Race <mill@sender.example>","to":["\"Lovelace, Ada\" <ada@reader.example>"],"cc":["Zoë <z@reader.example>"],"reply_to":"reply@sender.example","subject":"Hello","html":"<p>\"é\u0001\n</p>","text":"Hello, Ada.\n","headers":{"X-B":"2","X-A":"1"},"tags":[{"name":"kind","value":"mail-send"},{"name":"millrace_message","value":"01234567-89ab-4def-8123-456789abcdef"}],"attachments":[{"filename":"a.txt","content_type":"text/plain","content_id":"a","content":"aGk="}]}
            """#
        let wire = ResendProvider.body([letter])
        let bytes = try await wire.gather(from: SampleBlobs([SampleBlobs.id(1): Array("hi".utf8)]).source)
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(wire.length == bytes.count)
        let several = try #require(ResendProvider.body(Self.letters(2)).whole)
        let list = try #require(try JSONSerialization.jsonObject(with: Data(several)) as? [[String: Any]])
        #expect(list.count == 2 && list[1]["to"] as? [String] == ["reader1@reader.example"])
    }

    @Test func `one letter and a batch are taken, each once for its key`() async throws {
        try await with { fake, resend in
            let first = try await handOver(resend, Self.letters(1))
            let again = try await handOver(resend, Self.letters(1))
            #expect(first[0].verdict == "accepted" && first == again)
            let batch = try await handOver(resend, Self.letters(100), key: "key-2")
            #expect(Set(batch.map(\.verdict)) == ["accepted"] && Set(batch.map { "\($0)" }).count == 100)
            #expect(try await handOver(resend, Self.letters(100), key: "key-2") == batch)
            let accepted = fake.accepted
            #expect(accepted.count == 101 && fake.figures.replayed == 2)
            for (index, mail) in accepted.dropFirst().enumerated() {
                #expect(mail.index == index && mail.to == ["reader\(index)@reader.example"] && mail.key == "key-2")
                #expect(mail.tags[ResendProvider.tag] == Self.number(index).uuidString.lowercased())
                #expect(batch[index] == .accepted(id: mail.id))
            }
            guard case .accepted(let id?) = first[0] else { return }
            #expect(try await ask(resend, about: id) == "delivered")
            #expect(try await ask(resend, about: "00000000-0000-0000-0000-000000000000") == nil)
        }
    }

    @Test func `the same key with other letters is never an acceptance nor a refusal`() async throws {
        try await with { fake, resend in
            _ = try await handOver(resend, Self.letters(1))
            let other = try await handOver(resend, [.sample { $0.subject = "Other" }])
            #expect(other[0].verdict == "unknown" && other[0].fault?.code == "409 invalid_idempotent_request")
            #expect(fake.accepted.count == 1)
            try fake.change { $0.aheadSeconds = 86_401 }
            #expect(try await handOver(resend, [.sample { $0.subject = "Other" }])[0].verdict == "accepted")
        }
    }

    @Test(arguments: [
        (ResendScript.Outage.key, "refused", ErrorClass.authentication, ErrorClass.Retry.elsewhere),
        (.quota, "throttled", .quota, .elsewhere), (.broken, "unknown", .unknown, .sameKey),
        (.gateway, "unknown", .unknown, .sameKey), (.silent, "unknown", .timeout, .sameKey),
        (.reset, "unknown", .unknown, .sameKey), (.closed, "refused", .unavailable, .elsewhere),
    ])
    func `each outage is told for what it is`(
        outage: ResendScript.Outage, verdict: String, kind: ErrorClass, retry: ErrorClass.Retry
    ) async throws {
        try await with(timeout: outage == .silent ? .seconds(2) : .seconds(60)) { fake, resend in
            try fake.change { $0.outage = outage }
            let handovers = try await handOver(resend, Self.letters(3))
            #expect(handovers.count == 3 && Set(handovers.map { "\($0)" }).count == 1)
            #expect(handovers[0].verdict == verdict && handovers[0].kind == kind)
            #expect(handovers[0].kind?.retry == retry)
            #expect(fake.accepted.isEmpty)
            try fake.change { $0.outage = .none }
            try await eventually("it takes letters again") {
                try await handOver(resend, Self.letters(3))[0].verdict == "accepted"
            }
            #expect(fake.accepted.count == 3)
        }
    }

    @Test func `a lost answer is unknown, and the same key finds out without a second mail`() async throws {
        var script = ResendScript()
        script.lost = 1
        try await with(script) { fake, resend in
            #expect(try await handOver(resend, Self.letters(5))[0].verdict == "unknown")
            #expect(fake.accepted.count == 5)
            let again = try await handOver(resend, Self.letters(5))
            #expect(again.map(\.verdict) == Array(repeating: "accepted", count: 5) && fake.accepted.count == 5)
        }
    }

    @Test func `too fast, and out of quota, are throttled with a time to wait`() async throws {
        var script = ResendScript()
        (script.rate, script.windowSeconds) = (1, 1e9)
        try await with(script) { fake, resend in
            var handovers: [SendOutcome] = []
            for index in 0..<3 { handovers += try await handOver(resend, Self.letters(1), key: "k\(index)") }
            let throttled = handovers.filter { $0.verdict == "throttled" }
            #expect(
                !throttled.isEmpty && throttled.allSatisfy { $0.kind == .throttled && $0.fault?.wait == .seconds(1) })
            #expect(handovers.allSatisfy { $0.verdict != "unknown" && $0.verdict != "refused" })
            try fake.change {
                $0.rate = 0
                $0.dailyQuota = 1
            }
            let over = try await handOver(resend, Self.letters(20), key: "k9")
            #expect(over[0].verdict == "throttled" && over[0].kind == .quota)
            let wait = try #require(over[0].fault?.wait)
            #expect(wait > .zero && wait <= .seconds(86_400))
        }
    }

    @Test func `a wrong key and letters that ResendProvider does not take are refused`() async throws {
        try await with(key: "re_wrong") { _, resend in
            let refused = try await handOver(resend, Self.letters(1))
            #expect(refused[0].kind == .authentication)
        }
        try await with { fake, resend in
            let bad = Letter.sample { $0.to = [Mailbox(address: "a@example.com")] }
            let refused = try await handOver(resend, [Self.letters(1)[0], bad])
            #expect(refused.map(\.verdict) == ["refused", "refused"] && refused[0].kind == .invalid)
            #expect(fake.accepted.isEmpty)
            #expect(try await handOver(resend, Self.letters(101))[0].kind == .internal)
            #expect(try await handOver(resend, Self.letters(1), key: "a\r\nb")[0].kind == .internal)
            #expect(resend.objection(to: bad) == nil && resend.objection(to: .sample { $0.to = [] }) != nil)
        }
    }

    @Test func `attachments are streamed, and one that can not be read is no mail`() async throws {
        let content = [UInt8](repeating: 7, count: 1_000_001)
        let letter = Letter.sample {
            $0.attachments = [
                .init(filename: "a.pdf", contentType: "application/pdf", blob: SampleBlobs.id(1), size: content.count),
                .init(filename: "b.pdf", contentType: "application/pdf", blob: SampleBlobs.id(2), size: 3),
            ]
        }
        try await with(blobs: SampleBlobs([SampleBlobs.id(1): content, SampleBlobs.id(2): [1, 2, 3]])) { fake, resend in
            let first = try await handOver(resend, [letter])
            #expect(first[0].verdict == "accepted")
            #expect(try await handOver(resend, [letter]) == first)
            #expect(fake.accepted.map(\.attachments) == [2])
            #expect(fake.accepted[0].bytes == ResendProvider.body([letter]).length)
            #expect(try await handOver(resend, [letter, letter], key: "k")[0].kind == .internal)
        }
        for blobs in [
            SampleBlobs([SampleBlobs.id(1): content]),
            SampleBlobs([SampleBlobs.id(1): content.dropLast(), SampleBlobs.id(2): [1, 2, 3]]),
        ] {
            try await with(blobs: blobs) { fake, resend in
                let handover = try await handOver(resend, [letter])[0]
                #expect(handover.verdict == "refused" && handover.kind == .internal)
                #expect(fake.accepted.isEmpty)
            }
        }
    }

    @Test func `whatever fails, each letter is accepted exactly once when its request is repeated as it was`()
        async throws
    {
        var script = ResendScript()
        (script.lost, script.failBefore, script.failAfter, script.seed) = (0.2, 0.2, 0.2, 42)
        try await with(script) { fake, resend in
            let letters = Self.letters(600)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for start in stride(from: 0, to: 600, by: 3) {
                    group.addTask {
                        var tries = 0
                        while true {
                            tries += 1
                            let all = try await handOver(
                                resend, Array(letters[start..<start + 3]), key: "batch-\(start)")
                            if all.allSatisfy({ $0.verdict == "accepted" }) { return }
                            #expect(all.allSatisfy { $0.verdict == "unknown" })
                            guard tries < 100 else { throw Fault(.internal, "never accepted") }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(fake.accepted.count == 600)
            #expect(Set(fake.accepted.map { $0.tags[ResendProvider.tag] }).count == 600)
            #expect(fake.figures.lost > 10 && fake.figures.answered[500, default: 0] > 10)
        }
    }

    private typealias Case = (Int, String, String, ErrorClass?, Duration?)
    private static let answers: [Case] = [
        (200, #"{"id":"x"}"#, "accepted", nil, nil), (200, "garbled", "unknown", ErrorClass.unknown, nil),
        (301, "", "refused", .unavailable, nil),
        (400, #"{"statusCode":400,"name":"validation_error","message":"m"}"#, "refused", .invalid, nil),
        (400, #"{"name":"invalid_idempotency_key"}"#, "refused", .invalid, nil),
        (401, #"{"name":"missing_api_key"}"#, "refused", .authentication, nil),
        (401, #"{"name":"restricted_api_key"}"#, "refused", .authentication, nil),
        (403, #"{"name":"invalid_api_key"}"#, "refused", .authentication, nil),
        (403, #"{"name":"validation_error"}"#, "refused", .authentication, nil),
        (403, "error code: 1010", "refused", .authentication, nil),
        (404, #"{"name":"not_found"}"#, "refused", .unsupported, nil),
        (405, #"{"name":"method_not_allowed"}"#, "refused", .unsupported, nil),
        (409, #"{"name":"concurrent_idempotent_requests"}"#, "unknown", .unknown, nil),
        (409, #"{"name":"invalid_idempotent_request"}"#, "unknown", .conflict, nil),
        (413, "", "refused", .tooLarge, nil), (422, #"{"name":"invalid_attachment"}"#, "refused", .invalid, nil),
        (422, #"{"name":"missing_required_field"}"#, "refused", .invalid, nil),
        (429, #"{"name":"rate_limit_exceeded"}"#, "throttled", .throttled, Duration.seconds(7)),
        (429, "", "throttled", .throttled, .seconds(7)),
        (429, #"{"name":"daily_quota_exceeded"}"#, "throttled", .quota, .seconds(7)),
        (429, #"{"name":"monthly_quota_exceeded"}"#, "throttled", .quota, .seconds(7)),
        (451, #"{"name":"security_error"}"#, "refused", .permission, nil),
        (500, #"{"name":"application_error"}"#, "unknown", .unknown, nil), (500, "", "unknown", .unknown, nil),
        (502, "", "unknown", .unknown, nil), (503, "", "unknown", .unknown, nil), (504, "", "unknown", .timeout, nil),
        (408, "", "unknown", .timeout, nil), (418, #"{"name":"evil\nname"}"#, "refused", .invalid, nil),
    ]

    @Test(arguments: answers)
    func `every answer has its meaning`(status: Int, body: String, verdict: String, kind: ErrorClass?, wait: Duration?)
        throws
    {
        let answer = ResendAnswer(status: status, body: body, retryAfter: wait == nil ? nil : "7")
        let handover = try #require(answer.handovers(1, now: Date(timeIntervalSince1970: 0)).first)
        #expect(handover.verdict == verdict)
        #expect(handover.kind == kind)
        if let wait { #expect(handover.fault?.wait == wait) }
        let code = handover.fault?.code ?? ""
        #expect(!code.contains("\n"))
    }

    @Test func `quotas last until midnight, and until the month's end`() {
        let now = Date(timeIntervalSince1970: 1_767_323_045)  // 2026-01-02 03:04:05
        #expect(ResendAnswer.untilMidnight(now) == .seconds(75_355))
        #expect(ResendAnswer.untilNextMonth(now) == .seconds(2_580_955))
    }
}
