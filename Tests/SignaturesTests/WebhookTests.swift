import FoundationEssentials
import Testing

@testable import Signatures

@Suite struct WebhookTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let other = "whsec_" + Data((0..<24).map { UInt8($0) }).base64EncodedString()
    private static let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    private static let body = Array(#"{"test": 2432232314}"#.utf8)
    private static let stamp = 1_614_265_330
    private static let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    private static let wrong = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="

    @Test func `the public vector is signed as published`() throws {
        let signature = Webhook.sign(Self.body, id: Self.id, at: Self.stamp, with: [try .init(Self.secret)])
        #expect(signature == Self.good)
    }

    private func verify(
        _ signature: String?, id: String? = id, stamp: String? = String(stamp), body: [UInt8] = body,
        secrets: String = secret, now: Int = stamp
    ) throws -> String {
        try Webhook.verify(
            body, .init(id: id, timestamp: stamp, signature: signature), with: try Webhook.Secret.list(secrets),
            at: Date(timeIntervalSince1970: Double(now)))
    }

    @Test(arguments: [
        good, "\(wrong) \(good)", "v2,abc v1a,xyz \(good)", "\(good), \(wrong)", "\(wrong), \(good)", "v1,!!! \(good)",
    ])
    func `any matching signature of the list will do`(signature: String) throws {
        #expect(try verify(signature) == Self.id)
    }

    @Test func `a delivery is believed while either of two secrets is in use`() throws {
        for secrets in [
            "\(Self.other)|\(Self.secret)", "v1,\(Self.secret)|v1,\(Self.other)", "\(Self.other) \(Self.secret)",
        ] {
            #expect(try verify(Self.good, secrets: secrets) == Self.id)
        }
        let both = try Webhook.Secret.list("\(Self.other)|\(Self.secret)")
        let signed = Webhook.sign(Self.body, id: "x", at: Self.stamp, with: both)
        #expect(try verify(signed, id: "x") == "x")
        #expect(try verify(signed, id: "x", secrets: Self.other) == "x")
    }

    @Test(arguments: [
        (nil, WebhookError.missingHeader), ("", .missingHeader), (wrong, .noMatch),
        ("v2,\(good.dropFirst(3))", .noMatch),
        (String(good.dropFirst(3)), .noMatch), ("v1,", .noMatch), (String(good.dropLast(4)), .noMatch), (" ", .noMatch),
        ("v1,\(good)", .noMatch), ("v1,AAAA", .noMatch),
    ])
    func `a signature that is not ours is not believed`(signature: String?, error: WebhookError) {
        #expect(throws: error) { try verify(signature) }
    }

    @Test func `what was changed, is old, or comes from the future is not believed`() {
        #expect(throws: WebhookError.noMatch) { try verify(Self.good, body: Self.body + [0x20]) }
        #expect(throws: WebhookError.noMatch) { try verify(Self.good, id: "msg_other") }
        #expect(throws: WebhookError.noMatch) { try verify(Self.good, stamp: String(Self.stamp + 1)) }
        #expect(throws: WebhookError.noMatch) { try verify(Self.good, secrets: Self.other) }
        #expect(throws: WebhookError.missingHeader) { try verify(Self.good, id: nil) }
        #expect(throws: WebhookError.missingHeader) { try verify(Self.good, stamp: nil) }
        for stamp in ["", "x", "-1", "1614265330.5", "9999999999999", "١٦"] {
            #expect(throws: WebhookError.badTimestamp) { try verify(Self.good, stamp: stamp) }
        }
        #expect(throws: WebhookError.tooOld) { try verify(Self.good, now: Self.stamp + 301) }
        #expect(throws: WebhookError.tooNew) { try verify(Self.good, now: Self.stamp - 301) }
        #expect(throws: Never.self) { try verify(Self.good, now: Self.stamp + 300) }
        #expect(throws: Never.self) { try verify(Self.good, now: Self.stamp - 300) }
    }

    @Test(arguments: [
        "", "whsec_", "whsec_c2hvcnQ=", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_!!!!", "whsec_" + Data(count: 65).base64EncodedString(),
    ])
    func `a secret of another form is refused, and none is ever printed`(text: String) throws {
        #expect(throws: WebhookError.badSecret) { try Webhook.Secret.list(text) }
        let secret = try Webhook.Secret(Self.secret)
        #expect(!"\(secret) \(String(reflecting: secret))".contains("49"))
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(!dumped.contains("49"))
    }

    @Test func `both families of header names are read`() {
        let svix = ["svix-id": "a", "svix-timestamp": "1", "svix-signature": "s"]
        let signed = Webhook.Signed { svix[$0] }
        #expect(signed.id == "a" && signed.timestamp == "1" && signed.signature == "s")
        let own = ["webhook-id": "b", "webhook-timestamp": "2", "webhook-signature": "t"]
        #expect(Webhook.Signed { own[$0] }.id == "b")
    }
}
